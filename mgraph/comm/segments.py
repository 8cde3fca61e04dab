"""Memory shared by two ranks of one host, through which large payloads go.

A segment has some slots for each direction. The sender copies a piece of its payload into a free slot and announces it
by a frame on the link; the receiver copies it out and returns the slot by another. The link is thus the only signal:
it orders the accesses to a slot, wakes the peer, and ends when the peer dies. Between ranks with links of sockets
alone, nothing but the way of the payload differs.

The connecting rank creates the segment as a memory file without a name (memfd), of its user alone, and offers it in the
handshake. The kernel frees it with the last process that has it, however that ends. The pages are reserved and the size
is sealed before another rank maps it, so that no access fails later. The listening rank opens it through the creator's
/proc/<pid>/fd, which takes the same user, kernel and PID namespace, and compares a random token with its first bytes.
If any of this fails, the payloads of the two go through their sockets.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import mmap
import os
import secrets
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mgraph.errors import CommAborted

TOKEN_BYTES = 32
# Where the creator runs, its pid, the descriptor in that process, and the token.
OFFER = struct.Struct(f"!32sII{TOKEN_BYTES}s")
NO_OFFER = bytes(OFFER.size)
# Two slots for each direction: one is filled while the other is read.
SLOTS = 2
# Larger slots leave the L2 cache, smaller ones need more frames.
MAX_SLOT_BYTES = 1 << 20
# Of all segments of one rank, whatever the number of ranks.
RANK_BYTES = 64 << 20
# The token has the first page, so that slots begin at pages.
TOKEN_PAGE = mmap.PAGESIZE
NOTHING = np.empty(0, np.uint8)


class Offer(NamedTuple):
    """What the creator of a segment sends to the peer, and its own end of the segment."""

    message: bytes
    segment: Segment | None


class Segment:
    """One rank's end of the memory that it shares with a peer."""

    def __init__(self, memory: mmap.mmap, side: int) -> None:
        slots = np.frombuffer(memory, np.uint8, offset=TOKEN_PAGE).reshape(2, SLOTS, -1)
        self._own_slots = slots[side]
        self._peer_slots = slots[1 - side]
        # The parts of the payloads that are not sent or received yet.
        self._outgoing = NOTHING
        self._target = NOTHING
        self._num_free = SLOTS
        self._num_filled = self._num_taken = 0

    @property
    def is_sending(self) -> bool:
        """Whether a part of the payload waits for a free slot."""
        return self._outgoing.size > 0

    @property
    def is_receiving(self) -> bool:
        """Whether a part of a payload has not arrived."""
        return self._target.size > 0

    def send(self, payload: np.ndarray) -> None:
        """Begin to send the bytes of an array."""
        self._outgoing = payload.reshape(-1).view(np.uint8)

    def receive(self, target: np.ndarray) -> None:
        """Begin to receive into an array."""
        self._target = target.reshape(-1).view(np.uint8)

    def fill(self) -> int:
        """Copy the next piece of the payload into a free slot; return its bytes, 0 if none is left or no slot free."""
        if not self._num_free:
            return 0
        slot = self._own_slots[self._num_filled % SLOTS]
        piece = self._outgoing[: slot.size]
        if piece.size:
            slot[: piece.size] = piece
            self._outgoing = self._outgoing[piece.size :]
            self._num_filled += 1
            self._num_free -= 1
        return piece.size

    def take(self, nbytes: int) -> None:
        """Copy the piece of `nbytes` that the peer has announced out of its slot."""
        slot = self._peer_slots[self._num_taken % SLOTS]
        if not 0 < nbytes <= min(slot.size, self._target.size):
            raise CommAborted(f"a slot of {nbytes} bytes was announced, which no rank sends")
        self._target[:nbytes] = slot[:nbytes]
        self._target = self._target[nbytes:]
        self._num_taken += 1

    def return_slot(self) -> None:
        """Count a slot as free that the peer has read."""
        if self._num_free == SLOTS:
            raise CommAborted("a slot was returned that was free, which no rank does")
        self._num_free += 1


@contextlib.contextmanager
def offer_segment(size: int) -> Iterator[Offer]:
    """Create a segment for two of `size` ranks; until this context ends the peer can map it."""
    descriptor = -1
    offer = Offer(NO_OFFER, None)
    try:
        with contextlib.suppress(OSError, AttributeError):  # of systems without memory files, or without room
            descriptor = os.memfd_create("mgraph", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            offer = _create(descriptor, size)
        yield offer
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def map_segment(message: bytes, size: int) -> Segment | None:
    """Map the segment that an authenticated peer offers; return None if this process cannot."""
    host, pid, descriptor, token = OFFER.unpack(message)
    with contextlib.suppress(OSError):
        if message == NO_OFFER or host != host_identity():
            return None
        # The peer names the file: whatever else it may be, opening it neither blocks nor changes anything.
        opened = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            # Only memory files have seals.
            sealed = fcntl.fcntl(opened, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
            if not sealed or os.fstat(opened).st_size != _segment_bytes(size):
                return None
            memory = mmap.mmap(opened, _segment_bytes(size))
        finally:
            os.close(opened)
        if hmac.compare_digest(memory[:TOKEN_BYTES], token):
            return Segment(memory, 1)
    return None


def host_identity() -> bytes:
    """Return a digest that processes share which see each other under the same pids."""
    with open("/proc/sys/kernel/random/boot_id") as boot_id:
        return hashlib.sha256(f"{boot_id.read()} {os.readlink('/proc/self/ns/pid')}".encode()).digest()


def _create(descriptor: int, size: int) -> Offer:
    nbytes = _segment_bytes(size)
    os.fchmod(descriptor, 0o600)
    os.ftruncate(descriptor, nbytes)
    # Memory that is missing is an error here, and not a signal when a slot is written.
    os.posix_fallocate(descriptor, 0, nbytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    memory = mmap.mmap(descriptor, nbytes)
    memory[:TOKEN_BYTES] = token = secrets.token_bytes(TOKEN_BYTES)
    return Offer(OFFER.pack(host_identity(), os.getpid(), descriptor, token), Segment(memory, 0))


def _segment_bytes(size: int) -> int:
    """Return the bytes of each segment among `size` ranks: the same on all of them."""
    pages = min(MAX_SLOT_BYTES, RANK_BYTES // (2 * SLOTS * (size - 1))) // mmap.PAGESIZE
    return TOKEN_PAGE + 2 * SLOTS * max(1, pages) * mmap.PAGESIZE
