"""Where a rank listens for its peers, and how the ranks of a gang link up, each with each.

Opening takes two steps, because only the caller can tell the ranks each other's addresses:

    endpoint = SocketEndpoint(rank, size, host=..., secret=...)
    comm = open_sockets(endpoint, [the addresses of all endpoints, by rank])

A rank connects to the lower ones and admits the higher ones (handshake.py says how both prove themselves). The calling
thread drives all connections at once, and none of them can hold up another: a stranger has STRANGER_S to prove itself,
and when MAX_PENDING more than there are ranks wait, the oldest makes room for the next. A rank
that loses its place so, or finds none, calls again.
"""

from __future__ import annotations

import math
import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from mgraph.comm import call as calls
from mgraph.comm.forks import forget_in_children
from mgraph.comm.handshake import MIN_SECRET_BYTES, Handshake, Identity, Refused, admit_rank, greet_rank
from mgraph.comm.links import Link
from mgraph.errors import CommAborted, RendezvousTimeout, UsageError

# A rank proves itself in a millisecond, on a busy machine in some hundred.
STRANGER_S = 5.0
MAX_PENDING = 64
# Connections that the system keeps until the caller knows the addresses.
BACKLOG = 1024
# Until a rank whose connection was refused or broke calls again.
REDIAL_S = 0.1
# Connections taken from the system before those that wait are looked after again.
ACCEPTED_AT_ONCE = 32
# The system takes no longer timeouts than some days.
MAX_SELECT_S = 3600.0


class TlsContexts(NamedTuple):
    """What makes the links of a cluster TLS: the contexts of a rank that connects and of one that listens."""

    connect: ssl.SSLContext
    listen: ssl.SSLContext


class SocketEndpoint:
    """The place where one rank listens for its peers; `open_sockets` makes a communicator of it.

    Parameters
    ----------
    rank, size
        This rank, and the number of ranks.
    host
        The address or host name to listen on.
    secret
        At least 16 random bytes that only the ranks of this network have.
    network
        The network's name, of a gang and an epoch: ranks of another are refused.
    tls
        The contexts of links that are TLS.
    names
        Where each rank runs, for messages.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        *,
        host: str,
        secret: bytes,
        network: str = "",
        tls: TlsContexts | None = None,
        names: Sequence[str] = (),
    ) -> None:
        if len(secret) < MIN_SECRET_BYTES:
            raise UsageError(f"a secret of {len(secret)} bytes can be guessed: give at least {MIN_SECRET_BYTES}")
        self.rank, self.size, self.names = rank, size, tuple(names)
        self.links: dict[int, Link] = {}
        self.me, self.tls = Identity(rank, size, network, secret), tls
        # Guards what follows: where `link` runs, it alone closes the descriptors that it waits on.
        self._lock = threading.Lock()
        self._closed = self._linking = False
        # By descriptor, the connections whose handshakes are under way.
        self.pending: dict[int, _Connection] = {}
        family, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self.listener = socket.create_server(where[:2], family=family, backlog=BACKLOG)
        self.listener.setblocking(False)
        self.awake, self._wake = socket.socketpair()
        listening_host, port = self.listener.getsockname()[:2]
        self.address = f"[{listening_host}]:{port}" if ":" in listening_host else f"{listening_host}:{port}"
        forget_in_children(self)

    def link(self, addresses: Sequence[str], timeout_s: float) -> None:
        """Connect to the lower ranks, admit the higher ones; name those with which it failed."""
        with self._lock:
            if self._closed:
                raise CommAborted("the endpoint is closed")
            self._linking = True
        try:
            with selectors.DefaultSelector() as selector:
                _Linking(self, selector, addresses).run(timeout_s)
        except BaseException:
            for link in self.links.values():
                link.close()
            raise
        finally:
            with self._lock:
                self._linking, self._closed = False, True
                self._close_listener()

    def close(self) -> None:
        """End the listening, and `link` if it runs; from any thread. Links that were made are their communicator's."""
        with self._lock:
            if self._linking and not self._closed:
                self._wake.send(b"\0")
            elif not self._linking:
                self._close_listener()
            self._closed = True

    def forget_in_child(self) -> None:
        self._close_listener()
        for link in self.links.values():
            link.close()
        for connection in self.pending.values():
            connection.sock.close()

    def _close_listener(self) -> None:
        for sock in (self.listener, self.awake, self._wake):
            sock.close()


