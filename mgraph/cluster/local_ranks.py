"""What the ranks of this process have in common, whichever threads run their calls: objects, holds and their end."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from queue import Empty
from typing import Any, Protocol

from mgraph.backends.base import Backend
from mgraph.cluster.base import Holds, Objects, OwnerGone, Rank
from mgraph.comm.base import Communicator
from mgraph.errors import ClusterError
from mgraph.formatting import counted
from mgraph.signals import locked_lock, run_in_thread, wait_for

CLOSED = "this cluster is closed: connect again"
OWN_CALL = "a function that runs on a rank called its own cluster: use the verbs of rank.comm there"


class LocalRanks(ABC):
    """The ranks of this process.

    Attributes
    ----------
    ranks
        The ranks of the next call; empty if it must open a new communicator.
    is_closed
        Whether calls are refused.
    items
        What a thread of this object gets: an OwnerGone with a key to forget, or the Closing, after which it frees
        everything and ends; of RankThreads also calls.
    """

    def __init__(self, backends: Sequence[Backend], open_comms: Callable[[], list[Communicator]]) -> None:
        self.backends = backends
        self.objects = [Objects() for _ in backends]
        self.holds = LocalHolds(self.objects)
        self.items = self.holds.items
        self._open_comms = open_comms
        self._pid = os.getpid()
        self.ranks = self.open_ranks()
        self.is_closed = False
        self._has_ended = False
        # Aborted by `close`.
        self.running: Running | None = None
        # The threads that a call needs, which cannot wait for one.
        self._idents: set[int | None] = set()

    @abstractmethod
    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        """Run a function on every rank, as `Cluster.run` does; calls of several threads take turns."""

    def read(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a function that only reads, as `Cluster.read` does."""
        return self.run(function, *args)

    def open_ranks(self) -> list[Rank]:
        """Open a new communicator; return the ranks that use it."""
        size = len(self.backends)
        parts = zip(self._open_comms(), self.backends, self.objects, strict=True)
        return [Rank(r, size, comm, backend, objects) for r, (comm, backend, objects) in enumerate(parts)]

    def close(self, *, wait: bool = True) -> None:
        """Abort the running call, refuse waiting ones, and free the objects of ranks; from any thread."""
        if os.getpid() != self._pid:
            # A forked child has none of the threads, and the objects belong to the parent.
            return
        self.is_closed = True
        # `close` sets is_closed, then reads `running`; a call sets `running`, then reads is_closed: one sees the other.
        if (running := self.running) is not None:
            run_in_thread(running.abort, "the cluster was closed")
        closing = Closing()
        self.items.put(closing)
        # Checked after the put: `_free` sets _has_ended before it empties the queue.
        if wait and not self._has_ended and threading.get_ident() not in self._idents:
            wait_for(closing.answered)

    def _free(self, closing: Closing) -> None:
        """Free everything when no call runs, and refuse the calls that still wait in the queue."""
        try:
            for rank in self.ranks:
                rank.comm.abort("the cluster was closed")
            for objects in self.objects:
                objects.clear()
            for backend in self.backends:
                backend.close()
        finally:
            self._has_ended = True
            item: Any = closing
            with suppress(Empty):
                while True:
                    if not isinstance(item, OwnerGone):
                        item.refuse(ClusterError(CLOSED))
                    item = self.items.get_nowait()


def no_threads(number: int, error: RuntimeError) -> ClusterError:
    """Return the error of ranks without threads, as these cannot start."""
    return ClusterError(
        f"{counted(number, 'rank')} in this process need a thread each ({error}): use fewer (--workers)"
    )


class LocalHolds(Holds):
    """The holds of ranks in this process."""

    def __init__(self, objects: Sequence[Objects]) -> None:
        super().__init__()
        self._objects = objects
        self._pid = os.getpid()

    def forget(self, key: str) -> None:
        if os.getpid() == self._pid:
            # One call in C: an interrupt between two ranks, lost in a finalizer, would leave the objects of the rest.
            deque(map(dict.pop, self._objects, repeat(key), repeat(None)), maxlen=0)


class Running(Protocol):
    """A call that `close` aborts."""

    def abort(self, cause: str) -> None: ...


class Closing:
    """The queue item after which no call runs."""

    def __init__(self) -> None:
        self.answered = locked_lock()

    def refuse(self, error: BaseException) -> None:
        """Wake the thread that waits in `close`: everything is freed."""
        self.answered.release()
