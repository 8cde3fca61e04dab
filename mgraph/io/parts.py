"""Give each rank of other processes its own part of the edges: of arrays in the client, or of partitions on workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.edges import EdgePiece, EdgeSizes, EdgeTable, Labels
from mgraph.io.memory import MemoryTable
from mgraph.io.partitions import PartitionTable
from mgraph.labels.strings import Strings
from mgraph.types import SMALL_VERTEX, none_of


@dataclass(frozen=True, eq=False)
class PartTable:
    """The pieces k with k mod num_ranks == rank: exactly those that this rank reads."""

    name: str
    directed: bool
    has_weights: bool
    num_vertices: int | None
    labels: Labels
    base: int
    num_pieces: int
    max_edges: int
    pieces: dict[int, EdgePiece]
    may_be_empty: ClassVar[bool] = True

    def __sizeof__(self) -> int:
        # Dask's estimate of the size, which by default does not count the arrays.
        return object.__sizeof__(self) + sum(map(_nbytes, self.pieces.values()))

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Return piece k, which was sent to this rank."""
        return self.pieces[k]

    def release(self) -> None:
        """Drop the pieces."""
        self.pieces.clear()


def parts_of(
    edges: EdgeSizes | EdgeTable, num_ranks: int
) -> Sequence[Any] | Callable[[Sequence[str]], Sequence[Any]] | None:
    """Return what each rank of other processes receives, perhaps as a function of their workers' addresses.

    None means that all ranks receive the same edges.
    """
    if isinstance(edges, MemoryTable):
        return in_parts(edges, num_ranks)
    if isinstance(edges, PartitionTable):
        return edges.in_parts
    return None


def received(part: PartTable | tuple[PartitionTable, list[Any]]) -> EdgeTable:
    """Return the table of a part, in which values have taken the place of futures."""
    if isinstance(part, PartTable):
        return part
    table, values = part
    return dataclasses.replace(table, partitions=dict(zip(table.partitions, values, strict=True)))


def in_parts(table: MemoryTable, num_ranks: int) -> list[PartTable]:
    """Divide edges in memory into one part per rank."""
    host = CpuBackend(threads=1)
    facts = (table.name, table.directed, table.has_weights, table.num_vertices, table.labels, table.base)
    return [
        PartTable(
            *facts,
            table.num_pieces,
            table.max_edges,
            {k: _sendable(table.piece(k, host)) for k in range(rank, table.num_pieces, num_ranks)},
        )
        for rank in range(num_ranks)
    ]


def _sendable(piece: EdgePiece) -> EdgePiece:
    """Return a piece with arrays that have no bytes of other pieces, and ids of four bytes where they fit."""
    return dataclasses.replace(
        piece,
        sources=_narrow(piece.sources),
        targets=_narrow(piece.targets),
        weights=None if piece.weights is None else np.ascontiguousarray(piece.weights),
        vertices=None if piece.vertices is None else _narrow(piece.vertices),
    )


def _narrow(ids: np.ndarray | Strings) -> np.ndarray | Strings:
    if isinstance(ids, Strings):
        return ids.compact()
    if ids.dtype.itemsize == 8 and len(ids) and ids.min() >= 0 and ids.max() < none_of(SMALL_VERTEX):
        return ids.astype(SMALL_VERTEX)
    return np.ascontiguousarray(ids)


def _nbytes(piece: EdgePiece) -> int:
    columns = (piece.sources, piece.targets, piece.weights, piece.vertices)
    arrays = [part for ids in columns for part in ((ids.offsets, ids.data) if isinstance(ids, Strings) else (ids,))]
    return sum(array.nbytes for array in arrays if array is not None)
