"""Files that hold a graph as CSR: arrays of offsets and targets, and perhaps weights, each read in ranges.

A piece is a range of arcs. It also checks an equal share of the offsets, so that all pieces together check each of them
once; the client reads the first and the last offset only.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.indptr import check_ends_of_indptr, check_rising, sources_of_arcs
from mgraph.io.pieces import edge_piece, edges_of_piece, native, num_pieces
from mgraph.io.ranges import PIECE_BYTES, ReadValues, StoredArrays, changed
from mgraph.partition import chunk_range


@dataclass(frozen=True)
class CsrTable:
    """A file's CSR; made by `csr_table`, which checks the ends of the offsets."""

    arrays: StoredArrays
    num_vertices: int
    num_arcs: int
    directed: bool
    has_weights: bool
    labels: Labels = "auto"
    has_first_offset: bool = True  # Galois leaves out the zero
    by_target: bool = False  # a row lists the sources of its vertex, as in CSC
    base: int = 0

    @property
    def name(self) -> str:
        return self.arrays.file.stem

    @property
    def max_edges(self) -> int:
        return self.num_arcs

    @property
    def num_pieces(self) -> int:
        return num_pieces(self.num_arcs)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        lo, hi = edges_of_piece(k, self.num_arcs)
        with self.arrays.opened() as read:
            offsets = Offsets(self, read)
            offsets.check(*chunk_range(self.num_vertices, k, self.num_pieces))
            rows = self._rows(offsets, lo, hi)
            others = read("targets", lo, hi)
            weights = read("weights", lo, hi) if self.has_weights else None
        sources, targets = (others, rows) if self.by_target else (rows, others)
        return edge_piece(sources, targets, weights, lambda i: f"{self.arrays.file}: arc {lo + i}")

    def release(self) -> None:
        release = getattr(self.arrays.file, "release", None)
        if release is not None:
            release()

    def _rows(self, offsets: Offsets, lo: int, hi: int) -> np.ndarray:
        """Return the row of each arc in lo..hi."""
        if lo == hi:
            return np.empty(0, np.int64)
        first = bisect.bisect_right(offsets, lo) - 1
        last = bisect.bisect_left(offsets, hi)
        if 0 <= first < last <= self.num_vertices:
            part = offsets.part(first, last + 1)
            check_rising(part, f"{self.arrays.file}: offsets", first)
            if part[0] <= lo and hi <= part[-1]:
                return first + sources_of_arcs(part, lo, hi)
        raise changed(self.arrays.file, "its offsets do not rise")


class Offsets(Sequence[int]):
    """The offsets of a file's rows, read on access: a sequence for bisect."""

    def __init__(self, table: CsrTable, read: ReadValues) -> None:
        self._table = table
        self._read = read

    def __len__(self) -> int:
        return self._table.num_vertices + 1

    def __getitem__(self, i: int) -> int:  # type: ignore[override]
        return int(self.part(i, i + 1)[0])

    def part(self, lo: int, hi: int) -> np.ndarray:
        """Read the offsets lo..hi."""
        if self._table.has_first_offset:
            return native(self._read("offsets", lo, hi))
        later = native(self._read("offsets", max(lo - 1, 0), max(hi - 1, 0)))
        return later if lo > 0 or hi == 0 else np.concatenate([np.zeros(1, later.dtype), later])

    def check(self, lo: int, hi: int) -> None:
        """Refuse offsets lo..hi that fall."""
        step = PIECE_BYTES // 8
        for begin in range(lo, hi, step):
            part = self.part(begin, min(begin + step, hi) + 1)
            check_rising(part, f"{self._table.arrays.file}: offsets", begin)


def csr_table(table: CsrTable) -> CsrTable:
    """Return a table with offsets that begin at 0 and end at the number of arcs."""
    with table.arrays.opened() as read:
        offsets = Offsets(table, read)
        check_ends_of_indptr(offsets[0], offsets[table.num_vertices], table.num_arcs, f"{table.arrays.file}: offsets")
    return table


def check_stored(
    file: object, weight: str | int | bool | None, num_vertices: int | None, *, has: int, weighted: bool
) -> bool:
    """Check options against a file that declares `has` vertices; return whether its weights are wanted."""
    if num_vertices not in (None, has):
        raise UsageError(f"{file} has {has} vertices, not {num_vertices}")
    if has > np.iinfo(np.int64).max:
        raise InputError(f"{file} has {has} vertices: more than 63 bits count")
    if weight is not None and not isinstance(weight, (bool, np.bool_)):
        raise UsageError(f"{file} has one list of weights at most, and no column {weight!r}")
    if weight is True and not weighted:
        raise UsageError(f"{file} has no weights")
    return weighted and weight is not False
