"""Time kernels and verbs of the ranks of a cluster, in searches between `begin` and `end`.

Each launch and each verb is between two marks: on a GPU events in the stream, elsewhere times of the clock, as launches
return when they have finished there. The time of a verb includes the wait for the other ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from mgraph.backends.base import Backend
from mgraph.backends.kernel import Kernel
from mgraph.cluster.base import Rank

VERBS = ("barrier", "broadcast", "allreduce", "allgather", "alltoallv")
# Of a call this phase is timed: the search itself.
PHASE = "traverse"
KEY = "rank_times"


def begin(rank: Rank) -> None:
    """Begin to time launches and verbs."""
    rank.objects[KEY] = _Timer(rank)


def end(rank: Rank) -> dict[str, float]:
    """Return the milliseconds of each kernel and verb in searches since `begin`."""
    timer: _Timer = rank.objects.pop(KEY)
    return timer.end()


class _Timer:
    """Times what a rank launches and calls: it replaces methods of its backend and communicator."""

    def __init__(self, rank: Rank) -> None:
        self._backend = rank.backend
        self._mark, self._between = _marks(rank.backend)
        self._found: list[tuple[str, Any, Any]] = []
        self._replaced = ExitStack()
        launch = rank.backend.launch

        def timed_launch(kernel: Kernel, args: tuple) -> None:
            self._call(kernel.name, launch, kernel, args)

        self._replaced.enter_context(mock.patch.object(rank.backend, "launch", timed_launch))
        for verb in VERBS:
            self._replaced.enter_context(mock.patch.object(rank.comm, verb, self._timed(rank.comm, verb)))

    def end(self) -> dict[str, float]:
        """Put the methods back; return the milliseconds by name."""
        self._replaced.close()
        self._backend.synchronize()
        milliseconds: dict[str, float] = {}
        for name, began, ended in self._found:
            milliseconds[name] = milliseconds.get(name, 0.0) + self._between(began, ended)
        return milliseconds

    def _timed(self, comm: object, verb: str) -> Callable[..., Any]:
        call = getattr(comm, verb)
        return lambda *args, **options: self._call(verb, call, *args, **options)

    def _call(self, name: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        phase = self._backend.phase
        if phase is None or phase.name != PHASE:
            return call(*args, **options)
        began = self._mark()
        result = call(*args, **options)
        self._found.append((name, began, self._mark()))
        return result


def _marks(backend: Backend) -> tuple[Callable[[], Any], Callable[[Any, Any], float]]:
    """Return a function that makes a mark, and one that returns the milliseconds between two."""
    if backend.name != "cuda":
        return time.perf_counter, lambda began, ended: 1e3 * (ended - began)
    import cupy

    def record() -> Any:
        event = cupy.cuda.Event()
        event.record()
        return event

    return record, cupy.cuda.get_elapsed_time
