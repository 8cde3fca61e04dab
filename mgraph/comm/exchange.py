"""One rank's links to all others: the exchanges that verbs consist of, their failure and their end.

The thread that calls a verb drives all links itself, with poll() and sockets that never block. It sends and receives
concurrently, so that a peer that sends first and reads later blocks nothing, and a small verb costs one send, some
polls and one receive a peer, without a switch of threads. Between verbs nothing watches the links: the failure or death
of a peer is noticed at the next verb, and until then TCP's flow control holds back a peer that is ahead. So no thread
is needed, and close() and abort() leave none behind.

`abort` and `close` may be called from any thread. The thread that drives the links holds `_driving`. Another thread
sets the failure, wakes poll() through a descriptor, and acquires the lock when the verb has raised. A rank that fails
sends the cause to every peer before it closes its links, so that all ranks raise the same error; a partly sent frame is
completed first, or dropped with its link after FAREWELL_S.
"""

from __future__ import annotations

import functools
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping

import numpy as np

from mgraph.comm import call as calls
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.forks import forget_in_children
from mgraph.comm.links import ABORT, BYE, DATA, FILLED, JOIN_BYTES, MAX_DESCRIPTION_BYTES, SHARED, Link, pack
from mgraph.errors import CommAborted, CommMismatch, CommTimeout
from mgraph.types import Array

# How long a closing rank waits for its peers to close too: a link that is closed early loses bytes in transit.
GRACE_S = 3.0
# How long a failing rank waits until its peers have read the cause; peers that died do not answer.
FAREWELL_S = 0.5
# A peer that is some 30 us late at most is awaited awake: to sleep and be woken takes as long, and may move this thread
# to the core of the peer, where it waits for that to sleep.
NUM_SPINS = 16
# poll() accepts its timeout as a C int of milliseconds; a deadline may be later than that, or infinite.
MAX_POLL_S = 3600.0
FAILURES = {kind.__name__: kind for kind in (CommAborted, CommMismatch, CommTimeout)}


class _Exchange:
    """One round of a verb: the peers still to receive from or to send to, and the target arrays."""

    __slots__ = ("call", "description", "dtype", "number", "received", "targets", "unsent", "waiting")

    def __init__(self, number: int, call: str, targets: Mapping[int, Array | None], dtype: np.dtype) -> None:
        self.number = number
        self.call = call
        self.targets = targets
        self.dtype = dtype
        self.description = _encoded(call)
        self.waiting = set(targets)
        self.unsent: set[int] = set()
        self.received: dict[int, np.ndarray] = {}


# As calls.describe().
@functools.lru_cache(maxsize=1024)
def _encoded(call: str) -> bytes:
    return call.encode()[:MAX_DESCRIPTION_BYTES]


