"""Ranks in different processes or hosts, over `distributed.comm`: host arrays, sent directly to each other.

What drove it: no rank is a hub, every pair of ranks has a link (endpoint.py
opens them). All verbs are one or two rounds of a single step, `_exchange`: send an array to some ranks, wait
for one from some ranks. A link has one reader, which reads whether a verb is under way or not: it sees a
peer's death at once, and nobody can be blocked by a peer that sends first and reads later. The thread that
calls a verb waits without polling; the links live on the endpoint's loop.

Messages are tuples: data, taken, abort, bye. `write` returns before the bytes are out, so a large array
may be touched again only when its receiver has answered "taken"; a small one is copied.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import numpy as np
from distributed.comm import Comm
from distributed.protocol import Serialized

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.comm.endpoint import GRACE_S, SocketEndpoint
from mgraph.comm.threads import cut, reduce_arrays
from mgraph.errors import CommAborted, CommMismatch, CommTimeout, UsageError
from mgraph.types import Array

# Up to here a copy costs less than the answer "taken", and a second round more than sending everything to all.
SMALL_BYTES = 256 << 10
# How long a rank that fails waits for the others to have heard why; the dead do not answer.
FAREWELL_S = 0.5
# The first large frame of a message shares its buffer with the headers, and would be unaligned.
_PADDING = memoryview(bytearray(1))
DATA, TAKEN, ABORT, BYE = range(4)
BYTE = np.dtype(np.uint8)
FAILURES = {kind.__name__: kind for kind in (CommAborted, CommMismatch, CommTimeout)}


def open_sockets(
    endpoint: SocketEndpoint, addresses: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S
) -> Communicator:
    """Link the endpoint with those of all other ranks and return the communicator.

    Parameters
    ----------
    endpoint
        This rank's endpoint; the communicator owns it from here on, and it is closed if this fails.
    addresses
        `endpoint.address` of every rank, in order of rank.
    timeout_s
        How long to wait for the others, here and in every verb.
    """
    if len(addresses) != endpoint.size or addresses[endpoint.rank] != endpoint.address:
        raise UsageError(
            f"rank {endpoint.rank} of {endpoint.size} got {len(addresses)} addresses, or not its own in its own place"
        )
    try:
        endpoint.call(endpoint.link(list(addresses), timeout_s), timeout_s + GRACE_S)
    except BaseException:
        endpoint.close()
        raise
    return SocketCommunicator(endpoint, timeout_s)


class _Exchange:
    """One step of a verb: what goes out, and who has not yet answered."""

    def __init__(
        self, number: int, description: tuple, outgoing: dict[int, np.ndarray], sources: Iterable[int]
    ) -> None:
        self.number, self.description = number, description
        # Made here, while the caller waits: it may change a small array as soon as all answers are in.
        payloads = {id(array): _payload(array) for array in outgoing.values()}
        self.outgoing = {r: payloads[id(array)] for r, array in outgoing.items()}
        self.waiting = set(sources)
        self.untaken = {r for r, payload in self.outgoing.items() if isinstance(payload, Serialized)}
        self.sent = False
        self.received: dict[int, Any] = {}
        self.done: concurrent.futures.Future[None] = concurrent.futures.Future()


class SocketCommunicator(Communicator):
    """One process's end of a network of sockets; its verbs run on the calling thread, its links on the loop's."""

    def __init__(self, endpoint: SocketEndpoint, timeout_s: float) -> None:
        self.rank, self.size = endpoint.rank, endpoint.size
        self.bytes_sent = 0
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._links = endpoint.links
        # The other ranks, starting at the next, so that not all send to the same one first.
        self._peers = [(self.rank + i) % self.size for i in range(1, self.size)]
        self._failure: CommAborted | CommTimeout | None = None
        self._failing = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._number = 0  # of the exchange under way: a fast peer may already send for a later one
        # These belong to the loop's thread.
        self._inbox: dict[int, deque] = {r: deque() for r in self._peers}
        self._left: dict[int, asyncio.Future[None]] = {r: endpoint.loop.create_future() for r in self._peers}
        self._current: _Exchange | None = None
        self._tasks: set[asyncio.Task] = set()
        for peer in self._peers:
            endpoint.post(self._spawn, self._read(peer, self._links[peer]))

    # The verbs, on the calling thread.

    def barrier(self) -> None:
        nothing = np.empty(0, np.uint8)
        self._exchange(calls.BARRIER.description, dict.fromkeys(self._peers, nothing), self._peers)

    def broadcast(self, x: Array, root: int) -> Array:
        call = self._count(calls.broadcast_call(_host(x), root, self.rank, self.size))
        if self.rank == root:
            self._exchange(call, dict.fromkeys(self._peers, x), ())
        else:
            x.reshape(-1)[:] = self._exchange(call, {}, (root,), x.dtype)[root]
        return x

    def allreduce(self, x: Array, op: str) -> Array:
        call = self._count(calls.allreduce_call(_host(x), op, self.size))
        flat = x.reshape(-1)
        if x.nbytes <= SMALL_BYTES:
            self._reduce_into(flat, self._exchange(call, dict.fromkeys(self._peers, flat), self._peers, x.dtype), op)
            return x
        # Each rank reduces one slice of all arrays, then tells the others.
        slices = cut(flat.size, self.size)
        mine = flat[slices[self.rank]]
        received = self._exchange((*call, "scatter"), {r: flat[slices[r]] for r in self._peers}, self._peers, x.dtype)
        self._reduce_into(mine, received, op)
        received = self._exchange((*call, "gather"), dict.fromkeys(self._peers, mine), self._peers, x.dtype)
        for r in self._peers:
            flat[slices[r]] = received[r]
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        call = self._count(calls.allgather_call(_host(part), _host(out), self.size))
        received = self._exchange(call, dict.fromkeys(self._peers, part), self._peers, part.dtype)
        received[self.rank] = part.reshape(-1)
        rows = out.reshape(self.size, part.size)
        for r in range(self.size):
            rows[r] = received[r]
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        call = self._count(calls.alltoallv_call([_host(part) for part in parts], into, self.rank, self.size))
        received = self._exchange(call, {r: parts[r] for r in self._peers}, self._peers, parts[0].dtype)
        received[self.rank] = parts[self.rank]
        if into is not None:
            return calls.filled(into, [received[r] for r in range(self.size)])
        # What came in a message of bytes may not be written to, or not be aligned.
        return [received[r] if received[r].flags.carray else received[r].copy() for r in range(self.size)]

    def when_failed(self, callback: Callable[[], object]) -> None:
        with self._failing:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def close(self) -> None:
        with self._failing:
            orderly = self._failure is None
            self._failure = self._failure or CommAborted("the communicator is closed")
        if orderly:
            # Where this fails, the endpoint's end closes the links without ceremony.
            with contextlib.suppress(RuntimeError, concurrent.futures.TimeoutError):
                self._endpoint.call(self._take_leave(), 2 * GRACE_S)
        else:
            self._endpoint.wait(GRACE_S)  # for the farewell, which ends the loop: the peers may not have heard yet
        self._endpoint.close()

    def abort(self, cause: str = "aborted") -> None:
        self._fail(CommAborted(cause))

    def _count(self, call: calls.Call) -> tuple:
        self.bytes_sent += call.nbytes
        return call.description

    def _reduce_into(self, mine: np.ndarray, received: dict[int, np.ndarray], op: str) -> None:
        """Reduce in order of rank: the sum of floats is the same each time, and the same as among threads."""
        if received:
            mine[:] = reduce_arrays([mine if r == self.rank else received[r] for r in range(self.size)], op)

    def _exchange(
        self,
        description: tuple,
        outgoing: dict[int, Array],
        sources: Iterable[int],
        dtype: np.dtype = BYTE,
    ) -> dict[int, np.ndarray]:
        """Send arrays to some ranks, wait for one from each source; return these, flat."""
        self._number += 1
        exchange = _Exchange(self._number, description, outgoing, sources)
        if self._failure is not None:
            raise calls.again(self._failure)
        if not self._peers:
            return {}
        self._endpoint.post(self._begin, exchange)
        try:
            exchange.done.result(self._timeout_s)
        except concurrent.futures.TimeoutError:
            late = exchange.waiting | exchange.untaken
            late_error = calls.overdue(description, sorted(late), self._timeout_s)
            self._fail(late_error)
            raise calls.again(self._failure or late_error) from None
        return {r: _array(payload, dtype) for r, payload in exchange.received.items()}

    def _fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every verb under way, and every later one, raise `error`, here and at the peers; from any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = error
            for callback in self._callbacks:
                callback()
        self._endpoint.post(self._break_off)

    # The rest runs on the loop's thread.

    def _spawn(self, coroutine: Coroutine) -> None:
        """Start a task and keep it from being collected."""
        task = self._endpoint.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, exchange: _Exchange) -> None:
        if self._failure is not None:
            exchange.done.set_exception(self._failure)
            return
        self._current = exchange
        self._spawn(self._send(exchange))
        self._match()

    async def _send(self, exchange: _Exchange) -> None:
        try:
            for peer, payload in exchange.outgoing.items():
                await self._links[peer].write((DATA, exchange.number, exchange.description, payload))
            exchange.sent = True
            self._match()
        except Exception as error:
            # A broken link has a reader, which knows better whether the peer died or said why it left.
            await asyncio.sleep(0.1)
            self._fail(CommAborted(f"sending to rank {peer} failed: {error}"))

    async def _read(self, peer: int, comm: Comm) -> None:
        """Take what a peer sends, until it leaves."""
        try:
            while True:
                kind, *content = await comm.read()
                if kind == DATA:
                    self._inbox[peer].append(content)
                elif kind == TAKEN and self._current is not None:
                    self._current.untaken.discard(peer)
                elif kind == ABORT:
                    name, cause = content
                    self._fail(FAILURES[name](cause))
                if kind in (ABORT, BYE) and not self._left[peer].done():
                    self._left[peer].set_result(None)
                self._match()
        except Exception as error:
            if not self._left[peer].done():
                self._left[peer].set_result(None)
                self._fail(CommAborted(f"rank {peer} is gone, its link broke: {error}"))

    def _match(self) -> None:
        """Give the exchange under way what has come for it."""
        exchange = self._current
        if exchange is None:
            return
        for peer, inbox in self._inbox.items():
            if inbox and inbox[0][0] <= exchange.number:
                _, description, payload = inbox.popleft()
                if peer not in exchange.waiting or description != exchange.description:
                    self._fail(calls.mismatch(self.rank, exchange.description, peer, description))
                    return
                exchange.waiting.discard(peer)
                exchange.received[peer] = payload
                if isinstance(payload, Serialized):
                    self._spawn(self._tell(peer, TAKEN))
            elif peer in exchange.waiting and not inbox and self._left[peer].done():
                self._fail(CommAborted(f"rank {peer} closed the communicator"))
                return
        # Sent too: a rank that ends right after a verb leaves nobody waiting in that verb.
        if exchange.sent and not exchange.waiting and not exchange.untaken:
            self._current = None
            exchange.done.set_result(None)

    async def _tell(self, peer: int, *message: Any) -> None:
        """Write to a peer; if its link is broken, its reader reports that."""
        with contextlib.suppress(OSError):
            await self._links[peer].write(message)

    def _break_off(self) -> None:
        """Wake the verb under way, tell the peers why, and end."""
        exchange, self._current = self._current, None
        if exchange is not None:
            exchange.done.set_exception(self._failure)
        self._spawn(self._farewell((ABORT, type(self._failure).__name__, str(self._failure))))

    async def _take_leave(self) -> None:
        """Say goodbye, and wait a little for the others' goodbyes: a link closed too early loses what it carries."""
        for peer in self._peers:
            await self._tell(peer, BYE)
        if self._left:
            await asyncio.wait(self._left.values(), timeout=GRACE_S)

    async def _farewell(self, message: tuple) -> None:
        for peer in self._peers:
            await self._tell(peer, *message)
        # A link closed with something unread in it is reset, and what was told is lost: others would name this rank.
        if self._left:
            await asyncio.wait(self._left.values(), timeout=FAREWELL_S)
        closing = [asyncio.ensure_future(self._links[peer].close()) for peer in self._peers]
        if closing:
            await asyncio.wait(closing, timeout=GRACE_S)
        self._endpoint.loop.stop()


def _payload(array: np.ndarray) -> bytes | Serialized:
    """Return what travels: bytes inside the message, or a view of a large array beside it, never compressed."""
    if array.nbytes <= SMALL_BYTES:
        return array.tobytes()
    return Serialized({}, [_PADDING, array.reshape(-1).view(np.uint8).data])


def _array(payload: bytes | Serialized, dtype: np.dtype) -> np.ndarray:
    """Return the flat array that came."""
    buffer = payload.frames[1] if isinstance(payload, Serialized) else payload
    return np.frombuffer(buffer, dtype) if len(buffer) else np.empty(0, dtype)


def _host(x: Array) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        raise UsageError(f"sockets carry NumPy arrays, not {type(x).__name__}: use NCCL, or copy the array to the host")
    return x
