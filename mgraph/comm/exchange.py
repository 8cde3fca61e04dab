"""One rank's links to all others: the exchanges that verbs are made of, and how they fail and end.

The thread that calls a verb drives all links itself, with poll() and sockets that never block: it sends and receives
at once, so a peer that sends first and reads later blocks nothing, and a small verb costs one send, one poll and one
receive a peer, without a switch of threads. While no verb is under way nothing watches the links, and nothing has to:
that a peer failed or died is seen at the next verb, and until then TCP holds back a peer that is ahead. So there is no
thread, and close() and abort() leave none.

`abort` and `close` may come from any thread. The one that drives the links holds `_driving`; another one sets the
failure, wakes poll() through a descriptor, and has the lock when the verb has raised. A rank that fails sends every
peer the reason before its links end, so that all ranks raise one cause; a frame that is half out is finished first, or
dropped with its link after FAREWELL_S.
"""

from __future__ import annotations

import math
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mgraph.comm import call as calls
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.forks import forget_in_children
from mgraph.comm.links import ABORT, BYE, DATA, MAX_DESCRIPTION_BYTES, Frame, Link, pack
from mgraph.errors import CommAborted, CommMismatch, CommTimeout
from mgraph.types import Array

# How long a rank that closes waits for the others to close too: a link that ends too early loses what it carries.
GRACE_S = 3.0
# How long a rank that fails waits for the others to have read why; the dead do not answer.
FAREWELL_S = 0.5
# poll() takes its timeout as a C int of milliseconds; a deadline may lie far beyond that, or at infinity.
MAX_POLL_S = 3600.0
FAILURES = {kind.__name__: kind for kind in (CommAborted, CommMismatch, CommTimeout)}


class _Exchange:
    """One step of a verb: what is still to come, and where it goes."""

    def __init__(self, number: int, call: str, landing: Mapping[int, Array | None], dtype: np.dtype) -> None:
        self.number, self.call, self.landing, self.dtype = number, call, landing, dtype
        self.description = call.encode()[:MAX_DESCRIPTION_BYTES]
        self.waiting, self.unsent = set(landing), set[int]()
        self.received: dict[int, np.ndarray] = {}


