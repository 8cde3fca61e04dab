"""Ranks in the caller's process, without a scheduler: threads, or for one rank the caller's thread."""

from __future__ import annotations

import atexit
import os
import uuid
import weakref
from collections.abc import Callable
from typing import Any

from mgraph.backends.base import Backend
from mgraph.backends.create import make_backend
from mgraph.backends.progress import Phase, seen_phase
from mgraph.cluster.base import (
    Cluster,
    KeyHold,
    Objects,
    Rank,
    check_deadline,
    check_num_ranks,
    check_part,
    check_process,
)
from mgraph.cluster.caller_thread import CallerThread, HeldErrors
from mgraph.cluster.local_ranks import LocalRanks
from mgraph.cluster.rank_threads import RankThreads
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.comm.threads import open_threads
from mgraph.errors import UsageError

# More threads than cores would only wait for each other.
MAX_THREADS = 256

_in_use: weakref.WeakSet[LocalRanks] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End all calls before the interpreter exits, so that it does not cut off the function of a rank."""
    for threads in list(_in_use):
        threads.close()


class InProcessCluster(Cluster):
    """Ranks of this process, on the CPU or on its one GPU.

    Parameters
    ----------
    num_ranks
        The number of ranks; they share the cores or the GPU.
    backend
        cpu or cuda, if `make_backend` is None.
    make_backend
        Called once a rank to make its backend.
    timeout_s
        Deadline of a verb of the communicator.
    """

    launcher = "in-process"

    def __init__(
        self,
        num_ranks: int = 1,
        *,
        backend: str = "cpu",
        make_backend: Callable[[], Backend] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        num_ranks = check_num_ranks(num_ranks)
        if num_ranks > MAX_THREADS:
            raise UsageError(
                f"num_ranks is {num_ranks}: one process has at most {MAX_THREADS}, which share its cores (--workers)"
            )
        make = self._make = make_backend or _shared_backend(backend, num_ranks)
        self.num_ranks = num_ranks
        self._pid = os.getpid()
        self.timeout_s = timeout_s = check_deadline(timeout_s, "verb_timeout_s")
        backends = [make() for _ in range(num_ranks)]
        open_comms = self.open_comms
        self.backend = backends[0].name
        self._narrowed: dict[int, InProcessCluster] = {}
        threads: type[LocalRanks] = CallerThread if num_ranks == 1 else RankThreads
        # An interrupt before the last of these lines would leave threads that nothing ends.
        with HeldErrors(lambda: None):
            self._threads = threads(backends, lambda: open_comms(num_ranks, timeout_s))
            _in_use.add(self._threads)
            # The threads would outlive a cluster that is collected without `close`.
            weakref.finalize(self, self._threads.close, wait=False).atexit = False

    @staticmethod
    def open_comms(size: int, timeout_s: float) -> list[Communicator]:
        """Open the communicators of `size` ranks, with a deadline of each verb."""
        return open_threads(size, timeout_s)

    @property
    def _ranks(self) -> list[Rank]:
        return self._threads.ranks

    @property
    def _objects(self) -> list[Objects]:
        return self._threads.objects

    @property
    def run(self) -> Callable[..., list[Any]]:
        """The function that runs a call: in the caller's thread, or in threads of the ranks."""
        return self._threads.run

    # Ranks of this process are never lost.
    run_on_stored = run

    def read(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._threads.read(function, *args)

    def run_and_store(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        from dask.delayed import Delayed

        names = [f"{function.__name__}-{r}-{uuid.uuid4().hex}" for r in range(self.num_ranks)]
        return [Delayed(name, {name: value}) for name, value in zip(names, self.run(function, *args), strict=True)]

    def narrowed(self, num_ranks: int) -> Cluster:
        check_process(self._pid, "this cluster")
        check_part(num_ranks, self.num_ranks)
        if num_ranks == self.num_ranks:
            return self
        if num_ranks not in self._narrowed:
            made = InProcessCluster(num_ranks, make_backend=self._make, timeout_s=self.timeout_s)
            self._narrowed[num_ranks] = made
        return self._narrowed[num_ranks]

    def forget(self, key: str) -> None:
        self._threads.holds.forget(key)

    def hold(self, owner: object, key: str) -> KeyHold:
        return KeyHold(owner, self._threads.holds, key)

    def watch(self) -> Callable[[], Phase | None]:
        backend = self._threads.backends[0]
        earlier = backend.phase

        def watched() -> Phase | None:
            phase = seen_phase(backend.phase)
            return None if phase is earlier else phase

        return watched

    @property
    def closed(self) -> bool:
        return self._threads.is_closed

    def close(self) -> None:
        for part in list(self._narrowed.values()):
            part.close()
        self._threads.close()


def _shared_backend(name: str, num_ranks: int) -> Callable[[], Backend]:
    """Return a function that makes one rank's backend, with its share of the cores."""
    if name not in ("cpu", "cuda"):
        raise UsageError(f"backend {name!r} is not one of auto, cpu, cuda")
    return lambda: make_backend(name, sharers=num_ranks)
