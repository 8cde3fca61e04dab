"""A connection between two ranks: frames in both directions, on a socket that never blocks.

A frame is a head of fixed size, a description, and a payload of raw bytes, received directly into the caller's array.
Nothing is pickled, and impossible lengths are refused before anything is allocated.

A link has no lock: one thread at a time drives it (exchange.py holds a lock for that).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from mgraph.errors import CommAborted

# Frame kind, length of the description, number of the exchange, length of the payload.
HEAD = struct.Struct("!BxxxIQQ")
DATA = 1
ABORT = 2
BYE = 3
# Of a verb, a dtype and a shape; or of the cause of a failure.
MAX_DESCRIPTION_BYTES = 4096
# More than the memory of any host.
MAX_PAYLOAD_BYTES = 1 << 44
# A payload up to this size is copied behind its head: one system call, and the array may be reused at once.
JOIN_BYTES = 64 << 10
BUFFER_BYTES = 64 << 10
DRAINED_AT_ONCE = 64
# Most bytes that one call of `flush` or `read` transfers: aborts are checked between calls. Each retry of a send passes
# the same slice, since OpenSSL requires that a write which would block is repeated with the same arguments.
CHUNK_BYTES = 1 << 20
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frame(NamedTuple):
    """The fields of a frame's head, and its description."""

    kind: int
    number: int
    description: bytes
    nbytes: int


def pack(kind: int, number: int, description: bytes, payload: memoryview | None = None) -> Sequence[bytes | memoryview]:
    """Return the pieces of a frame, in the order in which they are sent."""
    nbytes = 0 if payload is None else payload.nbytes
    head = HEAD.pack(kind, len(description), number, nbytes) + description
    if payload is None or not nbytes:
        return (head,)
    return (head + payload,) if nbytes <= JOIN_BYTES else (head, payload)


class Link:
    """One rank's end of the connection to a peer."""

    def __init__(self, peer: int, sock: socket.socket) -> None:
        self.peer = peer
        self.sock = sock
        self.fd = sock.fileno()
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        # Set by `read` if TLS must write before it can read.
        self.wants_to_write = False
        # Set when the peer's BYE was received: only the end of the connection may follow.
        self.has_peer_closed = False
        # Received bytes that were not consumed yet: buffer[begin:end].
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._begin = self._end = 0
        # The rest of the array into which a payload is being received.
        self._target: memoryview | None = None
        # Set by `read` when it completes a payload.
        self.has_payload_ended = False
        self._outgoing: deque[memoryview] = deque()
        # How many of the outgoing pieces belong to frames that are partly sent.
        self._begun = 0

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._outgoing)

    @property
    def has_unread(self) -> bool:
        """Whether received bytes wait here that poll() does not report."""
        return self._begin < self._end or self.has_decrypted

    @property
    def has_decrypted(self) -> bool:
        """Whether TLS holds decrypted bytes that were not read."""
        return self._tls is not None and self._tls.pending() > 0

    def queue(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Append a frame to the bytes that wait to be sent."""
        self._outgoing.extend(map(memoryview, pieces))

    def flush(self) -> bool:
        """Send at most CHUNK_BYTES; return whether nothing is left to send."""
        out = self._outgoing
        budget = CHUNK_BYTES
        # Even if the socket accepts no byte: TLS may have encrypted some already.
        self._begun = self._begun or len(out)
        try:
            while out and budget > 0:
                piece = out[0]
                sent = self.sock.send(piece[:CHUNK_BYTES])
                budget -= sent
                if sent == piece.nbytes:
                    out.popleft()
                    self._begun -= 1
                else:
                    out[0] = piece[sent:]
        except WOULD_BLOCK:
            return False
        return not out

    def replace_unsent(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Replace the frames that were not begun by another; a partly sent frame must be completed."""
        while len(self._outgoing) > self._begun:
            self._outgoing.pop()
        self.queue(pieces)

    def drop_unsent(self) -> None:
        """Discard all unsent bytes: the connection accepts no more."""
        self._outgoing.clear()
        self._begun = 0

    def peek(self) -> Frame | None:
        """Return the next frame, without consuming it, if its head and description have arrived."""
        available = self._end - self._begin
        if available < HEAD.size:
            return None
        kind, length, number, nbytes = HEAD.unpack_from(self._buffer, self._begin)
        if not DATA <= kind <= BYE or length > MAX_DESCRIPTION_BYTES or nbytes > MAX_PAYLOAD_BYTES:
            raise CommAborted(
                f"rank {self.peer} sent a frame of kind {kind} with {length} + {nbytes} bytes, which no rank sends: "
                "its link is broken or it runs another version of mgraph"
            )
        if available < HEAD.size + length:
            return None
        start = self._begin + HEAD.size
        return Frame(kind, number, bytes(self._buffer[start : start + length]), nbytes)

    def accept(self, frame: Frame, target: memoryview | None) -> bool:
        """Consume the head of the next frame and begin to receive its payload into `target`.

        Return whether the payload is complete; if not, `read` continues it.
        """
        self._begin += HEAD.size + len(frame.description)
        if target is None or not target.nbytes:
            return True
        available = min(self._end - self._begin, target.nbytes)
        target[:available] = self._buffer[self._begin : self._begin + available]
        self._begin += available
        self._target = target[available:] if available < target.nbytes else None
        return self._target is None

    @property
    def is_in_payload(self) -> bool:
        """Whether the payload of a frame is partly received."""
        return self._target is not None

    def read(self) -> bool:
        """Receive once; return whether bytes were there. Raises EOFError at the end of the connection."""
        buffer = self._target if self._target is not None else self._free_space()
        self.wants_to_write = False
        try:
            count = self.sock.recv_into(buffer[:CHUNK_BYTES])
        except WOULD_BLOCK as error:
            self.wants_to_write = isinstance(error, ssl.SSLWantWriteError)
            return False
        if not count:
            raise EOFError("the connection was closed")
        if self._target is None:
            self._end += count
        else:
            self._target = self._target[count:] if count < self._target.nbytes else None
            self.has_payload_ended = self._target is None
        return True

    def drain(self) -> bool:
        """Discard received bytes; return whether the connection has ended."""
        self._target = None
        self._begin = 0
        self._end = 0
        try:
            # Bounded, however fast the peer sends: the caller has a deadline.
            for _ in range(DRAINED_AT_ONCE):
                if not self.read():
                    break
                self._begin = self._end = 0
        except (OSError, EOFError):
            return True
        return False

    def finish(self) -> None:
        """Shut down the sending direction; the peer can still send."""
        with contextlib.suppress(OSError):
            # The TCP direction also under TLS: later bytes are discarded, decrypted or not.
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self.sock.close()

    def _free_space(self) -> memoryview:
        """Return the free end of the buffer, large enough for a head and a description."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._end > BUFFER_BYTES - HEAD.size - MAX_DESCRIPTION_BYTES:
            rest = bytes(self._buffer[self._begin : self._end])
            self._buffer[: len(rest)] = rest
            self._begin = 0
            self._end = len(rest)
        return self._buffer[self._end :]