class Network:
    """A rank's links to its peers, of which one thread at a time makes exchanges."""

    def __init__(self, endpoint: SocketEndpoint, timeout_s: float) -> None:
        self.rank = endpoint.rank
        self._names, self._timeout_s = endpoint.names, timeout_s
        # Set once, under `_failing`, and read without it: a reference is replaced as a whole.
        self._failure: CommAborted | CommTimeout | None = None
        self._failing = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        # Written to under `_failing`, where the failure is set; closed by `_leave`, which comes after a failure.
        self._awake, self._wake = socket.socketpair()
        # What follows belongs to the thread that holds `_driving`.
        self._driving = threading.Lock()
        self._left = False
        self._number = 0  # of the exchange under way: a fast peer may already send for a later one
        self._links = dict(endpoint.links)
        self._of_descriptor = {link.fd: link for link in self._links.values()}
        self._poll = select.poll()
        self._poll.register(self._awake, select.POLLIN)
        # What is polled for on each link.
        self._events: dict[Link, int] = {}
        forget_in_children(self)

    def exchange(
        self,
        call: str,
        outgoing: Mapping[int, Array],
        landing: Mapping[int, Array | None],
        dtype: np.dtype,
    ) -> dict[int, np.ndarray]:
        """Send arrays to some ranks, wait for one from each rank of `landing`; return these, flat.

        What comes goes where `landing` says, if it is as long as that; else, or where it says None, into a new array.
        """
        with self._driving:
            self._number += 1
            self._check()
            exchange = _Exchange(self._number, call, landing, dtype)
            try:
                self._send(exchange, outgoing)
                self._finish(exchange)
            except BaseException as error:
                self._fail(error if isinstance(error, CommAborted | CommTimeout) else _interrupted(self.rank, error))
                self._leave()
                if isinstance(error, CommAborted | CommTimeout):
                    # Another thread's abort may have been first.
                    raise calls.again(self._failure or error) from None
                raise
        return exchange.received

    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, in whichever thread finds or makes this fail; at once if it has failed."""
        with self._failing:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def close(self) -> None:
        """Take leave of the peers in order; from any thread."""
        with self._failing:
            orderly = self._failure is None
            if orderly:
                self._failure = CommAborted("the communicator is closed")
                self._wake_up()
        self._end(orderly)

    def abort(self, cause: str) -> None:
        """Fail at once, and send the peers the cause; from any thread."""
        self._fail(CommAborted(cause))
        self._end()

    def forget_in_child(self) -> None:
        # The locks may be held by threads that do not exist here.
        self._failing, self._driving = threading.Lock(), threading.Lock()
        self._failure = CommAborted("this process was forked from a rank, whose links are not its own")
        self._close_all()

    def _fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every verb under way, and every later one, raise `error`, here and at the peers; from any thread."""
        with self._failing:
            if self._failure is not None:
                return
            self._failure = error
            self._wake_up()
            for callback in self._callbacks:
                callback()

    def _wake_up(self) -> None:
        self._wake.send(b"\0")

    def _check(self) -> None:
        if self._failure is not None:
            raise calls.again(self._failure)

    def _end(self, orderly: bool = False) -> None:
        """Take leave, unless the verb that the failure has ended did so."""
        # Not longer than a farewell takes: a signal handler may have come in the way of the thread with the lock.
        if self._driving.acquire(timeout=GRACE_S + FAREWELL_S):
            try:
                self._leave(orderly)
            finally:
                self._driving.release()

    def _leave(self, orderly: bool = False) -> None:
        """Send every peer a last frame, wait a little until they have read it, and close all."""
        if self._left:
            return
        self._left = True
        why = f"{type(self._failure).__name__}\n{self._failure}".encode()[:MAX_DESCRIPTION_BYTES]
        farewell = pack(BYE if orderly else ABORT, 0, b"" if orderly else why)
        for link in self._links.values():
            link.replace_unsent(farewell)
        try:
            self._part(time.monotonic() + (GRACE_S if orderly else FAREWELL_S))
        finally:
            self._close_all()

    def _part(self, deadline: float) -> None:
        """Send what is left, and throw away what comes, until the peers have closed their ends or it is too late.

        A link closed with something unread in it is reset, and the peer may lose what was sent to it last.
        """
        parting = set(self._links.values())
        finished = set[Link]()
        while parting and (left_s := deadline - time.monotonic()) > 0:
            poll = select.poll()
            for link in list(parting):
                try:
                    if link not in finished and link.flush():
                        link.finish()
                        finished.add(link)
                except OSError:
                    link.drop_unsent()
                if link.drain():
                    parting.discard(link)
                else:
                    poll.register(link.fd, select.POLLIN | (select.POLLOUT if link.has_unsent else 0))
            if parting:
                poll.poll(math.ceil(left_s * 1000))

    def _close_all(self) -> None:
        self._left = True
        for link in self._links.values():
            link.close()
        self._awake.close()
        self._wake.close()

    def _send(self, exchange: _Exchange, outgoing: Mapping[int, Array]) -> None:
        """Send what the sockets take at once, and take what has come already."""
        frames: dict[int, Sequence[bytes | memoryview]] = {}
        for peer, array in outgoing.items():
            if id(array) not in frames:
                frames[id(array)] = pack(DATA, exchange.number, exchange.description, _bytes_of(array))
            link = self._links[peer]
            self._require_there(link)
            exchange.unsent.add(peer)
            link.queue(frames[id(array)])
            self._flush(exchange, link)
        for peer, link in self._links.items():
            if peer in exchange.waiting:
                self._require_there(link)
            # One that is watched for reading only, and has nothing here, is poll()'s to report.
            if link.has_unread or self._events.get(link) != select.POLLIN or link.has_unsent:
                self._receive(exchange, link, link.has_decrypted)

    def _require_there(self, link: Link) -> None:
        if link.left:
            raise CommAborted(f"{self._name(link.peer)} closed the communicator")

    def _flush(self, exchange: _Exchange, link: Link) -> None:
        try:
            if link.flush():
                exchange.unsent.discard(link.peer)
        except OSError:
            # It stays unsent: why the link broke is to be read from it, where the peer may have said so.
            link.drop_unsent()

    def _finish(self, exchange: _Exchange) -> None:
        """Wait until all is sent and received."""
        deadline = time.monotonic() + self._timeout_s
        if not exchange.landing:
            # A rank that only sends may never have to wait: whether another has failed it sees here.
            self._go_on(exchange, 0)
        while exchange.waiting or exchange.unsent:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                late = sorted(exchange.waiting | exchange.unsent)
                raise calls.overdue(exchange.call.partition("(")[0], late, self._timeout_s, self._names)
            self._go_on(exchange, math.ceil(min(left_s, MAX_POLL_S) * 1000))

    def _go_on(self, exchange: _Exchange, timeout_ms: int) -> None:
        """Send and receive what the links are ready for, when one is."""
        for descriptor, _ in self._poll.poll(timeout_ms):
            if descriptor == self._awake.fileno():
                self._check()
                continue
            link = self._of_descriptor[descriptor]
            if link.has_unsent:
                self._flush(exchange, link)
            self._receive(exchange, link, True)

    def _receive(self, exchange: _Exchange, link: Link, readable: bool) -> None:
        """Take what a peer has sent, as far as it is for this exchange."""
        reads_on = True
        try:
            while not link.left:
                if not link.is_filling and (frame := link.peek()):
                    reads_on = self._take(exchange, link, frame)
                    if not reads_on:
                        break
                elif not readable or not link.read():
                    break
                else:
                    if link.is_full:
                        link.is_full = False
                        exchange.waiting.discard(link.peer)
                    # Of TCP once: poll() reports what is left, but does not know of what TLS has decrypted.
                    readable = link.has_decrypted
        except (OSError, EOFError) as error:
            raise CommAborted(f"{self._name(link.peer)} is gone, its link broke: {error}") from None
        self._watch(link, reads_on and not link.left)

    def _take(self, exchange: _Exchange, link: Link, frame: Frame) -> bool:
        """Take a peer's next frame; return False where it is for a later exchange and has to wait."""
        peer = link.peer
        if frame.kind == ABORT:
            kind, _, cause = frame.description.decode(errors="replace").partition("\n")
            raise FAILURES.get(kind, CommAborted)(cause)
        if frame.kind == BYE:
            link.left = True
            if peer in exchange.waiting or peer in exchange.unsent:
                self._require_there(link)
            return True
        if frame.number > exchange.number and peer not in exchange.waiting:
            return False
        if frame[1:3] != (exchange.number, exchange.description) or peer not in exchange.waiting:
            raise calls.mismatch(self.rank, exchange.call, peer, frame.description.decode(errors="replace"))
        exchange.received[peer] = target = self._room(exchange, peer, frame.nbytes)
        if link.take(frame, _bytes_of(target)):
            exchange.waiting.discard(peer)
        return True

    def _room(self, exchange: _Exchange, peer: int, nbytes: int) -> np.ndarray:
        """Return where a payload of so many bytes goes: only an alltoallv leaves open how long it is."""
        array = exchange.landing[peer]
        if array is not None and array.nbytes == nbytes:
            return array
        count, rest = divmod(nbytes, exchange.dtype.itemsize)
        if rest or not exchange.call.startswith("alltoallv"):
            expected = f"{exchange.dtype.itemsize} a value" if array is None else array.nbytes
            raise CommAborted(
                f"{self._name(peer)} sent {nbytes} bytes to {exchange.call} where {expected} are expected"
            )
        return np.empty(count, exchange.dtype)

    def _watch(self, link: Link, reads: bool) -> None:
        """Have poll() report what a link can go on with; one whose next frame has to wait is not read."""
        events = select.POLLIN if reads else 0
        if link.has_unsent or link.wants_to_write:
            events |= select.POLLOUT
        if events != self._events.get(link, 0):
            if events:
                self._poll.register(link.fd, events)
            else:
                self._poll.unregister(link.fd)
            self._events[link] = events

    def _name(self, peer: int) -> str:
        return calls.name_ranks([peer], self._names)


def _bytes_of(array: Array) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))


def _interrupted(rank: int, error: BaseException) -> CommAborted:
    return CommAborted(f"rank {rank} left a verb: {type(error).__name__}: {error}")