class Network:
    """A rank's links to its peers; one thread at a time runs an exchange on them."""

    def __init__(self, endpoint: SocketEndpoint, timeout_s: float) -> None:
        self.rank = endpoint.rank
        self._names = endpoint.names
        self._timeout_s = timeout_s
        # Set once, under `_failing`, and read without it: assigning a reference is atomic.
        self._failure: CommAborted | CommTimeout | None = None
        self._failing = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        # Written to under `_failing`, when the failure is set; closed by `_leave`, always after a failure.
        self._awake, self._wake = socket.socketpair()
        # All attributes below are accessed only by the thread that holds `_driving`.
        self._driving = threading.Lock()
        self._has_left = False
        self._number = 0  # of the running exchange: a fast peer may already send for a later one
        self._links = dict(endpoint.links)
        self._of_descriptor = {link.fd: link for link in self._links.values()}
        self._poll = select.poll()
        self._poll.register(self._awake, select.POLLIN)
        # The events that poll() watches on each link.
        self._events: dict[Link, int] = {}
        forget_in_children(self)

    def exchange(
        self,
        call: str,
        outgoing: Mapping[int, Array],
        targets: Mapping[int, Array | None],
        dtype: np.dtype,
    ) -> dict[int, np.ndarray]:
        """Send `outgoing` by rank, and receive one array from each rank of `targets`.

        Returns the received arrays by rank: the target itself if its length agrees, else a new flat array.
        """
        with self._driving:
            self._number += 1
            self._check()
            exchange = _Exchange(self._number, call, targets, dtype)
            try:
                self._send(exchange, outgoing)
                self._finish(exchange)
            except BaseException as error:
                self._fail(error if isinstance(error, CommAborted | CommTimeout) else _interrupted(self.rank, error))
                self._leave()
                if isinstance(error, CommAborted | CommTimeout):
                    # If another thread aborted first, its cause is the one to raise.
                    raise calls.fresh_copy(self._failure or error) from None
                raise
        return exchange.received

    def when_failed(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, on failure, in the thread that notices; at once if this has failed."""
        with self._failing:
            self._callbacks.append(callback)
            if self._failure is not None:
                callback()

    def close(self) -> None:
        """Send BYE to every peer and close the links; from any thread."""
        with self._failing:
            orderly = self._failure is None
            if orderly:
                self._failure = CommAborted("the communicator is closed")
                self._wake_up()
        self._end(orderly)

    def abort(self, cause: str) -> None:
        """Fail at once and send the cause to the peers; from any thread."""
        self._fail(CommAborted(cause))
        self._end()

    def forget_in_child(self) -> None:
        # The parent's threads do not exist here, and may have held the locks during the fork.
        self._failing = threading.Lock()
        self._driving = threading.Lock()
        self._failure = CommAborted("this process was forked from a rank and cannot use its links")
        self._close_all()

    def _fail(self, error: CommAborted | CommTimeout) -> None:
        """Make every running and later verb raise `error`, here and at the peers; from any thread."""
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
            raise calls.fresh_copy(self._failure)

    def _end(self, orderly: bool = False) -> None:
        """Close the links, unless the verb that the failure ended has closed them."""
        # With a timeout: a signal handler may have interrupted the very thread that holds the lock.
        if self._driving.acquire(timeout=GRACE_S + FAREWELL_S):
            try:
                self._leave(orderly)
            finally:
                self._driving.release()

    def _leave(self, orderly: bool = False) -> None:
        """Send every peer a last frame, wait briefly until they have read it, and close all links."""
        if self._has_left:
            return
        self._has_left = True
        cause = f"{type(self._failure).__name__}\n{self._failure}".encode()[:MAX_DESCRIPTION_BYTES]
        farewell = pack(BYE if orderly else ABORT, 0, b"" if orderly else cause)
        for link in self._links.values():
            link.replace_unsent(farewell)
        try:
            self._flush_and_drain(time.monotonic() + (GRACE_S if orderly else FAREWELL_S))
        finally:
            self._close_all()

    def _flush_and_drain(self, deadline: float) -> None:
        """Send what is queued and discard what arrives, until the peers close their ends or the deadline.

        TCP resets a connection that is closed with unread bytes, and the peer may then lose the last frame.
        """
        open_links = set(self._links.values())
        finished = set[Link]()
        while open_links and (left_s := deadline - time.monotonic()) > 0:
            poll = select.poll()
            for link in list(open_links):
                try:
                    if link not in finished and link.flush():
                        link.finish()
                        finished.add(link)
                except OSError:
                    link.drop_unsent()
                if link.drain():
                    open_links.discard(link)
                else:
                    poll.register(link.fd, select.POLLIN | (select.POLLOUT if link.has_unsent else 0))
            if open_links:
                poll.poll(math.ceil(left_s * 1000))

    def _close_all(self) -> None:
        self._has_left = True
        for link in self._links.values():
            link.close()
        self._awake.close()
        self._wake.close()

    def _send(self, exchange: _Exchange, outgoing: Mapping[int, Array]) -> None:
        """Send what the sockets accept at once, and receive what has arrived already."""
        packed: Array | None = None
        for peer, array in outgoing.items():
            link = self._links[peer]
            if link.has_peer_closed:
                self._require_open(link)
            is_small = array.nbytes <= JOIN_BYTES
            if is_small and array is not packed:
                frame = pack(DATA, exchange.number, exchange.description, array)
                packed = array
            try:
                if link.send(frame) if is_small else link.send_array(exchange.number, exchange.description, array):
                    continue
            except OSError:
                # The peer counts as unsent: reading from the broken link yields the cause that it may have sent.
                link.drop_unsent()
            exchange.unsent.add(peer)
        for peer, link in self._links.items():
            if link.has_peer_closed and peer in exchange.waiting:
                self._require_open(link)
            # Otherwise no whole frame was read that waits for this exchange, and poll() reports the next one.
            if self._events.get(link) != select.POLLIN or link.has_unsent:
                self._receive(exchange, link, link.has_decrypted)

    def _require_open(self, link: Link) -> None:
        if link.has_peer_closed:
            raise CommAborted(f"{self._name(link.peer)} closed the communicator")

    def _flush(self, exchange: _Exchange, link: Link) -> None:
        try:
            if link.flush():
                exchange.unsent.discard(link.peer)
        except OSError:
            # The peer stays in `unsent`: reading from the broken link yields the cause that the peer may have sent.
            link.drop_unsent()

    def _finish(self, exchange: _Exchange) -> None:
        """Drive the links until everything is sent and received."""
        deadline = time.monotonic() + self._timeout_s
        for _ in range(NUM_SPINS):
            # Once at least: a rank that only sends notices the failure of another rank here.
            self._poll_links(exchange, 0)
            if not (exchange.waiting or exchange.unsent):
                return
            # The peer may be on this very core.
            os.sched_yield()
        while exchange.waiting or exchange.unsent:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                late = sorted(exchange.waiting | exchange.unsent)
                raise calls.timeout_error(exchange.call.partition("(")[0], late, self._timeout_s, self._names)
            self._poll_links(exchange, math.ceil(min(left_s, MAX_POLL_S) * 1000))

    def _poll_links(self, exchange: _Exchange, timeout_ms: int) -> None:
        """Wait until a link is ready; send and receive on all that are."""
        for descriptor, _ in self._poll.poll(timeout_ms):
            link = self._of_descriptor.get(descriptor)
            if link is None:
                # Awoken by another thread.
                self._check()
                continue
            if link.has_unsent:
                self._flush(exchange, link)
            self._receive(exchange, link, True)

    def _receive(self, exchange: _Exchange, link: Link, readable: bool) -> None:
        """Receive from a peer, as far as its frames belong to this exchange."""
        reads_on = True
        try:
            while not link.has_peer_closed:
                if head := link.peek():
                    reads_on = self._accept(exchange, link, *head)
                    if not reads_on:
                        break
                elif not readable or not link.read():
                    break
                else:
                    if link.has_payload_ended:
                        self._note_payload(exchange, link)
                    # One read of TCP is enough: poll() reports the rest. It cannot see what TLS has decrypted.
                    readable = link.has_decrypted
        except (OSError, EOFError) as error:
            raise CommAborted(f"{self._name(link.peer)} is gone, its link broke: {error}") from None
        self._watch(link, reads_on and not link.has_peer_closed)

    def _note_payload(self, exchange: _Exchange, link: Link) -> None:
        link.has_payload_ended = False
        exchange.waiting.discard(link.peer)

    def _accept(self, exchange: _Exchange, link: Link, kind: int, length: int, number: int, nbytes: int) -> bool:
        """Handle a peer's next frame; return False if it belongs to a later exchange and must wait."""
        peer = link.peer
        if kind not in (DATA, SHARED):
            self._accept_control(exchange, link, kind, length, nbytes)
            return True
        if number > exchange.number and peer not in exchange.waiting:
            return False
        description = link.description(length)
        is_awaited = peer in exchange.waiting and peer not in exchange.received
        if number != exchange.number or description != exchange.description or not is_awaited:
            raise calls.mismatch(self.rank, exchange.call, peer, description.decode(errors="replace"))
        exchange.received[peer] = target = self._target(exchange, peer, nbytes)
        if link.accept(kind, length, target):
            exchange.waiting.discard(peer)
        return True

    def _accept_control(self, exchange: _Exchange, link: Link, kind: int, length: int, nbytes: int) -> None:
        """Handle a frame of a slot, or a peer's last one."""
        if kind == ABORT:
            failure, _, cause = link.description(length).decode(errors="replace").partition("\n")
            raise FAILURES.get(failure, CommAborted)(cause)
        link.accept(kind, length)
        if kind == BYE:
            link.has_peer_closed = True
            if link.peer in exchange.waiting or link.peer in exchange.unsent:
                self._require_open(link)
            return
        if kind == FILLED:
            link.take_slot(nbytes)
            # This rank stays in the exchange until the peer can fill the slot again.
            exchange.unsent.add(link.peer)
            if link.has_payload_ended:
                self._note_payload(exchange, link)
        else:
            link.return_slot()
        self._flush(exchange, link)

    def _target(self, exchange: _Exchange, peer: int, nbytes: int) -> np.ndarray:
        """Return the array for a payload of `nbytes`; only an alltoallv may allocate another length."""
        array = exchange.targets[peer]
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
        """Update the polled events of a link; it is not polled for reading while its next frame must wait."""
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


def _interrupted(rank: int, error: BaseException) -> CommAborted:
    return CommAborted(f"rank {rank} left a verb: {type(error).__name__}: {error}")
