"""The communicator of ranks on GPUs, over NCCL; one process and one GPU a rank.

Design, and its measurements:
- `nccl.bindings` with a blocking communicator takes 5.7 us of host time a call, `nccl.core` 15 us, a non-blocking
  communicator 52 us. Opening a blocking one waits for ever for a missing rank, so it runs in a thread, under a
  deadline, and only after the caller knows that every rank is ready.
- The first collective of each kind connects, which takes seconds: opening runs one of each kind.
- Verbs on device arrays are only enqueued, on CuPy's current stream. Verbs that return host data poll an event,
  because a thread that blocks in a driver call cannot notice the deadline or an abort.
- `abort` frees a stream on which a verb hangs, from another thread. A program that waited for the stream continues,
  with garbage, until its next verb raises: end a program with a barrier. A watchdog aborts when a verb has not
  finished by its deadline; it queries an event recorded after the verb, so that a long kernel is not mistaken for a
  dead peer.
- An abort was seen to hang when a peer is gone: it runs in a thread, which is joined for GRACE_S at most.
- NCCL reduces no 16-bit integers, and compares nothing between ranks: different shapes go unnoticed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from nccl.bindings import nccl as bindings

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.errors import CommAborted, CommTimeout, RendezvousTimeout, UsageError
from mgraph.types import Array

DATA_TYPES = {
    name: int(getattr(bindings.DataType, name.capitalize()))
    for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
}
OPERATORS = {
    "min": int(bindings.RedOp.Min),
    "max": int(bindings.RedOp.Max),
    "sum": int(bindings.RedOp.Sum),
}
# Verbs that do not reduce send bytes, whatever the dtype.
BYTES = DATA_TYPES["uint8"]
# Host arrays up to this size are copied through pinned memory, asynchronously.
STAGE_BYTES = 64 << 10
# Poll without a pause for SPIN_S, then sleep PAUSE_S between polls. A verb takes 8 us when all ranks have arrived, a
# search in one launch 1 to some 10 ms, and Dask's tasks reach the workers within a few ms. A rank that sleeps past the
# verb before a search delays all others in it by 150 us, and the first work of a thread after a sleep takes four times
# as long. The polling thread does not yield the GIL explicitly: other threads run all the same, and with a yield BFS of
# rmat28 on four H200 took 60 us longer.
SPIN_S = 50e-3
PAUSE_S = 100e-6
WATCH_S = 1.0
# An abort takes 0.5 s; after this long the thread that runs it is no longer waited for.
GRACE_S = 5.0
# Large enough for NCCL's ring, which is connected separately from the channels of small arrays.
WARM_BYTES = 4 << 20


def new_unique_id() -> bytes:
    """Return NCCL's unique id of a new network: one rank makes it, all ranks open with it."""
    return bytes(bindings.get_unique_id())


def open_nccl(
    rank: int, size: int, unique_id: bytes, timeout_s: float = DEFAULT_TIMEOUT_S, names: Sequence[str] = ()
) -> Communicator:
    """Open this rank's communicator on the current device and connect it to all others.

    Parameters
    ----------
    rank, size
        This rank, and the number of ranks, each with a GPU of its own.
    unique_id
        The result of `new_unique_id` on one of the ranks.
    timeout_s
        Deadline of opening and of every verb. After a RendezvousTimeout a thread of this process may still be
        inside NCCL: end the process.
    names
        Where each rank runs, for messages.
    """
    device = runtime.getDevice()
    opened: Future[NcclCommunicator] = Future()

    def connect() -> None:
        try:
            runtime.setDevice(device)
            handle = bindings.comm_init_rank(size, bindings.UniqueId.from_buffer(bytearray(unique_id)), rank)
            comm = NcclCommunicator(rank, size, handle, timeout_s, names)
            comm.warm_up()
        except Exception as error:
            opened.set_exception(error)
            return
        opened.set_result(comm)

    threading.Thread(target=connect, name="mgraph-nccl-open", daemon=True).start()
    try:
        return opened.result(timeout_s)
    except FutureTimeout:
        opened.add_done_callback(_drop)
        raise RendezvousTimeout(
            f"rank {rank}: NCCL did not connect {size} ranks within {timeout_s:g} s (it does not report which is "
            "missing): see that all are ready before any opens, and end this process"
        ) from None
    except bindings.NCCLError as error:
        raise CommAborted(f"rank {rank}: NCCL did not open: {error}") from error


