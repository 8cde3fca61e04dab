"""The handshake of a link: two ranks prove that they belong to one gang, and agree whether they share memory.

It precedes all frames. Its four messages have fixed sizes, so that an unauthenticated peer cannot choose how much is
read or allocated:

    the rank that connects        the rank that listens
    HELLO  ranks, nonce     ->
                            <-    CHALLENGE  nonce
    PROOF  and an offer     ->
                            <-    ANSWER  admitted, sharing or not, and the listener's proof; or refused

A proof is an HMAC-SHA256, keyed with the gang's secret, of the side, the network's name, both ranks, both nonces and
the offer or the answer. So neither a recorded proof nor the other side's proof can be replayed. The connecting rank
proves itself first: an unauthenticated peer never receives anything computed from the secret, and nothing that it
offers is opened. The offer is of a segment of memory (segments.py), for ranks on one host.

Both sides are generators that do no I/O: they yield bytes to write or a number of bytes to read, and are sent the bytes
read (endpoint.py drives them, over TCP or TLS).
"""

from __future__ import annotations

import hmac
import secrets
import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from mgraph.comm.segments import OFFER, Segment, map_segment, offer_segment

# The last byte is the version: of the handshake and of the frames that follow it.
MAGIC = b"mgraph\x00\x02"
NONCE_BYTES = PROOF_BYTES = 32
MIN_SECRET_BYTES = 16
HELLO = struct.Struct(f"!8sII{NONCE_BYTES}s")
CHALLENGE = struct.Struct(f"!8s{NONCE_BYTES}s")
PROOF = struct.Struct(f"!{PROOF_BYTES}s{OFFER.size}s")
ANSWER = struct.Struct(f"!B{PROOF_BYTES}s")
REFUSED = 0
ADMITTED = 1
# Admitted, and the listener has mapped the segment that was offered.
SHARING = 2

# Yields bytes to write or a number of bytes to read; returns the peer's rank, and the segment if they share one.
Handshake = Generator[bytes | int, bytes, tuple[int, Segment | None]]


class Refused(Exception):
    """The peer did not prove itself, or did not accept this side's proof."""


@dataclass(frozen=True)
class Identity:
    """A rank, and the name and the secret that all ranks of its network share."""

    rank: int
    size: int
    network: str
    secret: bytes = field(repr=False)

    def prove(self, side: bytes, caller: int, listener: int, said: bytes) -> bytes:
        """Compute the proof of one side of a link between two ranks: of the nonces, and what that side sends."""
        ranks = struct.pack("!II", caller, listener)
        return hmac.digest(self.secret, b"\0".join((MAGIC, side, ranks, said, self.network.encode())), "sha256")


def greet_rank(me: Identity, peer: int) -> Handshake:
    """Run the connecting side as `me`; raise Refused unless `peer` admits this rank and proves itself."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    yield HELLO.pack(MAGIC, me.rank, peer, nonce)
    magic, other = CHALLENGE.unpack((yield CHALLENGE.size))
    if magic != MAGIC:
        raise Refused("it speaks another version")
    with offer_segment(me.size) as (offer, segment):
        yield PROOF.pack(me.prove(b"caller", me.rank, peer, nonce + other + offer), offer)
        answer, proof = ANSWER.unpack((yield ANSWER.size))
    if answer not in (ADMITTED, SHARING):
        raise Refused("it belongs to another gang")
    if not hmac.compare_digest(proof, me.prove(b"listener", me.rank, peer, nonce + other + bytes([answer]))):
        raise Refused("it did not prove that it belongs to this gang")
    return peer, segment if answer == SHARING else None


def admit_rank(me: Identity, is_awaited: Callable[[int], bool]) -> Handshake:
    """Run the listening side; admit only a rank that proves itself and `is_awaited`."""
    magic, caller, listener, nonce = HELLO.unpack((yield HELLO.size))
    if magic != MAGIC:
        raise Refused("not a rank")
    other = secrets.token_bytes(NONCE_BYTES)
    yield CHALLENGE.pack(MAGIC, other)
    proof, offer = PROOF.unpack((yield PROOF.size))
    proven = hmac.compare_digest(proof, me.prove(b"caller", caller, listener, nonce + other + offer))
    # Checked last: another connection of the same rank may have been admitted meanwhile.
    if not proven or listener != me.rank or not is_awaited(caller):
        yield ANSWER.pack(REFUSED, bytes(PROOF_BYTES))
        raise Refused("no awaited rank of this gang")
    segment = map_segment(offer, me.size)
    answer = ADMITTED if segment is None else SHARING
    yield ANSWER.pack(answer, me.prove(b"listener", caller, listener, nonce + other + bytes([answer])))
    return caller, segment