class _Connection:
    """A connection whose handshake is under way."""

    def __init__(self, sock: socket.socket, handshake: Handshake, tls: ssl.SSLContext | None, peer: int | None) -> None:
        self.sock, self.fd, self.peer = sock, sock.fileno(), peer
        self.until = math.inf if peer is not None else time.monotonic() + STRANGER_S
        # The peer, when both have proved themselves.
        self.proven: int | None = None
        self._handshake, self._tls = handshake, tls
        self._connecting, self._secured = True, tls is None
        self._out, self._got = b"", b""
        self._wanted = 0
        self._begun = False

    def advance(self) -> int:
        """Go on as far as the socket lets; return the events to wait for. Raises OSError, EOFError or Refused."""
        waits_for = selectors.EVENT_WRITE
        try:
            if self._connecting:
                if error := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, os.strerror(error))
                self._connecting = False
                if self._tls is not None:
                    is_server = self.peer is None
                    self.sock = self._tls.wrap_socket(self.sock, is_server, do_handshake_on_connect=False)
            if not self._secured:
                self.sock.do_handshake()  # type: ignore[attr-defined]
                self._secured = True
            while self.proven is None:
                waits_for = selectors.EVENT_WRITE
                while self._out:
                    self._out = self._out[self.sock.send(self._out) :]
                waits_for = selectors.EVENT_READ
                while len(self._got) < self._wanted:
                    # No more than the next message: frames of a peer that is ahead are the link's to read.
                    more = self.sock.recv(self._wanted - len(self._got))
                    if not more:
                        raise EOFError("it closed the connection")
                    self._got += more
                self._resume()
        except ssl.SSLWantReadError:
            return selectors.EVENT_READ
        except (BlockingIOError, ssl.SSLWantWriteError) as error:
            return waits_for if isinstance(error, BlockingIOError) else selectors.EVENT_WRITE
        return 0

    def _resume(self) -> None:
        """Hand the handshake what was read, and take what it wants next."""
        try:
            wanted = self._handshake.send(self._got if self._begun else None)  # type: ignore[arg-type]
        except StopIteration as end:
            self.proven = end.value
            return
        self._begun, self._got = True, b""
        self._out, self._wanted = (wanted, 0) if isinstance(wanted, bytes) else (b"", wanted)


