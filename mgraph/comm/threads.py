"""The communicator of ranks that are threads of one process and read each other's arrays.

Ranks in the caller's process, one rank included, must cost nearly nothing, and the work of a reduction is shared by all
ranks. A small array is copied before it is published, so that its owner need not wait until the others have read it:
one rendezvous a verb. A large array is divided into `size` slices; each rank reduces one slice of all arrays, in order
of rank, and then copies the other slices from their ranks.

CuPy is never imported: NumPy's functions dispatch to it. Ranks on one device may use different streams, so a device is
synchronized before its array is published.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.errors import CommAborted, CommMismatch, CommTimeout, UsageError
from mgraph.types import Array

UFUNCS = {"min": np.minimum, "max": np.maximum, "sum": np.add}
# Copying this much costs less than a second rendezvous (about 30 us).
SMALL_BYTES = 32 << 10


def open_threads(size: int, timeout_s: float = DEFAULT_TIMEOUT_S, names: Sequence[str] = ()) -> list[Communicator]:
    """Return the communicators of `size` ranks that run as threads of this process.

    Parameters
    ----------
    size
        Number of ranks. Rank r's thread uses element r of the returned list.
    timeout_s
        How long a verb waits for the other ranks.
    names
        Where each rank runs, for messages.
    """
    if size < 1:
        raise UsageError(f"{size} ranks: there must be at least one")
    if size == 1:
        return [SoleRank()]
    group = _Group(size, timeout_s, names)
    return [ThreadCommunicator(group, rank) for rank in range(size)]


def reduce_arrays(arrays: Sequence[Array], op: str) -> Array:
    """Reduce two or more flat arrays elementwise, in the given order."""
    ufunc = UFUNCS[op]
    total = ufunc(arrays[0], arrays[1])
    for array in arrays[2:]:
        ufunc(total, array, out=total)
    return total


def even_slices(count: int, size: int) -> list[slice]:
    """Divide 0..count into `size` slices of lengths that differ by at most one."""
    return [slice(count * r // size, count * (r + 1) // size) for r in range(size)]


class SoleRank(Communicator):
    """The communicator of a single rank: every verb returns its input."""

    rank = 0
    size = 1
    may_have_peer_memory = True

    def __init__(self) -> None:
        self.bytes_sent = 0
        self._failure: CommAborted | None = None
        self._callbacks: list[Callable[[], object]] = []

    def barrier(self) -> None:
        if self._failure is not None:
            raise calls.fresh_copy(self._failure)

    def broadcast(self, x: Array, root: int) -> Array:
        self.barrier()
        calls.broadcast_call(x, root, 0, 1)
        return x

    def allreduce(self, x: Array, op: str) -> Array:
        self.barrier()
        calls.allreduce_call(x, op, 1)
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        self.barrier()
        calls.allgather_call(part, out, 1)
        out.reshape(-1)[:] = part.reshape(-1)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        self.barrier()
        calls.alltoallv_call(parts, into, 0, 1)
        return list(parts) if into is None else calls.copy_into(into, parts)

    def when_failed(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if self._failure is not None:
            callback()

    def close(self) -> None:
        self.abort("the communicator is closed")

    def abort(self, cause: str = "aborted") -> None:
        if self._failure is None:
            self._failure = CommAborted(cause)
            for callback in self._callbacks:
                callback()


class _Group:
    """The state that the threads share: one rendezvous after another, and the failure."""

    def __init__(self, size: int, timeout_s: float, names: Sequence[str]) -> None:
        self.size = size
        self.timeout_s = timeout_s
        self.names = names
        self._changed = threading.Condition()  # over a reentrant lock
        # By rank, the call and the value of each rank that has arrived at the current rendezvous.
        self._arrived: dict[int, tuple[tuple, Any]] = {}
        self._failure: CommAborted | CommTimeout | None = None
        self._callbacks: list[Callable[[], object]] = []

    def rendezvous(self, rank: int, description: tuple, value: Any) -> list[Any]:
        """Wait until every rank has arrived; return their values in order of rank."""
        with self._changed:
            arrived = self._arrived
            if self._failure is None:
                arrived[rank] = (description, value)
                if len(arrived) == self.size:
                    self._complete(arrived)
                else:
                    self._wait_for_others(arrived, description)
            # A complete rendezvous returns values, even if a faster rank has closed the communicator since.
            if self._failure is not None and (len(arrived) < self.size or isinstance(self._failure, CommMismatch)):
                raise calls.fresh_copy(self._failure)
        return [arrived[r][1] for r in range(self.size)]

    def fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every running and later verb raise `error`."""
        with self._changed:
            if self._failure is None:
                self._failure = error
                for callback in self._callbacks:
                    callback()
                self._changed.notify_all()

    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the group fails, at once if it has failed."""
        with self._changed:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def _complete(self, arrived: dict[int, tuple[tuple, Any]]) -> None:
        """Wake all ranks if they made the same call, else fail.

        The next rendezvous uses a new dict: fast ranks can begin it while slow ones still read this one.
        """
        self._arrived = {}
        first = arrived[0][0]
        for rank, (description, _) in arrived.items():
            if description != first:
                self.fail(calls.mismatch(rank, calls.describe(description), 0, calls.describe(first)))
        self._changed.notify_all()

    def _wait_for_others(self, arrived: dict[int, tuple[tuple, Any]], description: tuple) -> None:
        deadline = time.monotonic() + self.timeout_s
        while self._arrived is arrived and self._failure is None:
            if not self._changed.wait(deadline - time.monotonic()) and self._arrived is arrived:
                missing = [r for r in range(self.size) if r not in arrived]
                self.fail(calls.timeout_error(description[0], missing, self.timeout_s, self.names))


class ThreadCommunicator(Communicator):
    """One thread's end of a group of threads."""

    may_have_peer_memory = True

    def __init__(self, group: _Group, rank: int) -> None:
        self.rank = rank
        self.size = group.size
        self.bytes_sent = 0
        self._group = group

    def barrier(self) -> None:
        self._publish(calls.BARRIER)

    def broadcast(self, x: Array, root: int) -> Array:
        call = calls.broadcast_call(x, root, self.rank, self.size)
        small = x.nbytes <= SMALL_BYTES
        published = self._publish(call, (x.copy() if small else x) if self.rank == root else None)
        if self.rank != root:
            x[...] = published[root].reshape(x.shape)
        if not small:
            self._finish(x)
        return x

    def allreduce(self, x: Array, op: str) -> Array:
        call = calls.allreduce_call(x, op, self.size)
        flat = x.reshape(-1)
        if x.nbytes <= SMALL_BYTES:
            flat[:] = reduce_arrays(self._publish(call, flat.copy()), op)
            return x
        published = self._publish(call, flat)
        slices = even_slices(flat.size, self.size)
        own = slices[self.rank]
        # Until the next rendezvous this rank alone reads and writes its slice of all arrays.
        flat[own] = reduce_arrays([array[own] for array in published], op)
        self._finish(flat)
        for r in self._others():
            flat[slices[r]] = published[r][slices[r]]
        self._finish(flat)
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        call = calls.allgather_call(part, out, self.size)
        small = part.nbytes <= SMALL_BYTES
        published = self._publish(call, part.copy() if small else part)
        by_rank = out.reshape(self.size, part.size)
        for r in range(self.size):
            by_rank[r] = published[r].reshape(-1)
        if not small:
            self._finish(out)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        published = self._publish(calls.alltoallv_call(parts, into, self.rank, self.size), list(parts))
        incoming = [parts_of_rank[self.rank] for parts_of_rank in published]
        if into is None:
            received = [part if r == self.rank else part.copy() for r, part in enumerate(incoming)]
        else:
            received = calls.copy_into(into, incoming)
        self._finish(*received)
        return received

    def when_failed(self, callback: Callable[[], object]) -> None:
        self._group.when_failed(callback)

    def close(self) -> None:
        # Verbs are collective: in a correct program no rank waits for this one any more.
        self._group.fail(CommAborted(f"rank {self.rank} closed the communicator"))

    def abort(self, cause: str = "aborted") -> None:
        self._group.fail(CommAborted(cause))

    def _others(self) -> list[int]:
        """List the other ranks from the next one on, so that not all read from the same rank."""
        return [(self.rank + i) % self.size for i in range(1, self.size)]

    def _publish(self, call: calls.Call, value: Any = None) -> list[Any]:
        """Pass `value` to all ranks; return the values of all ranks."""
        self.bytes_sent += call.nbytes
        _synchronize(*(value if isinstance(value, list) else (value,)))
        return self._group.rendezvous(self.rank, call.description, value)

    def _finish(self, *arrays: Array) -> None:
        """Wait until no rank reads or writes published arrays any more."""
        _synchronize(*arrays)
        self._group.rendezvous(self.rank, ("the end of a verb",), None)


def _synchronize(*arrays: Array) -> None:
    """Wait for the device of the arrays: other threads read them, perhaps on another stream."""
    for array in arrays:
        synchronize = getattr(getattr(array, "device", None), "synchronize", None)
        if synchronize is not None:
            synchronize()
            return
