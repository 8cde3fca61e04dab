"""The listening socket of a rank, and the linking of every pair of ranks of a gang.

Opening takes two steps, because the caller exchanges the addresses between the ranks:

    endpoint = SocketEndpoint(rank, size, host=..., secret=...)
    comm = open_sockets(endpoint, [the addresses of all endpoints, by rank])

A rank connects to all lower ranks and accepts connections of all higher ones; handshake.py authenticates both sides.
The calling thread drives all connections at once, and none can delay another: an incoming connection has STRANGER_S to
authenticate, and beyond MAX_PENDING plus the number of ranks the oldest unauthenticated connection is closed for the
next one. A rank connects again if its connection was closed this way, or refused by the system.
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
from mgraph.comm.segments import Segment
from mgraph.errors import CommAborted, RendezvousTimeout, UsageError

# A handshake takes a millisecond, on a busy machine some hundred.
STRANGER_S = 5.0
MAX_PENDING = 64
# Connections that the system queues until the caller has all addresses.
BACKLOG = 1024
# Pause before a rank retries a connection that was refused or broke.
RETRY_S = 0.1
# Connections accepted before the pending ones are served again.
ACCEPTED_AT_ONCE = 32
# Systems limit timeouts to some days.
MAX_SELECT_S = 3600.0


class TlsContexts(NamedTuple):
    """The TLS contexts of a cluster's links: for the connecting and for the listening side."""

    connect: ssl.SSLContext
    listen: ssl.SSLContext


class SocketEndpoint:
    """One rank's listening socket, from which `open_sockets` makes a communicator.

    Parameters
    ----------
    rank, size
        This rank, and the number of ranks.
    host
        The address or host name to listen on.
    secret
        At least 16 random bytes, known to the ranks of this network alone.
    network
        The network's name, made of gang and epoch: ranks of another network are refused.
    tls
        The contexts of TLS links; None for plain TCP.
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
        self.rank = rank
        self.size = size
        self.names = tuple(names)
        self.links: dict[int, Link] = {}
        self.me = Identity(rank, size, network, secret)
        self.tls = tls
        # Guards the two flags: while `link` runs, no other thread closes the descriptors that it waits on.
        self._lock = threading.Lock()
        self._closed = self._linking = False
        # By descriptor, in order of arrival: connections in their handshake.
        self.pending: dict[int, _Connection] = {}
        family, _, _, _, sockaddr = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self.listener = socket.create_server(sockaddr[:2], family=family, backlog=BACKLOG)
        self.listener.setblocking(False)
        self.awake, self._wake = socket.socketpair()
        listening_host, port = self.listener.getsockname()[:2]
        self.address = f"[{listening_host}]:{port}" if ":" in listening_host else f"{listening_host}:{port}"
        forget_in_children(self)

    def link(self, addresses: Sequence[str], timeout_s: float) -> None:
        """Connect to the lower ranks and accept the higher ones; an error names the ranks that are missing."""
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
                self._linking = False
                self._closed = True
                self._close_listener()

    def close(self) -> None:
        """Stop listening and end a running `link`, from any thread.

        Finished links stay open: they belong to the communicator.
        """
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
    """A connection in its handshake; `peer` is None for an incoming one, which may be any stranger's."""

    def __init__(self, sock: socket.socket, handshake: Handshake, tls: ssl.SSLContext | None, peer: int | None) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.peer = peer
        self.deadline = math.inf if peer is not None else time.monotonic() + STRANGER_S
        # The peer's rank and the segment shared with it, when both sides are authenticated.
        self.proven: tuple[int, Segment | None] | None = None
        self._handshake = handshake
        self._tls = tls
        self._connecting = True
        self._secured = tls is None
        self._to_send = b""
        self._received = b""
        self._num_wanted = 0
        self._begun = False

    def advance(self) -> int:
        """Continue until the socket would block; return the events to wait for.

        Raises OSError, EOFError or Refused.
        """
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
                while self._to_send:
                    self._to_send = self._to_send[self.sock.send(self._to_send) :]
                waits_for = selectors.EVENT_READ
                while len(self._received) < self._num_wanted:
                    # Only the next message: the frames that follow the handshake are read by the link.
                    more = self.sock.recv(self._num_wanted - len(self._received))
                    if not more:
                        raise EOFError("it closed the connection")
                    self._received += more
                self._resume()
        except ssl.SSLWantReadError:
            return selectors.EVENT_READ
        except (BlockingIOError, ssl.SSLWantWriteError) as error:
            return waits_for if isinstance(error, BlockingIOError) else selectors.EVENT_WRITE
        return 0

    def close(self) -> None:
        """Close the socket, and end the handshake with the segment that it offers or has mapped."""
        # Not left to references: frames of an error's traceback may hold this connection until a garbage collection.
        self._handshake.close()
        self.proven = None
        self.sock.close()

    def _resume(self) -> None:
        """Pass the received bytes to the handshake; store what it writes or reads next."""
        try:
            step = self._handshake.send(self._received if self._begun else None)  # type: ignore[arg-type]
        except StopIteration as end:
            self.proven = end.value
            return
        self._begun = True
        self._received = b""
        self._to_send, self._num_wanted = (step, 0) if isinstance(step, bytes) else (b"", step)


