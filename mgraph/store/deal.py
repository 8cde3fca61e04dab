"""Read rows that were saved by another number of ranks: each rank reads a share of them and sends rows to their owners.

Degree order deals positions round-robin, so that the rows that one part and one rank share are at equal intervals: all
places follow by arithmetic, from the cuts of the manifest and for arcs from the lengths of rows. Nothing is sorted.

    piece k of the store     read by rank k mod p, in step with the others
    its rows                 row l of part s has position l * parts + s: owner and local index follow
    its arcs                 bucketed by owner in the order of rows; placed in the owner's rows, which are in this order
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.rows import offsets_of
from mgraph.store.files import Extent, read_array
from mgraph.store.kernels import move_arcs
from mgraph.store.manifest import PIECE_ARCS, StoredGraph
from mgraph.types import Array


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of a part, and consecutive arcs of them.

    Attributes
    ----------
    skip
        The arcs of the first row that earlier pieces have.
    taken
        Where the piece ends in its last row; None if at its end.
    """

    part: int
    rows: range
    arcs: range
    skip: int
    taken: int | None

    def dealt(self, num_parts: int, rank: int, num_ranks: int) -> tuple[slice, slice]:
        """Return which of the piece's rows a rank owns, counted from the first, and their local indices there."""
        common = math.gcd(num_parts, num_ranks)
        period = num_ranks // common
        if (rank - self.part) % common:
            return slice(0, 0), slice(0, 0)
        # The rows l with l * num_parts + part = rank modulo num_ranks, found modulo the period.
        solution = (rank - self.part) // common * pow(num_parts // common, -1, period)
        first = (solution - self.rows.start) % period
        count = len(range(first, len(self.rows), period))
        local = ((self.rows.start + first) * num_parts + self.part) // num_ranks
        step = num_parts // common
        return slice(first, None if count else first, period), slice(local, local + count * step, step)

    def lengths_of(self, whole: Array, rows: slice) -> Array:
        """Return how many of its arcs each of `rows` has in this piece, of rows of these lengths."""
        lengths = whole.astype(np.int64)
        if not len(lengths):
            return lengths
        chosen = range(len(self.rows))[rows]
        if self.taken is not None and chosen[-1] == len(self.rows) - 1:
            lengths[-1] = self.taken
        if chosen[0] == 0:
            lengths[0] -= self.skip
        return lengths


def pieces_of_rows(store: StoredGraph) -> list[Piece]:
    """Return the rows of all parts in pieces, without their arcs."""
    none = range(0)
    return [
        Piece(number, range(first, min(first + PIECE_ARCS, part.arrays["lengths"].count)), none, 0, None)
        for number, part in enumerate(store.parts)
        for first in range(0, part.arrays["lengths"].count, PIECE_ARCS)
    ]


def pieces_of_arcs(store: StoredGraph) -> list[Piece]:
    """Return the arcs of all parts in the pieces between their cuts."""
    pieces = []
    for number, part in enumerate(store.parts):
        for (arc, row, skip), (last_arc, last_row, taken) in zip(part.cuts, part.cuts[1:], strict=False):
            if arc < last_arc:
                rows = range(row, last_row + (taken > 0))
                pieces.append(Piece(number, rows, range(arc, last_arc), skip, taken or None))
    return pieces


def deal_rows(store: StoredGraph, array: str, partition: Partition, backend: Backend, comm: Communicator) -> Array:
    """Return the values of this rank's rows, of an array with one value for each row."""
    num_parts = store.partition.num_ranks
    into = backend.xp.empty(partition.num_owned(comm.rank), store.dtypes[array])
    for pieces in _steps(pieces_of_rows(store), comm):
        own = pieces[comm.rank]
        values = _read(store, array, own, None if own is None else own.rows, backend)
        parts = [
            values[:0] if own is None else backend.xp.ascontiguousarray(values[own.dealt(num_parts, r, comm.size)[0]])
            for r in range(comm.size)
        ]
        received = comm.alltoallv(parts)
        for piece, part in zip(pieces, received, strict=True):
            if piece is not None and len(part):
                into[piece.dealt(num_parts, comm.rank, comm.size)[1]] = part
    return into


def deal_arcs(
    store: StoredGraph,
    lengths: Array,
    indptr: Array,
    arrays: tuple[Array, Array | None],
    partition: Partition,
    backend: Backend,
    comm: Communicator,
) -> None:
    """Write the targets of this rank's rows, as positions, and any weights into arrays."""
    targets, weights = arrays
    num_parts = store.partition.num_ranks
    for pieces in _steps(pieces_of_arcs(store), comm):
        columns = _bucketed(store, pieces[comm.rank], partition, backend, comm.size)
        received = [comm.alltoallv(column) for column in columns]
        del columns
        for sender, piece in enumerate(pieces):
            if piece is None:
                continue
            rows, own = piece.dealt(num_parts, comm.rank, comm.size)
            counts = piece.lengths_of(lengths[own], rows)
            begins = offsets_of(backend, counts)
            shifts = indptr[:-1][own] - begins[:-1]
            if len(counts) and range(len(piece.rows))[rows][0] == 0:
                shifts[0] += piece.skip
            of_sender = [column[sender] for column in received]
            move_arcs[backend](
                0, len(of_sender[0]), begins, len(counts), shifts, of_sender[0],
                None if weights is None else of_sender[1], targets, weights,
            )  # fmt: skip
    backend.release()


def _bucketed(
    store: StoredGraph, piece: Piece | None, partition: Partition, backend: Backend, num_ranks: int
) -> list[list[Array]]:
    """Read a piece of the rows; return targets and any weights in one array for each owner."""
    xp = backend.xp
    names = ["targets", "weights"] if "weights" in store.dtypes else ["targets"]
    arcs = None if piece is None else piece.arcs
    columns = [_read(store, name, piece, arcs, backend) for name in names]
    columns[0] = columns[0].astype(partition.dtype, copy=False)
    if piece is None:
        return [[column] * num_ranks for column in columns]
    lengths = piece.lengths_of(_read(store, "lengths", piece, piece.rows, backend), slice(None))
    begins = offsets_of(backend, lengths)
    shifts = xp.empty(len(lengths), np.int64)
    ends = [0]
    for rank in range(num_ranks):
        rows, _ = piece.dealt(store.partition.num_ranks, rank, num_ranks)
        in_bucket = offsets_of(backend, lengths[rows])
        shifts[rows] = ends[-1] + in_bucket[:-1] - begins[:-1][rows]
        ends.append(ends[-1] + int(in_bucket[-1]))
    out = [xp.empty_like(column) for column in columns]
    weights = (columns[1], out[1]) if len(columns) > 1 else (None, None)
    move_arcs[backend](
        0, len(piece.arcs), begins, len(lengths), shifts, columns[0], weights[0], out[0], weights[1]
    )  # fmt: skip
    return [xp.split(column, ends[1:-1]) for column in out]


def _read(store: StoredGraph, array: str, piece: Piece | None, values: range | None, backend: Backend) -> Array:
    extents = [] if piece is None or values is None else [Extent(piece.part, values.start, values.stop)]
    return read_array(store, array, extents, backend)


def _steps(pieces: list[Piece], comm: Communicator) -> Iterator[list[Piece | None]]:
    """Yield the pieces that the ranks read at the same time, None for a rank without one."""
    for first in range(0, len(pieces), comm.size):
        step = pieces[first : first + comm.size]
        yield [*step, *[None] * (comm.size - len(step))]
