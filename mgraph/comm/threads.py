"""Ranks that are threads of one process: they meet, and read each other's arrays.

What drove it: ranks in the caller's process, p = 1 included, must cost nearly nothing,
and no rank may reduce for all. A small array is copied when it is shown, so that its owner need not wait
until the others have read it: one meeting a verb. A large one is cut in p slices, each rank reduces one
of them, in order of rank, and everyone copies the others.

CuPy is never imported: NumPy's functions dispatch to it. Ranks on one device may use different
streams, so a device array is waited for before others may read it.
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
# Copying this much costs less than a second meeting (about 30 us).
SMALL_BYTES = 32 << 10


def open_threads(size: int, timeout_s: float = DEFAULT_TIMEOUT_S, names: Sequence[str] = ()) -> list[Communicator]:
    """Return the communicators of `size` ranks that will run as threads of this process.

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
    """Return the elementwise min, max or sum of two or more flat arrays, taken in the order given."""
    ufunc = UFUNCS[op]
    total = ufunc(arrays[0], arrays[1])
    for array in arrays[2:]:
        ufunc(total, array, out=total)
    return total


def cut(count: int, size: int) -> list[slice]:
    """Return `size` slices of 0..count, as equal as they can be."""
    return [slice(count * r // size, count * (r + 1) // size) for r in range(size)]


class SoleRank(Communicator):
    """The communicator of a rank that is alone: every verb gives back what it got."""

    rank, size = 0, 1
    may_reach = True

    def __init__(self) -> None:
        self.bytes_sent = 0
        self._failure: CommAborted | None = None
        self._callbacks: list[Callable[[], object]] = []

    def barrier(self) -> None:
        if self._failure is not None:
            raise calls.again(self._failure)

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
        return list(parts) if into is None else calls.filled(into, parts)

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
    """Where the threads meet: each brings its call and a value, and leaves with everyone's values."""

    def __init__(self, size: int, timeout_s: float, names: Sequence[str]) -> None:
        self.size, self.timeout_s, self.names = size, timeout_s, names
        self._changed = threading.Condition()  # over a reentrant lock
        self._meeting: dict[int, tuple[tuple, Any]] = {}
        self._failure: CommAborted | CommTimeout | None = None
        self._callbacks: list[Callable[[], object]] = []

    def meet(self, rank: int, description: tuple, value: Any) -> list[Any]:
        """Wait until every rank has come; return their values in order of rank."""
        with self._changed:
            meeting = self._meeting
            if self._failure is None:
                meeting[rank] = (description, value)
                if len(meeting) == self.size:
                    self._adjourn(meeting)
                else:
                    self._wait_for_others(meeting, description)
            # Who was all there leaves in peace, even if a faster rank has closed since.
            if self._failure is not None and (len(meeting) < self.size or isinstance(self._failure, CommMismatch)):
                raise calls.again(self._failure)
        return [meeting[r][1] for r in range(self.size)]

    def fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every verb under way, and every later one, raise `error`."""
        with self._changed:
            if self._failure is None:
                self._failure = error
                for callback in self._callbacks:
                    callback()
                self._changed.notify_all()

    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the group fails, at once if it has."""
        with self._changed:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def _adjourn(self, meeting: dict[int, tuple[tuple, Any]]) -> None:
        """End a complete meeting; the next one gets a dict of its own, so that nobody need be waited for."""
        self._meeting = {}
        first = meeting[0][0]
        for rank, (description, _) in meeting.items():
            if description != first:
                self.fail(calls.mismatch(rank, calls.describe(description), 0, calls.describe(first)))
        self._changed.notify_all()

    def _wait_for_others(self, meeting: dict[int, tuple[tuple, Any]], description: tuple) -> None:
        deadline = time.monotonic() + self.timeout_s
        while self._meeting is meeting and self._failure is None:
            if not self._changed.wait(deadline - time.monotonic()) and self._meeting is meeting:
                missing = [r for r in range(self.size) if r not in meeting]
                self.fail(calls.overdue(description[0], missing, self.timeout_s, self.names))


class ThreadCommunicator(Communicator):
    """One thread's end of a group of threads."""

    may_reach = True

    def __init__(self, group: _Group, rank: int) -> None:
        self.rank, self.size = rank, group.size
        self.bytes_sent = 0
        self._group = group

    def barrier(self) -> None:
        self._show(calls.BARRIER)

    def broadcast(self, x: Array, root: int) -> Array:
        call = calls.broadcast_call(x, root, self.rank, self.size)
        small = x.nbytes <= SMALL_BYTES
        shown = self._show(call, (x.copy() if small else x) if self.rank == root else None)
        if self.rank != root:
            x[...] = shown[root].reshape(x.shape)
        if not small:
            self._finish(x)
        return x

    def allreduce(self, x: Array, op: str) -> Array:
        call = calls.allreduce_call(x, op, self.size)
        flat = x.reshape(-1)
        if x.nbytes <= SMALL_BYTES:
            flat[:] = reduce_arrays(self._show(call, flat.copy()), op)
            return x
        shown = self._show(call, flat)
        slices = cut(flat.size, self.size)
        mine = slices[self.rank]
        # Only this rank reads its slice of anyone's array until the next meeting.
        flat[mine] = reduce_arrays([array[mine] for array in shown], op)
        self._finish(flat)
        for r in self._others():
            flat[slices[r]] = shown[r][slices[r]]
        self._finish(flat)
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        call = calls.allgather_call(part, out, self.size)
        small = part.nbytes <= SMALL_BYTES
        shown = self._show(call, part.copy() if small else part)
        rows = out.reshape(self.size, part.size)
        for r in range(self.size):
            rows[r] = shown[r].reshape(-1)
        if not small:
            self._finish(out)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        shown = self._show(calls.alltoallv_call(parts, into, self.rank, self.size), list(parts))
        came = [of_rank[self.rank] for of_rank in shown]
        if into is None:
            received = [part if r == self.rank else part.copy() for r, part in enumerate(came)]
        else:
            received = calls.filled(into, came)
        self._finish(*received)
        return received

    def when_failed(self, callback: Callable[[], object]) -> None:
        self._group.when_failed(callback)

    def close(self) -> None:
        # Verbs are collective, so nobody can need this rank any more, unless the program is wrong.
        self._group.fail(CommAborted(f"rank {self.rank} closed the communicator"))

    def abort(self, cause: str = "aborted") -> None:
        self._group.fail(CommAborted(cause))

    def _others(self) -> list[int]:
        """Return the other ranks, starting at the next, so that not all read from the same one."""
        return [(self.rank + i) % self.size for i in range(1, self.size)]

    def _show(self, call: calls.Call, value: Any = None) -> list[Any]:
        """Show `value` to all ranks and return what they show."""
        self.bytes_sent += call.nbytes
        _settle(*(value if isinstance(value, list) else (value,)))
        return self._group.meet(self.rank, call.description, value)

    def _finish(self, *arrays: Array) -> None:
        """Wait until no rank reads or writes the arrays that were shown."""
        _settle(*arrays)
        self._group.meet(self.rank, ("the end of a verb",), None)


def _settle(*arrays: Array) -> None:
    """Wait for the device whose arrays other threads will read, perhaps on another stream."""
    for array in arrays:
        synchronize = getattr(getattr(array, "device", None), "synchronize", None)
        if synchronize is not None:
            synchronize()
            return
