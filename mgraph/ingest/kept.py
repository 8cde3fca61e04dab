"""The edges that a rank has read, kept for the passes of the build."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.partition import chunk_range
from mgraph.types import Array, vertex_dtype


@dataclass(frozen=True)
class KeptPiece:
    """The edges of one piece: ids less the base, in the narrowest of uint32 and int64 that holds them."""

    sources: Array
    targets: Array
    weights: Array | None

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True, eq=False)
class KeptEdges:
    """The pieces that this rank has read, as the edge source of its build.

    Of all chunks a rank has those k with k mod num_ranks == rank.
    """

    name: str
    directed: bool
    num_vertices: int
    weight_dtype: np.dtype | None
    num_input_edges: int  # of all ranks
    pieces: Sequence[KeptPiece]
    rank: int
    num_ranks: int

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        assert k % self.num_ranks == self.rank, "a rank has only the pieces that it has read"
        # Chunk k is number k // num_ranks of the chunks of this rank.
        own_chunks = -(-(num_chunks - self.rank) // self.num_ranks)
        ends = np.cumsum([0, *map(len, self.pieces)])
        lo, hi = chunk_range(int(ends[-1]), k // self.num_ranks, own_chunks)
        first = int(np.searchsorted(ends, lo, "right")) - 1
        last = int(np.searchsorted(ends, hi, "left"))
        parts = [
            (self.pieces[i], slice(max(lo - int(ends[i]), 0), min(hi - int(ends[i]), len(self.pieces[i]))))
            for i in range(first, last)
        ]

        def column(of: Callable[[KeptPiece], Array], dtype: np.dtype) -> Array:
            arrays = [backend.to_device(of(piece)[part]).astype(dtype, copy=False) for piece, part in parts]
            return arrays[0] if len(arrays) == 1 else backend.xp.concatenate([backend.xp.empty(0, dtype), *arrays])

        ids = vertex_dtype(self.num_vertices)
        weights = None if self.weight_dtype is None else column(lambda piece: piece.weights, self.weight_dtype)
        return EdgeChunk(column(lambda piece: piece.sources, ids), column(lambda piece: piece.targets, ids), weights)