def _drop(late: Future) -> None:
    """Abort a communicator that opened after the caller's deadline."""
    if late.exception() is None:
        late.result().abort()


class NcclCommunicator(Communicator):
    """One process's end of an NCCL communicator."""

    may_have_peer_memory = True

    def __init__(self, rank: int, size: int, handle: Any, timeout_s: float, names: Sequence[str] = ()) -> None:
        self.rank = rank
        self.size = size
        self._names = names
        self.bytes_sent = 0
        self._handle = handle
        self._timeout_s = timeout_s
        self._device = runtime.getDevice()
        self._failure: CommAborted | CommTimeout | None = None
        self._failing = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        # Held during calls of NCCL, so that an abort does not free the communicator under them.
        self._inside = threading.Lock()
        self._ended = threading.Event()
        self._event = cupy.cuda.Event(disable_timing=True)
        self._deadline: float | None = None
        self._verb = "open"
        self._staging = cupy.empty(STAGE_BYTES, np.uint8)
        self._pinned_memory = cupy.cuda.alloc_pinned_memory(STAGE_BYTES)
        self._pinned = np.frombuffer(self._pinned_memory, np.uint8, STAGE_BYTES)
        self._word = cupy.zeros(1, np.uint8)
        threading.Thread(target=self._watch, name=f"mgraph-nccl-{rank}", daemon=True).start()

    def warm_up(self) -> None:
        """Run one verb of each kind: NCCL connects each at its first use."""
        self._reduce("open", cupy.zeros(WARM_BYTES, np.uint8), "max")
        word = np.zeros(1, np.int64)
        self.alltoallv([word] * self.size)
        self.barrier()
        self.bytes_sent = 0

    def barrier(self) -> None:
        self._reduce("barrier", self._word, "max")
        self._wait()

    def broadcast(self, x: Array, root: int) -> Array:
        self.bytes_sent += calls.broadcast_call(x, root, self.rank, self.size).nbytes

        def broadcast(on_device: cupy.ndarray) -> None:
            pointer = on_device.data.ptr
            self._enqueue("broadcast", bindings.broadcast, pointer, pointer, x.nbytes, BYTES, root)

        return self._apply(broadcast, x)

    def allreduce(self, x: Array, op: str) -> Array:
        self.bytes_sent += calls.allreduce_call(x, op, self.size).nbytes
        if x.dtype.name not in DATA_TYPES:
            raise UsageError(f"allreduce: NCCL reduces no {x.dtype.name}; it does {', '.join(DATA_TYPES)}")
        return self._apply(lambda on_device: self._reduce("allreduce", on_device, op), x)

    def allgather(self, part: Array, out: Array) -> Array:
        self.bytes_sent += calls.allgather_call(part, out, self.size).nbytes
        if isinstance(part, np.ndarray) != isinstance(out, np.ndarray):
            raise UsageError("allgather: part and out must both be on the host or both on the device")
        if isinstance(out, np.ndarray):
            self._gather_on_host(part, out)
        elif out.size:
            self._gather(part.data.ptr, out, part.nbytes)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        self.bytes_sent += calls.alltoallv_call(parts, into, self.rank, self.size).nbytes
        on_host = isinstance(parts[self.rank], np.ndarray)
        outgoing = [cupy.asarray(part) for part in parts]
        if into is not None and not on_host:
            self._enqueue("alltoallv", self._send_and_receive, outgoing, into)
            into[self.rank][...] = parts[self.rank]
            return list(into)
        lengths = self._exchange_lengths(parts)
        incoming = [cupy.empty(n if r != self.rank else 0, outgoing[0].dtype) for r, n in enumerate(lengths)]
        self._enqueue("alltoallv", self._send_and_receive, outgoing, incoming)
        if on_host:
            self._wait()
            incoming = [part.get() for part in incoming]
        incoming[self.rank] = parts[self.rank]
        return incoming if into is None else calls.copy_into(into, incoming)

    def wait(self, until: Callable[[], object] | None = None) -> None:
        self._verb = "a persistent kernel"
        self._deadline = time.monotonic() + self._timeout_s
        self._wait(until)

    def when_failed(self, callback: Callable[[], object]) -> None:
        with self._failing:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def close(self) -> None:
        if self.peer_buffers is not None and self._failure is None:
            self.peer_buffers.close(self.barrier)
        self.peer_buffers = None
        with self._failing:
            orderly = self._failure is None
            self._failure = self._failure or CommAborted("the communicator is closed")
        if orderly:
            self._event.record()
            done = self._poll(time.monotonic() + self._timeout_s)
            self._ended.set()
            self._free(bindings.comm_destroy if done else bindings.comm_abort)

    def abort(self, cause: str = "aborted") -> None:
        self._fail(CommAborted(cause))

    def _apply(self, verb: Callable[[cupy.ndarray], None], x: Array) -> Array:
        """Run an in-place verb on a device array, or on a device copy of a host array."""
        if not isinstance(x, np.ndarray):
            if x.size:
                verb(x)
            return x
        if x.size:
            on_device = self._upload(x)
            verb(on_device)
            self._download(on_device, x)
        return x

    def _reduce(self, name: str, x: cupy.ndarray, op: str) -> None:
        pointer = x.data.ptr
        self._enqueue(name, bindings.all_reduce, pointer, pointer, x.size, DATA_TYPES[x.dtype.name], OPERATORS[op])

    def _gather(self, pointer: int, out: cupy.ndarray, nbytes: int) -> None:
        self._enqueue("allgather", bindings.all_gather, pointer, out.data.ptr, nbytes, BYTES)

    def _gather_on_host(self, part: np.ndarray, out: np.ndarray) -> None:
        if out.size:
            out.reshape(self.size, part.size)[self.rank] = part.reshape(-1)
            on_device = self._upload(out)
            self._gather(on_device.data.ptr + self.rank * part.nbytes, on_device, part.nbytes)
            self._download(on_device, out)

    def _exchange_lengths(self, parts: Sequence[Array]) -> list[int]:
        """Allgather the lengths and dtypes of all parts; return the lengths that this rank receives."""
        table = np.empty((self.size, self.size + 1), np.int64)
        self._gather_on_host(np.array([*(part.size for part in parts), ord(parts[0].dtype.char)], np.int64), table)
        for other in np.flatnonzero(table[:, -1] != table[0, -1])[:1]:
            kinds = [f"alltoallv({np.dtype(chr(table[r, -1])).name})" for r in (0, other)]
            self._fail(calls.mismatch(0, kinds[0], int(other), kinds[1]))
            self._check()
        return table[:, self.rank].tolist()

    def _send_and_receive(
        self, outgoing: Sequence[cupy.ndarray], incoming: Sequence[cupy.ndarray], handle: Any, stream: int
    ) -> None:
        """Post all sends and receives as one group, so that none waits for another."""
        bindings.group_start()
        try:
            for r in range(self.size):
                if r != self.rank and outgoing[r].size:
                    bindings.send(outgoing[r].data.ptr, outgoing[r].nbytes, BYTES, r, handle, stream)
                if r != self.rank and incoming[r].size:
                    bindings.recv(incoming[r].data.ptr, incoming[r].nbytes, BYTES, r, handle, stream)
        finally:
            bindings.group_end()

    def _enqueue(self, name: str, verb: Callable[..., None], *args: Any) -> None:
        """Enqueue a verb on the current stream, and behind it an event for the watchdog."""
        stream = cupy.cuda.get_current_stream()
        # Set before the verb: the call may hang while NCCL connects, and the watchdog must notice that too.
        self._verb = name
        self._deadline = time.monotonic() + self._timeout_s
        with self._inside:
            self._check()
            try:
                verb(*args, self._handle, stream.ptr)
                self._event.record(stream)
                return
            except bindings.NCCLError as error:
                failure = CommAborted(f"rank {self.rank}: {name}: {error}")
        self._fail(failure)
        self._check()

    def _upload(self, x: np.ndarray) -> cupy.ndarray:
        """Return a device array with the data of a host array."""
        if x.nbytes > STAGE_BYTES:
            return cupy.asarray(x)
        # Safe to overwrite: the previous verb on a host array waited until the pinned memory was read.
        self._pinned[: x.nbytes] = x.reshape(-1).view(np.uint8)
        stream = cupy.cuda.get_current_stream().ptr
        kind = runtime.memcpyHostToDevice
        runtime.memcpyAsync(self._staging.data.ptr, self._pinned_memory.ptr, x.nbytes, kind, stream)
        return self._staging[: x.nbytes].view(x.dtype)

    def _download(self, on_device: cupy.ndarray, x: np.ndarray) -> None:
        """Wait until a device array is ready and copy it into a host array."""
        if x.nbytes > STAGE_BYTES:
            self._wait()
            on_device.get(out=x)
            return
        stream = cupy.cuda.get_current_stream().ptr
        kind = runtime.memcpyDeviceToHost
        runtime.memcpyAsync(self._pinned_memory.ptr, on_device.data.ptr, x.nbytes, kind, stream)
        self._wait()
        x.reshape(-1).view(np.uint8)[:] = self._pinned[: x.nbytes]

    def _wait(self, until: Callable[[], object] | None = None) -> None:
        """Wait until the current stream reaches this point; raise after the deadline or an abort."""
        self._event.record()
        if not self._poll(time.monotonic() + self._timeout_s, until):
            self._fail(self._timeout_error())
        self._check()

    def _poll(self, deadline: float, until: Callable[[], object] | None = None) -> bool:
        """Return False if the deadline passes before the event; an abort or `until` ends the wait too."""
        spin_until = time.monotonic() + SPIN_S
        while not self._event.done and not (until and until()):
            now = time.monotonic()
            if now > deadline:
                return False
            if self._ended.is_set():
                return True
            if now > spin_until:
                time.sleep(PAUSE_S)
        return True

    def _check(self) -> None:
        if self._failure is not None:
            raise calls.fresh_copy(self._failure)

    def _timeout_error(self) -> CommTimeout:
        others = calls.name_ranks([r for r in range(self.size) if r != self.rank], self._names)
        return CommTimeout(
            f"rank {self.rank}: {self._verb}: not all of the {self.size} ranks arrived within {self._timeout_s:g} s "
            f"(one or more of {others}; NCCL does not report which): {calls.next_step(self.size, self._names)}"
        )

    def _fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every later verb raise `error`, and free the stream of running ones; from any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = error
            # Before NCCL's abort, which may take long: they end kernels that wait for other ranks.
            for callback in self._callbacks:
                callback()
        self._ended.set()
        self._free(bindings.comm_abort)

    def _free(self, destructor: Callable[[Any], None]) -> None:
        """Free the communicator in a thread, and wait for it at most GRACE_S."""

        def free() -> None:
            # Without the lock after a second: only the abort releases a call that hangs inside NCCL.
            held = self._inside.acquire(timeout=1.0)
            try:
                destructor(self._handle)
            except bindings.NCCLError:
                pass  # expected: a broken communicator is the reason for most aborts
            finally:
                if held:
                    self._inside.release()

        thread = threading.Thread(target=free, name="mgraph-nccl-leave", daemon=True)
        thread.start()
        thread.join(GRACE_S)

    def _watch(self) -> None:
        """Abort when an enqueued verb misses its deadline, or NCCL reports a broken link."""
        runtime.setDevice(self._device)
        while not self._ended.wait(WATCH_S):
            hangs = self._inside.locked() or not self._event.done
            if hangs and self._deadline is not None and time.monotonic() > self._deadline:
                self._fail(self._timeout_error())
                return
            error = self._link_error()
            if error is not None:
                self._fail(CommAborted(f"rank {self.rank}: NCCL: {error}"))
                return

    def _link_error(self) -> str | None:
        if not self._inside.acquire(blocking=False):
            return None  # a verb is being enqueued: check again later
        try:
            if self._failure is not None:
                return None
            code = int(bindings.comm_get_async_error(self._handle))
        except bindings.NCCLError as error:
            return str(error)
        finally:
            self._inside.release()
        return (
            None if code in (bindings.Result.Success, bindings.Result.InProgress) else bindings.get_error_string(code)
        )