class _Linking:
    """Links one rank with all others, in one thread."""

    def __init__(self, endpoint: SocketEndpoint, selector: selectors.BaseSelector, addresses: Sequence[str]) -> None:
        self._endpoint = endpoint
        self._selector = selector
        self._addresses = addresses
        self._links = endpoint.links
        # By lower rank without a connection: when to connect, or to connect again.
        self._connect_at = dict.fromkeys(range(endpoint.rank), 0.0)
        self._failures: dict[int, str] = {}
        self._connections = endpoint.pending

    def run(self, timeout_s: float) -> None:
        """Link with every rank; an error names the ranks that are missing."""
        endpoint = self._endpoint
        deadline = time.monotonic() + timeout_s
        self._selector.register(endpoint.listener, selectors.EVENT_READ)
        self._selector.register(endpoint.awake, selectors.EVENT_READ)
        try:
            while len(self._links) < endpoint.size - 1:
                now = time.monotonic()
                if now > deadline:
                    raise self._timeout_error(timeout_s)
                self._serve_timers(now)
                timers = [*self._connect_at.values(), *(c.deadline for c in self._connections.values())]
                wake_at = min([now + MAX_SELECT_S, deadline, *timers])
                for key, _ in self._selector.select(max(0.0, wake_at - time.monotonic())):
                    if key.fileobj is endpoint.awake:
                        raise CommAborted("the endpoint was closed while it linked")
                    if key.fileobj is endpoint.listener:
                        self._accept()
                    elif key.data in self._connections.values():
                        self._advance(key.data)
        finally:
            for connection in list(self._connections.values()):
                self._drop(connection)

    def _serve_timers(self, now: float) -> None:
        """Close connections past their deadline; connect to the ranks that are due."""
        for connection in [c for c in self._connections.values() if c.deadline <= now]:
            self._drop(connection)
        for peer in [peer for peer, at in self._connect_at.items() if at <= now]:
            del self._connect_at[peer]
            self._connect(peer)

    def _connect(self, peer: int) -> None:
        """Begin to connect to a lower rank."""
        host, _, port = self._addresses[peer].rpartition(":")
        family, _, _, _, sockaddr = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex(sockaddr)  # a failure is reported when the socket becomes ready
        tls = self._endpoint.tls
        handshake = greet_rank(self._endpoint.me, peer)
        connection = _Connection(sock, handshake, tls and tls.connect, peer)
        self._connections[connection.fd] = connection
        self._selector.register(connection.fd, selectors.EVENT_WRITE, connection)

    def _accept(self) -> None:
        """Accept connections; beyond the limit each one replaces the oldest stranger."""
        endpoint = self._endpoint
        for _ in range(ACCEPTED_AT_ONCE):
            strangers = [c for c in self._connections.values() if c.peer is None]
            try:
                sock, _ = endpoint.listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # The peer has closed again, or no descriptor is free: free one of a stranger's, or wait a little.
                if strangers:
                    self._drop(strangers[0])
                else:
                    time.sleep(RETRY_S / 10)
                return
            # `size` is part of the limit: all ranks may connect at the same moment.
            if len(strangers) >= MAX_PENDING + endpoint.size:
                self._drop(strangers[0])
            sock.setblocking(False)
            handshake = admit_rank(endpoint.me, lambda r: endpoint.rank < r < endpoint.size and r not in self._links)
            connection = _Connection(sock, handshake, endpoint.tls and endpoint.tls.listen, None)
            self._connections[connection.fd] = connection
            self._selector.register(connection.fd, selectors.EVENT_READ, connection)

    def _advance(self, connection: _Connection) -> None:
        """Continue a handshake; an error on an incoming connection only closes that connection."""
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
            self._connect_at[peer] = time.monotonic() + RETRY_S
            return
        if connection.proven is None:
            self._selector.modify(connection.fd, events, connection)
            return
        self._selector.unregister(connection.fd)
        del self._connections[connection.fd]
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rank, segment = connection.proven
        # From now on the segment is the link's alone.
        connection.proven = None
        self._links[rank] = Link(rank, connection.sock, segment)

    def _drop(self, connection: _Connection) -> None:
        self._selector.unregister(connection.fd)
        del self._connections[connection.fd]
        connection.close()

    def _timeout_error(self, timeout_s: float) -> RendezvousTimeout:
        endpoint = self._endpoint
        missing = [r for r in range(endpoint.size) if r not in self._links and r != endpoint.rank]
        where = ", ".join(
            self._addresses[r] + (f": {self._failures[r]}" if r in self._failures else "") for r in missing
        )
        return RendezvousTimeout(
            f"rank {endpoint.rank}: {calls.name_ranks(missing, endpoint.names)} did not connect within {timeout_s:g} s "
            f"({where}); see whether they run, and whether a firewall is between"
        )
