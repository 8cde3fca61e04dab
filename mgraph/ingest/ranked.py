"""A rank/select table from user ids to positions: a bitmap of the ids that have one, and their positions in id order.

Every rank needs the table of all ids while it reads edges. If many ids have no edges, as in RMAT graphs of large
scales, the rank/select table takes half as much as a plain table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.ingest.compact_kernels import unpack_positions
from mgraph.partition import Partition
from mgraph.types import Array

WORD = 32
# Ids processed at once: a multiple of WORD.
PIECE = 1 << 25


@dataclass
class Positions:
    """A map from user id to position: table[id], or with `bits` table[number of set bits before the id]."""

    bits: Array | None
    before: Array | None  # number of set bits before each word of `bits`
    table: Array | None  # None in natural order, where an id is its own position

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """The three arrays, in the order of the kernels' parameters."""
        return self.bits, self.before, self.table

    def of_range(self, backend: Backend, first: int, last: int, dtype: np.dtype) -> Array | None:
        """Return the positions of the ids first .. last.

        An id without one has the dtype's largest value.
        """
        if self.table is None:
            return None
        if self.bits is None:
            return self.table if last - first == len(self.table) else self.table[first:last].copy()
        out = backend.xp.empty(last - first, dtype)
        unpack_positions[backend](first, last, *self.arrays, first, out)
        return out


def ranked_bytes(num_vertices: int, partition: Partition) -> int | None:
    """Return the bytes of a rank/select table, None if the plain table is used.

    That is if it is no larger, or on a single rank, which stores it with the shard anyway.
    """
    position = partition.dtype.itemsize
    words = -(-num_vertices // WORD)
    ranked = (4 + position) * words + position * partition.num_positions
    return ranked if partition.num_ranks > 1 and ranked < position * num_vertices else None


def rank_positions(backend: Backend, partition: Partition, position_of_user: Array | None) -> Positions:
    """Return the smaller of the plain and the rank/select table, made piece by piece."""
    if position_of_user is None or ranked_bytes(len(position_of_user), partition) is None:
        return Positions(None, None, position_of_user)
    n = len(position_of_user)
    xp = backend.xp
    words = -(-n // WORD)
    bits = xp.empty(words, np.uint32)
    before = xp.empty(words, partition.dtype)
    table = xp.empty(partition.num_positions, partition.dtype)
    filled = 0
    for first in range(0, n, PIECE):
        piece = position_of_user[first : first + PIECE]
        has = xp.zeros(-(-len(piece) // WORD) * WORD, bool)
        has[: len(piece)] = piece < partition.num_positions
        of_word = slice(first // WORD, first // WORD + len(has) // WORD)
        bits[of_word] = xp.packbits(has, bitorder="little").view(np.uint32)
        counts = has.reshape(-1, WORD).sum(axis=1, dtype=np.int64)
        ends = xp.cumsum(counts) + filled
        before[of_word] = (ends - counts).astype(partition.dtype)
        last = int(ends[-1])
        table[filled:last] = piece[has[: len(piece)]]
        filled = last
    return Positions(bits, before, table)
