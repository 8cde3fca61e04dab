"""A connection between two ranks: frames in both directions, on a socket that never blocks.

A frame is a head of fixed size, a description, and a payload of raw bytes that is received where its receiver wants
it. Nothing is pickled, and lengths that cannot be right are refused before anything is allocated.

A link belongs to the thread that drives it (sockets.py sees to that) and has no lock of its own.
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

# Kind, length of the description, number of the exchange, length of the payload.
HEAD = struct.Struct("!BxxxIQQ")
DATA, ABORT, BYE = 1, 2, 3
# A verb, a dtype and a shape; or why a rank failed.
MAX_DESCRIPTION_BYTES = 4096
# More than a host has memory.
MAX_PAYLOAD_BYTES = 1 << 44
# A payload up to here is copied behind its head: one system call, and the array may change at once.
JOIN_BYTES = 64 << 10
BUFFER_BYTES = 64 << 10
DRAINED_AT_ONCE = 64
# What is sent or received in one turn at most: an abort is looked for between turns. A slice is cut alike each time it
# is tried, since OpenSSL wants a write that did not go through repeated as it was.
TURN_BYTES = 1 << 20
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frame(NamedTuple):
    """What the head of a frame says, and its description."""

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
        self.peer, self.sock = peer, sock
        self.fd = sock.fileno()
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        # TLS may have to write before it can read.
        self.wants_to_write = False
        # The peer took leave: nothing but the end of the connection may follow.
        self.left = False
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._begin = self._end = 0
        self._target: memoryview | None = None
        # Set when a payload that was under way is there.
        self.is_full = False
        self._outgoing: deque[memoryview] = deque()
        # How many of the outgoing pieces belong to a frame that has begun.
        self._begun = 0

    @property
    def has_unsent(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._outgoing)

    @property
    def has_unread(self) -> bool:
        """Whether something was received that poll() does not report."""
        return self._begin < self._end or self.has_decrypted

    @property
    def has_decrypted(self) -> bool:
        """Whether TLS holds bytes that it has decrypted and that were not read."""
        return self._tls is not None and self._tls.pending() > 0

    def queue(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Put a frame behind what waits to be sent."""
        self._outgoing.extend(map(memoryview, pieces))

    def flush(self) -> bool:
        """Send what the socket takes in one turn; return whether all is out."""
        out, turn = self._outgoing, TURN_BYTES
        # Even where nothing goes out: TLS may have encrypted some.
        self._begun = self._begun or len(out)
        try:
            while out and turn > 0:
                piece = out[0]
                sent = self.sock.send(piece[:TURN_BYTES])
                turn -= sent
                if sent == piece.nbytes:
                    out.popleft()
                    self._begun -= 1
                else:
                    out[0] = piece[sent:]
        except WOULD_BLOCK:
            return False
        return not out

    def replace_unsent(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Queue a frame in place of what has not begun: a frame that is half out cannot be interrupted."""
        while len(self._outgoing) > self._begun:
            self._outgoing.pop()
        self.queue(pieces)

    def drop_unsent(self) -> None:
        """Forget what waits to be sent: the connection takes no more."""
        self._outgoing.clear()
        self._begun = 0

    def peek(self) -> Frame | None:
        """Return the frame that comes next, if its head and description are there; it stays until it is taken."""
        have = self._end - self._begin
        if have < HEAD.size:
            return None
        kind, length, number, nbytes = HEAD.unpack_from(self._buffer, self._begin)
        if not DATA <= kind <= BYE or length > MAX_DESCRIPTION_BYTES or nbytes > MAX_PAYLOAD_BYTES:
            raise CommAborted(
                f"rank {self.peer} sent a frame of kind {kind} with {length} + {nbytes} bytes, which no rank sends: "
                "its link is broken or it runs another version of mgraph"
            )
        if have < HEAD.size + length:
            return None
        start = self._begin + HEAD.size
        return Frame(kind, number, bytes(self._buffer[start : start + length]), nbytes)

    def take(self, frame: Frame, target: memoryview | None) -> bool:
        """Leave the head of the next frame behind and receive its payload into `target`; return whether it is there."""
        self._begin += HEAD.size + len(frame.description)
        if target is None or not target.nbytes:
            return True
        there = min(self._end - self._begin, target.nbytes)
        target[:there] = self._buffer[self._begin : self._begin + there]
        self._begin += there
        self._target = target[there:] if there < target.nbytes else None
        return self._target is None

    @property
    def is_filling(self) -> bool:
        """Whether the payload of a frame is under way."""
        return self._target is not None

    def read(self) -> bool:
        """Receive once; return False where nothing is there. Raises EOFError at the end of the connection."""
        buffer = self._target if self._target is not None else self._free_space()
        self.wants_to_write = False
        try:
            count = self.sock.recv_into(buffer[:TURN_BYTES])
        except WOULD_BLOCK as error:
            self.wants_to_write = isinstance(error, ssl.SSLWantWriteError)
            return False
        if not count:
            raise EOFError("the connection was closed")
        if self._target is None:
            self._end += count
        else:
            self._target = self._target[count:] if count < self._target.nbytes else None
            self.is_full = self._target is None
        return True

    def drain(self) -> bool:
        """Throw away what has come; return whether the connection has ended."""
        self._target, self._begin, self._end = None, 0, 0
        try:
            # Not for ever, however fast the peer sends: the caller has a deadline.
            for _ in range(DRAINED_AT_ONCE):
                if not self.read():
                    break
                self._begin = self._end = 0
        except (OSError, EOFError):
            return True
        return False

    def finish(self) -> None:
        """Say that nothing more will be sent; the peer can still send."""
        with contextlib.suppress(OSError):
            # Of TLS too: what comes from here on is thrown away, decrypted or not.
            self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self.sock.close()

    def _free_space(self) -> memoryview:
        """Return the part of the buffer behind what was received and not yet taken: a head fits in at least."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._end > BUFFER_BYTES - HEAD.size - MAX_DESCRIPTION_BYTES:
            rest = bytes(self._buffer[self._begin : self._end])
            self._buffer[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        return self._buffer[self._end :]
