"""What ranks can say to each other: nine verbs, the same over threads, sockets and NCCL.

A communicator is handed to a rank program, never fetched. Every rank calls the same verbs in the same
order. Arrays go in and come out on the rank's own backend; NumPy arrays are taken by all of them, so
that a program can reduce its counters without knowing where its graph lives. Arrays are contiguous.
Every verb has a deadline, and every failure is a named error (CommTimeout, CommAborted) on every rank,
after which the communicator is of no more use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mgraph.types import Array

if TYPE_CHECKING:
    from mgraph.comm.peers import Windows

OPERATIONS = ("min", "max", "sum")
DEFAULT_TIMEOUT_S = 300.0


class Communicator(ABC):
    """One rank's end of a network of `size` ranks."""

    rank: int
    size: int
    # Bytes this rank handed to others, counted from the arguments of the verbs.
    bytes_sent: int
    # What peers.py keeps here: memory that the ranks' kernels share, and whether they may.
    windows: Windows | None = None
    may_reach = False

    @abstractmethod
    def barrier(self) -> None:
        """Return when every rank has called."""

    @abstractmethod
    def broadcast(self, x: Array, root: int) -> Array:
        """Fill `x` on every rank with what it holds on `root`; return it."""

    @abstractmethod
    def allreduce(self, x: Array, op: str) -> Array:
        """Replace `x` on every rank by the elementwise min, max or sum over the ranks; return it."""

    @abstractmethod
    def allgather(self, part: Array, out: Array) -> Array:
        """Fill `out` with the ranks' equally long parts in order of rank; `part` may be its own slice of `out`."""

    @abstractmethod
    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        """Send parts[r] to rank r, return what each rank sent here; lengths may differ and be 0, dtypes agree.

        The part for the own rank comes back itself, not a copy. Where every rank knows how long what comes is, each
        gives an array `into` which that of every rank goes, its own too, and nobody tells lengths. NCCL does not check
        them.
        """

    def any(self, flag: bool) -> bool:
        """Return whether `flag` holds on any rank."""
        return bool(self.sum(int(flag))[0])

    def sum(self, *numbers: int) -> list[int]:
        """Return the sums of a few integers over the ranks: the control words of a superstep, in one reduction."""
        return self.allreduce(np.array(numbers, np.int64), "sum").tolist()

    def wait(self, until: Callable[[], object] | None = None) -> None:  # noqa: B027  where launches wait themselves
        """Wait for this rank's device, under the deadline of a verb: behind a launch that waits for other ranks.

        No longer than `until` says so.
        """

    @abstractmethod
    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, in whichever thread this communicator fails or is aborted; at once if it has failed."""

    @abstractmethod
    def close(self) -> None:
        """End the network in order; every rank calls it."""

    @abstractmethod
    def abort(self, cause: str = "aborted") -> None:
        """End it at once, from any thread: verbs under way on this rank raise CommAborted(cause)."""