class _Linking:
    """The linking of one rank with all others, driven by one thread."""

    def __init__(self, endpoint: SocketEndpoint, selector: selectors.BaseSelector, addresses: Sequence[str]) -> None:
        self._endpoint, self._selector, self._addresses = endpoint, selector, addresses
        self._links = endpoint.links
        # When to call each lower rank (again), while no connection to it is under way.
        self._due = dict.fromkeys(range(endpoint.rank), 0.0)
        self._failures: dict[int, str] = {}
        # In the order in which they came.
        self._connections = endpoint.pending

    def run(self, timeout_s: float) -> None:
        """Link with every rank, or raise what says with which it failed."""
        endpoint, deadline = self._endpoint, time.monotonic() + timeout_s
        self._selector.register(endpoint.listener, selectors.EVENT_READ)
        self._selector.register(endpoint.awake, selectors.EVENT_READ)
        try:
            while len(self._links) < endpoint.size - 1:
                now = time.monotonic()
                if now > deadline:
                    raise self._overdue(timeout_s)
                self._look_after(now)
                next_look = min(
                    [now + MAX_SELECT_S, deadline, *self._due.values(), *(c.until for c in self._connections.values())]
                )
                for key, _ in self._selector.select(max(0.0, next_look - time.monotonic())):
                    if key.fileobj is endpoint.awake:
                        raise CommAborted("the endpoint was closed while it linked")
                    if key.fileobj is endpoint.listener:
                        self._accept()
                    elif key.data in self._connections.values():
                        self._advance(key.data)
        finally:
            for connection in list(self._connections.values()):
                self._drop(connection)

    def _look_after(self, now: float) -> None:
        """Drop strangers whose time is over, and call the ranks whose time has come."""
        for connection in [c for c in self._connections.values() if c.until <= now]:
            self._drop(connection)
        for peer in [peer for peer, due in self._due.items() if due <= now]:
            del self._due[peer]
            self._call(peer)

    def _call(self, peer: int) -> None:
        """Begin to connect to a lower rank."""
        host, _, port = self._addresses[peer].rpartition(":")
        family, _, _, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex(where)  # what fails is seen when the socket is ready
        tls = self._endpoint.tls
        handshake = greet_rank(self._endpoint.me, peer)
        connection = _Connection(sock, handshake, tls and tls.connect, peer)
        self._connections[connection.fd] = connection
        self._selector.register(connection.fd, selectors.EVENT_WRITE, connection)

    def _accept(self) -> None:
        """Take connections from the system; the oldest make room for them."""
        endpoint = self._endpoint
        for _ in range(ACCEPTED_AT_ONCE):
            strangers = [c for c in self._connections.values() if c.peer is None]
            try:
                sock, _ = endpoint.listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # It has left again; or there are no more descriptors, of which a stranger has one, or soon will be.
                if strangers:
                    self._drop(strangers[0])
                else:
                    time.sleep(REDIAL_S / 10)
                return
            # All ranks may call at the same moment.
            if len(strangers) >= MAX_PENDING + endpoint.size:
                self._drop(strangers[0])
            sock.setblocking(False)
            handshake = admit_rank(endpoint.me, lambda r: endpoint.rank < r < endpoint.size and r not in self._links)
            connection = _Connection(sock, handshake, endpoint.tls and endpoint.tls.listen, None)
            self._connections[connection.fd] = connection
            self._selector.register(connection.fd, selectors.EVENT_READ, connection)

    def _advance(self, connection: _Connection) -> None:
        """Go on with a handshake; what a stranger does wrong only ends its connection."""
        peer = connection.peer
        try:
            events = connection.advance()
        except (OSError, EOFError, Refused) as error:
            self._drop(connection)
            if peer is None:
                return
            if isinstance(error, Refused | ssl.SSLCertVerificationError):
                where = f"{calls.name_ranks([peer], self._endpoint.names)} at {self._addresses[peer]}"
                raise CommAborted(f"{where} refused, or is refused: {error}") from None
            self._failures[peer] = str(error)
            self._due[peer] = time.monotonic() + REDIAL_S
            return
        if connection.proven is None:
            self._selector.modify(connection.fd, events, connection)
            return
        self._selector.unregister(connection.fd)
        del self._connections[connection.fd]
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links[connection.proven] = Link(connection.proven, connection.sock)

    def _drop(self, connection: _Connection) -> None:
        self._selector.unregister(connection.fd)
        del self._connections[connection.fd]
        connection.sock.close()

    def _overdue(self, timeout_s: float) -> RendezvousTimeout:
        endpoint = self._endpoint
        missing = [r for r in range(endpoint.size) if r not in self._links and r != endpoint.rank]
        where = ", ".join(
            self._addresses[r] + (f": {self._failures[r]}" if r in self._failures else "") for r in missing
        )
        return RendezvousTimeout(
            f"rank {endpoint.rank}: {calls.name_ranks(missing, endpoint.names)} did not connect within {timeout_s:g} s "
            f"({where}); see whether they run, and whether a firewall is between"
        )
