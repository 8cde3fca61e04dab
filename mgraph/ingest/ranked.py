"""The positions of user ids that have one, in the order of the ids: a bitmap tells whose they are.

Of a graph that has more ids than vertices with edges, such as RMAT graphs of large scales, this is half of a table of
all ids, which every rank needs whole while it reads edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.ingest.compact_kernels import unpack_positions
from mgraph.partition import Partition
from mgraph.types import Array

WORD = 32
# Ids taken at once: a multiple of a word.
PIECE = 1 << 25


@dataclass
class Positions:
    """What finds a position: `table` at an id, or, with `bits`, at the rank of the id among those that have one."""

    bits: Array | None
    before: Array | None  # how many have one in front of each word of bits
    table: Array | None  # None in natural order, where an id is its own position

    @property
    def arrays(self) -> tuple[Array | None, ...]:
        """What kernels take."""
        return self.bits, self.before, self.table

    def of_range(self, backend: Backend, first: int, last: int, dtype: np.dtype) -> Array | None:
        """Return the positions of the ids first .. last; of one that has none, what is no position."""
        if self.table is None:
            return None
        if self.bits is None:
            return self.table if last - first == len(self.table) else self.table[first:last].copy()
        out = backend.xp.empty(last - first, dtype)
        unpack_positions[backend](first, last, *self.arrays, first, out)
        return out


def ranked_bytes(num_vertices: int, partition: Partition) -> int | None:
    """Return what a ranked table takes; None where a whole one takes no more, or a single rank keeps that anyway."""
    position = partition.dtype.itemsize
    words = -(-num_vertices // WORD)
    taken = (4 + position) * words + position * partition.num_positions
    return taken if partition.num_ranks > 1 and taken < position * num_vertices else None


def rank_positions(backend: Backend, partition: Partition, position_of_user: Array | None) -> Positions:
    """Return what finds positions, in as little memory as may be; the table that is given is not kept in it."""
    if position_of_user is None or ranked_bytes(len(position_of_user), partition) is None:
        return Positions(None, None, position_of_user)
    n = len(position_of_user)
    xp, words = backend.xp, -(-n // WORD)
    bits, before = xp.empty(words, np.uint32), xp.empty(words, partition.dtype)
    table, found = xp.empty(partition.num_positions, partition.dtype), 0
    for first in range(0, n, PIECE):
        piece = position_of_user[first : first + PIECE]
        has = xp.zeros(-(-len(piece) // WORD) * WORD, bool)
        has[: len(piece)] = piece < partition.num_positions
        of_word = slice(first // WORD, first // WORD + len(has) // WORD)
        bits[of_word] = xp.packbits(has, bitorder="little").view(np.uint32)
        counts = has.reshape(-1, WORD).sum(axis=1, dtype=np.int64)
        ends = xp.cumsum(counts) + found
        before[of_word] = (ends - counts).astype(partition.dtype)
        last = int(ends[-1])
        table[found:last] = piece[has[: len(piece)]]
        found = last
    return Positions(bits, before, table)
