"""The communicator: verbs between ranks, the same over threads, sockets and NCCL.

A rank program receives its communicator as an argument; there is no global one. Verbs are collective (but for `wait`,
`when_failed` and `abort`): every rank calls the same ones in the same order. Arrays are contiguous and belong to the
rank's backend. Every communicator also accepts NumPy arrays, so that a program can reduce host counters whatever its
backend. Every verb has a deadline. A failure raises a named error (CommTimeout, CommAborted) on every rank, and the
communicator cannot be used afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from mgraph.comm.peer_buffers import PeerBuffers
from mgraph.types import Array

OPERATIONS = ("min", "max", "sum")
DEFAULT_TIMEOUT_S = 300.0


class Communicator(ABC):
    """One rank's end of a network of `size` ranks."""

    rank: int
    size: int
    # Bytes that this rank sent to others, counted from the arguments of the verbs.
    bytes_sent: int
    # Peer buffers, opened by peer_memory.py, and whether ranks of this kind can have peer access.
    peer_buffers: PeerBuffers | None = None
    may_have_peer_memory = False

    @abstractmethod
    def barrier(self) -> None:
        """Wait until every rank has called."""

    @abstractmethod
    def broadcast(self, x: Array, root: int) -> Array:
        """Copy `x` of rank `root` into `x` of every rank; return it."""

    @abstractmethod
    def allreduce(self, x: Array, op: str) -> Array:
        """Reduce `x` elementwise over all ranks, in place, by min, max or sum; return it."""

    @abstractmethod
    def allgather(self, part: Array, out: Array) -> Array:
        """Concatenate the ranks' parts, of equal length, into `out`; `part` may be its own slice of `out`."""

    @abstractmethod
    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        """Send parts[r] to rank r; return the part that each rank sent to this one.

        Lengths may differ and may be 0; dtypes must agree. The part for the own rank is returned itself, not a copy.
        If every rank knows the lengths it will receive, each passes `into`: one array for each rank, its own included,
        into which the parts are received. Lengths are then not exchanged, and NCCL does not check them.
        """

    def any(self, flag: bool) -> bool:
        """Return whether `flag` holds on any rank."""
        return bool(self.sum(int(flag))[0])

    def sum(self, *numbers: int) -> list[int]:
        """Sum a few integers over the ranks in one reduction: the control words of a superstep."""
        return self.allreduce(np.array(numbers, np.int64), "sum").tolist()

    def wait(self, until: Callable[[], object] | None = None) -> None:  # noqa: B027  a no-op if launches are synchronous
        """Wait for this rank's device, under a verb's deadline, or until `until` returns true.

        For launches that wait for other ranks, which would otherwise hang when one of them fails.
        """

    @abstractmethod
    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when this communicator fails or is aborted, in the thread that notices.

        At once if it has failed already.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the network in order; every rank calls it."""

    @abstractmethod
    def abort(self, cause: str = "aborted") -> None:
        """Close at once, from any thread: running verbs of this rank raise CommAborted(cause)."""
