"""Divide edges in a client's memory into one part per rank, so that each rank receives only its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.edges import EdgeChunk
from mgraph.io.arrays import ArrayEdges, CsrEdges


@dataclass(frozen=True, eq=False)
class PartEdges:
    """The edges of the chunks k with k mod num_ranks == rank: exactly those that this rank reads."""

    edges: ArrayEdges
    rank: int
    num_ranks: int
    num_input_edges: int

    @property
    def num_vertices(self) -> int:
        return self.edges.num_vertices

    @property
    def directed(self) -> bool:
        return self.edges.directed

    @property
    def name(self) -> str:
        return self.edges.name

    @property
    def weight_dtype(self) -> np.dtype | None:
        return self.edges.weight_dtype

    def __sizeof__(self) -> int:
        # Dask's estimate of the size, which by default does not count the arrays.
        arrays = self.edges.sources, self.edges.targets, self.edges.weights
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays if array is not None)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        assert k % self.num_ranks == self.rank, "a rank has only its own part of the edges"
        # Chunk k is number k // num_ranks of the chunks of this rank.
        own_chunks = -(-(num_chunks - self.rank) // self.num_ranks)
        return self.edges.chunk(k // self.num_ranks, own_chunks, backend)


def in_parts(source: ArrayEdges | CsrEdges, num_ranks: int) -> list[PartEdges]:
    """Divide edges in memory into one part per rank."""
    parts = []
    host = CpuBackend(threads=1)
    for rank in range(num_ranks):
        chunk = source.chunk(rank, num_ranks, host)
        edges = ArrayEdges(
            chunk.sources, chunk.targets, chunk.weights, source.num_vertices, source.directed, source.name
        )
        parts.append(PartEdges(edges, rank, num_ranks, source.num_input_edges))
    return parts
