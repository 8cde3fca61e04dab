"""Ranks in different processes or hosts, over `distributed.comm`: host arrays, sent directly to each other.

What drove it (design.md 6, 8; facts.md): a cluster that speaks TLS must be spoken to in TLS, so the links
are Dask's own; but a worker's event loop must never wait for us, so an endpoint has a loop in a thread of
its own. No rank is a hub: every pair of ranks has a link. All verbs are one or two rounds of a single step,
`_exchange`: send an array to some ranks, wait for one from some ranks. A link has one reader, which reads
whether a verb is under way or not: it sees a peer's death at once, and nobody can be blocked by a peer
that sends first and reads later.

Opening takes two steps, because only the caller can tell the ranks each other's addresses:

    endpoint = SocketEndpoint(rank, size, host=...)
    comm = open_sockets(endpoint, [the addresses of all endpoints, by rank])

An address carries a nonce, and whoever connects must show a hash of all addresses: strangers, and ranks of
an earlier gang, are refused.

Messages are tuples: data, taken, abort, bye. `write` returns before the bytes are out, so a large array
may be touched again only when its receiver has answered "taken"; a small one is copied.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import hmac
import secrets
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import numpy as np
from distributed.comm import Comm, connect, listen
from distributed.protocol import Serialized

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.comm.threads import cut, reduce_arrays
from mgraph.errors import CommAborted, CommMismatch, CommTimeout, RendezvousTimeout, UsageError
from mgraph.types import Array

# Up to here a copy costs less than the answer "taken", and a second round more than sending everything to all.
SMALL_BYTES = 256 << 10
# How long a farewell may take when a peer no longer reads.
GRACE_S = 3.0
# The first large frame of a message shares its buffer with the headers, and would be unaligned.
_PADDING = memoryview(bytearray(1))
DATA, TAKEN, ABORT, BYE = range(4)
FAILURES = {kind.__name__: kind for kind in (CommAborted, CommMismatch, CommTimeout)}


class SocketEndpoint:
    """The place where one rank listens for its peers; `open_sockets` makes a communicator of it.

    Parameters
    ----------
    rank, size
        This rank, and the number of ranks.
    host
        The address or host name to listen on; None takes every interface, and tells peers the main one.
    protocol
        A protocol of distributed.comm: tcp or tls.
    security
        The `distributed.Security` that tls needs.
    """

    def __init__(
        self, rank: int, size: int, *, host: str | None = None, protocol: str = "tcp", security: Any = None
    ) -> None:
        self.rank, self.size = rank, size
        self._connection_args = security.get_connection_args("worker") if security else {}
        listen_args = security.get_listen_args("worker") if security else {}
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=f"mgraph-comm-{rank}", daemon=True)
        self._thread.start()
        self.links: dict[int, Comm] = {}
        self._token: asyncio.Future[str] = self.loop.create_future()
        self._linked: dict[int, asyncio.Future[None]] = {r: self.loop.create_future() for r in range(size) if r != rank}
        self._listener = listen(f"{protocol}://{host or ''}", self._admit, deserialize=False, **listen_args)
        try:
            self.call(self._listener.start(), DEFAULT_TIMEOUT_S)
        except BaseException:
            self.close()
            raise
        self.address = f"{self._listener.contact_address}#{secrets.token_hex(16)}"

    def call(self, coroutine: Coroutine, timeout_s: float) -> Any:
        """Run a coroutine on the endpoint's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout_s)

    def post(self, function: Callable, *args: Any) -> None:
        """Run a function on the endpoint's loop soon; does nothing when the loop has ended."""
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass

    async def link(self, addresses: list[str], timeout_s: float) -> None:
        """Connect to the lower ranks, admit the higher ones; name those with whom it failed."""
        token = hashlib.sha256("\n".join(addresses).encode()).hexdigest()
        self._token.set_result(token)
        dials = [asyncio.create_task(self._dial(r, addresses[r], token, timeout_s)) for r in range(self.rank)]
        if self._linked:
            await asyncio.wait(self._linked.values(), timeout=timeout_s, return_when=asyncio.FIRST_EXCEPTION)
        for dial in dials:
            dial.cancel()
        self._listener.stop()
        failed = [f for f in self._linked.values() if f.done() and f.exception()]
        if failed:
            raise failed[0].exception()  # type: ignore[misc]
        missing = [r for r, linked in self._linked.items() if not linked.done()]
        if missing:
            raise RendezvousTimeout(
                f"rank {self.rank}: {calls.name_ranks(missing)} did not connect within {timeout_s:g} s "
                f"({', '.join(_contact(addresses[r]) for r in missing)}); see whether they run, and whether a firewall "
                "is between"
            )

    def close(self) -> None:
        """End what is left of the links, the listener and the loop; may be called twice, from any thread but the loop's."""
        self.post(self.loop.stop)
        self._thread.join(GRACE_S)

    def _serve(self) -> None:
        """Run the loop, and clean up behind it."""
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self._listener.stop()
            for link in self.links.values():
                link.abort()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self.loop.close()

    async def _dial(self, peer: int, address: str, token: str, timeout_s: float) -> None:
        """Connect to a lower rank and show the token."""
        comm = None
        try:
            comm = await connect(_contact(address), timeout=timeout_s, deserialize=False, **self._connection_args)
            comm.allow_offload = False
            await comm.write(("mgraph", token, self.rank))
            if await comm.read() != ("mgraph", token, peer):
                raise CommAborted(f"rank {peer} at {_contact(address)} refused: it belongs to another gang")
            self._join(peer, comm)
        except BaseException as error:
            if comm is not None and peer not in self.links:
                comm.abort()
            if isinstance(error, CommAborted):
                self._linked[peer].set_exception(error)
            elif not isinstance(error, (OSError, asyncio.CancelledError)):
                self._linked[peer].set_exception(CommAborted(f"rank {peer} at {_contact(address)}: {error!r}"))

    async def _admit(self, comm: Comm) -> None:
        """Let a higher rank in if it shows the token; whoever does not is told so and shut out."""
        comm.allow_offload = False
        admitted = False
        try:
            hello = await comm.read()
            # Who is early waits here until the caller has told us the addresses.
            token = await asyncio.shield(self._token)
            match hello:
                case ("mgraph", str(shown), int(peer)) if hmac.compare_digest(shown, token):
                    admitted = self.rank < peer < self.size and peer not in self.links
            await comm.write(("mgraph", token, self.rank) if admitted else ("refused",))
            if admitted:
                self._join(peer, comm)
            else:
                await comm.close()
        except Exception:  # of a stranger: whatever it sends must not end this rank
            admitted = False
        finally:
            if not admitted:
                comm.abort()

    def _join(self, peer: int, comm: Comm) -> None:
        self.links[peer] = comm
        self._linked[peer].set_result(None)


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

    def __init__(self, description: tuple, outgoing: dict[int, np.ndarray], sources: Iterable[int]) -> None:
        self.description = description
        self.outgoing = outgoing
        self.waiting = set(sources)
        self.untaken = {r for r, array in outgoing.items() if array.nbytes > SMALL_BYTES}
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

    def alltoallv(self, parts: Sequence[Array]) -> list[Array]:
        call = self._count(calls.alltoallv_call([_host(part) for part in parts], self.rank, self.size))
        received = self._exchange(call, {r: parts[r] for r in self._peers}, self._peers, parts[0].dtype)
        received[self.rank] = parts[self.rank]
        # What came in a message of bytes may not be written to, or not be aligned.
        return [received[r] if received[r].flags.carray else received[r].copy() for r in range(self.size)]

    def close(self) -> None:
        with self._failing:
            orderly = self._failure is None
            self._failure = self._failure or CommAborted("the communicator is closed")
        if orderly:
            try:
                self._endpoint.call(self._take_leave(), 2 * GRACE_S)
            except (RuntimeError, concurrent.futures.TimeoutError):
                pass  # the endpoint's end closes the links, without ceremony
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
        dtype: np.dtype = np.dtype(np.uint8),
    ) -> dict[int, np.ndarray]:
        """Send arrays to some ranks, wait for one from each source; return these, flat."""
        exchange = _Exchange(description, outgoing, sources)
        if self._failure is not None:
            raise calls.again(self._failure)
        if not self._peers:
            return {}
        self._endpoint.post(self._begin, exchange)
        try:
            exchange.done.result(self._timeout_s)
        except concurrent.futures.TimeoutError:
            late = exchange.waiting | exchange.untaken
            self._fail(calls.overdue(description, sorted(late), self._timeout_s))
        if self._failure is not None and not (exchange.done.done() and exchange.done.exception() is None):
            raise calls.again(self._failure)
        return {r: _array(payload, dtype) for r, payload in exchange.received.items()}

    def _fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every verb under way, and every later one, raise `error`, here and at the peers; from any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = error
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
            for peer, array in exchange.outgoing.items():
                await self._links[peer].write((DATA, exchange.description, _payload(array)))
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
                elif kind == BYE:
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
        for peer in list(exchange.waiting):
            if self._inbox[peer]:
                description, payload = self._inbox[peer].popleft()
                if description != exchange.description:
                    self._fail(calls.mismatch(self.rank, exchange.description, peer, description))
                    return
                exchange.waiting.discard(peer)
                exchange.received[peer] = payload
                if isinstance(payload, Serialized):
                    self._spawn(self._acknowledge(peer))
            elif self._left[peer].done():
                self._fail(CommAborted(f"rank {peer} closed the communicator"))
        if not exchange.waiting and not exchange.untaken:
            self._current = None
            exchange.done.set_result(None)

    async def _acknowledge(self, peer: int) -> None:
        try:
            await self._links[peer].write((TAKEN,))
        except OSError:
            pass  # its reader reports it

    def _break_off(self) -> None:
        """Wake the verb under way, tell the peers why, and end."""
        exchange, self._current = self._current, None
        if exchange is not None:
            exchange.done.set_exception(self._failure)
        self._spawn(self._farewell((ABORT, type(self._failure).__name__, str(self._failure))))

    async def _take_leave(self) -> None:
        """Say goodbye, and wait a little for the others' goodbyes: a link closed too early loses what it carries."""
        for peer in self._peers:
            try:
                await self._links[peer].write((BYE,))
            except OSError:
                pass
        if self._left:
            await asyncio.wait(self._left.values(), timeout=GRACE_S)

    async def _farewell(self, message: tuple) -> None:
        for peer in self._peers:
            try:
                await self._links[peer].write(message)
            except OSError:
                pass  # this one is gone already
        closing = [asyncio.ensure_future(self._links[peer].close()) for peer in self._peers]
        if closing:
            await asyncio.wait(closing, timeout=GRACE_S)
        self._endpoint.loop.stop()


def _payload(array: np.ndarray) -> bytes | Serialized:
    """Return what travels: bytes inside the message, or a view of a large array beside it, never compressed."""
    if array.nbytes <= SMALL_BYTES:
        return array.tobytes()
    return Serialized({}, [_PADDING, memoryview(array.reshape(-1).view(np.uint8))])


def _array(payload: bytes | Serialized, dtype: np.dtype) -> np.ndarray:
    """Return the flat array that came."""
    buffer = payload.frames[1] if isinstance(payload, Serialized) else payload
    return np.frombuffer(buffer, dtype) if len(buffer) else np.empty(0, dtype)


def _contact(address: str) -> str:
    """Return the part of an endpoint's address that can be dialled."""
    return address.partition("#")[0]


def _host(x: Array) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        raise UsageError(f"sockets carry NumPy arrays, not {type(x).__name__}: use NCCL, or copy the array to the host")
    return x
