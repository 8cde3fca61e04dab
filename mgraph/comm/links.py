"""A connection between two ranks: frames in both directions, on a socket that never blocks.

A frame is a head of fixed size, a description, and a payload of raw bytes, received directly into the caller's array.
If two ranks share a segment (segments.py), a large payload follows in its slots, and a frame announces each slot that
was filled or read. Nothing is pickled, and impossible lengths are refused before anything is allocated.

A link has no lock: one thread at a time drives it (exchange.py holds a lock for that).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections import deque
from collections.abc import Sequence

import numpy as np

from mgraph.comm.segments import Segment
from mgraph.errors import CommAborted

# Frame kind, length of the description, number of the exchange, length of the payload.
HEAD = struct.Struct("!BxxxIQQ")
DATA = 1
ABORT = 2
BYE = 3
# As DATA, but the payload follows in slots.
SHARED = 4
FILLED = 5
RETURNED = 6
# Of a verb, a dtype and a shape; or of the cause of a failure.
MAX_DESCRIPTION_BYTES = 4096
# More than the memory of any host.
MAX_PAYLOAD_BYTES = 1 << 44
# A payload up to this size is copied behind its head: one system call, and the array may be reused at once. Larger ones
# go through a segment, if there is one.
JOIN_BYTES = 64 << 10
BUFFER_BYTES = 64 << 10
DRAINED_AT_ONCE = 64
# Most bytes that one call of `flush` or `read` transfers: aborts are checked between calls. Each retry of a send passes
# the same slice, since OpenSSL requires that a write which would block is repeated with the same arguments.
CHUNK_BYTES = 1 << 20
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
SLOT_IS_RETURNED = HEAD.pack(RETURNED, 0, 0, 0)
# What a frame is sent in.
Pieces = Sequence[bytes | memoryview]


def pack(kind: int, number: int, description: bytes, payload: np.ndarray | None = None) -> Pieces:
    """Return the pieces of a frame, in the order in which they are sent."""
    head = HEAD.pack(kind, len(description), number, 0 if payload is None else payload.nbytes) + description
    if payload is None or kind == SHARED:
        return (head,)
    return (head + payload.tobytes(),) if payload.nbytes <= JOIN_BYTES else (head, bytes_of(payload))


def bytes_of(array: np.ndarray) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return memoryview(array.reshape(-1).view(np.uint8).data)


class Link:
    """One rank's end of the connection to a peer."""

    def __init__(self, peer: int, sock: socket.socket, segment: Segment | None = None) -> None:
        self.peer = peer
        self.sock = sock
        self.segment = segment
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
        # Pieces of frames, each with whether it is the last one of its frame.
        self._outgoing: deque[tuple[memoryview, bool]] = deque()
        # Whether the first piece, or one before it of the same frame, may be partly sent.
        self._begun = False

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._outgoing)

    @property
    def has_decrypted(self) -> bool:
        """Whether TLS holds decrypted bytes that were not read."""
        return self._tls is not None and self._tls.pending() > 0

    def send(self, pieces: Pieces) -> bool:
        """Send a frame behind all others, as far as the socket accepts it; return whether nothing is left to send."""
        if self._outgoing or len(pieces) > 1:
            self._queue(pieces)
            return self.flush()
        # Nearly every frame of a small verb: sent at once and whole.
        (frame,) = pieces
        try:
            sent = self.sock.send(frame)
        except WOULD_BLOCK:
            sent = 0
        if sent < len(frame):
            self._begun = True
            self._outgoing.append((memoryview(frame)[sent:], True))
        return sent == len(frame)

    def send_array(self, number: int, description: bytes, array: np.ndarray) -> bool:
        """Send a large payload, through the segment if there is one; return whether nothing is left to send."""
        if self.segment is None:
            return self.send(pack(DATA, number, description, array))
        self.segment.send(array)
        return self.send(pack(SHARED, number, description, array)) and self.flush()

    def take_slot(self, nbytes: int) -> None:
        """Receive the piece that the peer has announced, and return its slot; `flush` sends the answer."""
        self._segment_or_refuse().take(nbytes)
        self.has_payload_ended = not self._segment_or_refuse().is_receiving
        self._queue((SLOT_IS_RETURNED,))

    def return_slot(self) -> None:
        """Count a slot as free that the peer has read; `flush` fills it."""
        self._segment_or_refuse().return_slot()

    def _segment_or_refuse(self) -> Segment:
        if self.segment is None:
            raise CommAborted(f"rank {self.peer} announced a slot of a segment that it does not have")
        return self.segment

    def _fill(self) -> bool:
        """Fill a slot with the next piece of the payload and queue its frame; return whether there was one."""
        nbytes = 0 if self.segment is None else self.segment.fill()
        if nbytes:
            self._queue((HEAD.pack(FILLED, 0, 0, nbytes),))
        return nbytes > 0

    def _queue(self, pieces: Pieces) -> None:
        last = len(pieces) - 1
        for i, piece in enumerate(pieces):
            self._outgoing.append((memoryview(piece), i == last))

    def flush(self) -> bool:
        """Send at most CHUNK_BYTES, or the slots that are free; return whether nothing is left to send."""
        out = self._outgoing
        budget = CHUNK_BYTES
        try:
            while (out or self._fill()) and budget > 0:
                piece, is_last = out[0]
                # Even if the socket accepts no byte: TLS may have encrypted some already.
                self._begun = True
                sent = self.sock.send(piece[:CHUNK_BYTES])
                budget -= sent
                if sent == piece.nbytes:
                    out.popleft()
                    self._begun = not is_last
                else:
                    out[0] = piece[sent:], is_last
        except WOULD_BLOCK:
            return False
        return not out and not (self.segment and self.segment.is_sending)

    def replace_unsent(self, pieces: Pieces) -> None:
        """Replace all that waits by a last frame; a partly sent frame must be completed."""
        kept = list[tuple[memoryview, bool]]()
        while self._begun and not (kept and kept[-1][1]):
            kept.append(self._outgoing.popleft())
        self._outgoing = deque(kept)
        self.segment = None
        self._queue(pieces)

    def drop_unsent(self) -> None:
        """Discard all unsent bytes: the connection accepts no more."""
        self._outgoing.clear()
        self._begun = False

    def peek(self) -> tuple[int, int, int, int] | None:
        """Return kind, length of the description, number and payload bytes of the next frame, if it has arrived.

        None while the payload of a frame is partly received.
        """
        available = self._end - self._begin
        if available < HEAD.size or self._target is not None:
            return None
        head = kind, length, _, nbytes = HEAD.unpack_from(self._buffer, self._begin)
        if not DATA <= kind <= RETURNED or length > MAX_DESCRIPTION_BYTES or nbytes > MAX_PAYLOAD_BYTES:
            raise CommAborted(
                f"rank {self.peer} sent a frame of kind {kind} with {length} + {nbytes} bytes, which no rank sends: "
                "its link is broken or it runs another version of mgraph"
            )
        return head if available >= HEAD.size + length else None

    def description(self, length: int) -> bytes:
        """Return the description of the next frame."""
        start = self._begin + HEAD.size
        return bytes(self._buffer[start : start + length])

    def accept(self, kind: int, length: int, target: np.ndarray | None = None) -> bool:
        """Consume the head of the next frame and begin to receive its payload into `target`.

        Return whether the payload is complete; if not, `read` continues it, or `take_slot`.
        """
        self._begin += HEAD.size + length
        if target is None or not target.nbytes:
            return True
        if kind == SHARED:
            self._segment_or_refuse().receive(target)
            return False
        available = min(self._end - self._begin, target.nbytes)
        if available == target.nbytes:
            # Faster by a microsecond than by a memoryview of the array.
            target.reshape(-1)[:] = np.frombuffer(self._buffer, target.dtype, target.size, self._begin)
            self._begin += available
            return True
        rest = bytes_of(target)
        rest[:available] = self._buffer[self._begin : self._begin + available]
        self._begin += available
        self._target = rest[available:]
        return False

    def read(self) -> bool:
        """Receive once; return whether bytes were there. Raises EOFError at the end of the connection."""
        buffer = self._free_space() if self._target is None else self._target[:CHUNK_BYTES]
        self.wants_to_write = False
        try:
            count = self.sock.recv_into(buffer)
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
        """Close the socket, and unmap the segment."""
        self.segment = None
        with contextlib.suppress(OSError):
            self.sock.close()

    def _free_space(self) -> memoryview:
        """Return the free end of the buffer, large enough for a head and a description."""
        if self._begin == self._end:
            self._begin = self._end = 0
            return self._buffer
        if self._end > BUFFER_BYTES - HEAD.size - MAX_DESCRIPTION_BYTES:
            rest = bytes(self._buffer[self._begin : self._end])
            self._buffer[: len(rest)] = rest
            self._begin = 0
            self._end = len(rest)
        return self._buffer[self._end :]
