"""RMAT graphs of Graph500: skewed degrees, small diameter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.generate.base import (
    DEFAULT_MAX_WEIGHT,
    Output,
    check_integer,
    check_num_edges,
    check_weighted,
    name_of,
    weight_dtype,
)
from mgraph.generate.rmat_kernels import rmat_edges
from mgraph.partition import chunk_range


@dataclass(frozen=True)
class Rmat:
    """An undirected graph of 2^scale vertices and edge_factor * 2^scale edges (a .57, b = c .19, d .05).

    Parameters
    ----------
    scale
        Logarithm of the number of vertices, 0..62.
    edge_factor
        Edges for each vertex, self-loops and parallel edges included.
    seed
        Seed of the random numbers.
    weights, max_weight
        "int" (1..max_weight), the same values as "float32" or "float64", "graph500" (float32 in [0, 1)), or None.
    scramble
        Permute the labels by a bijection, as Graph500 requires.
    """

    scale: int
    edge_factor: int = 16
    seed: int = 1
    weights: str | None = "int"
    scramble: bool = True
    max_weight: int = DEFAULT_MAX_WEIGHT

    directed = False

    def __post_init__(self) -> None:
        check_integer("scale", self.scale, 0, 62)
        check_integer("edge_factor", self.edge_factor, 0, 1 << 31)
        check_weighted(self)
        check_num_edges(self.num_input_edges)

    @property
    def name(self) -> str:
        return name_of(self, f"rmat{self.scale}", ef=(self.edge_factor, 16))

    @property
    def num_vertices(self) -> int:
        return 1 << self.scale

    @property
    def num_input_edges(self) -> int:
        return self.edge_factor << self.scale

    @property
    def weight_dtype(self) -> np.dtype | None:
        return weight_dtype(self)

    def expected_connected(self) -> int:
        """Return the expected number of vertices with edges.

        It is a sum over the set bits of a label before scrambling, which determine the vertex's probability.
        """
        ends = 2 * self.num_input_edges
        zeros = 0.76
        ones = 0.24
        return round(
            sum(
                math.comb(self.scale, k) * -math.expm1(-ends * zeros ** (self.scale - k) * ones**k)
                for k in range(self.scale + 1)
            )
        )

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        output = Output(self, backend, hi - lo)
        return output.fill(rmat_edges, lo, hi, lo, self.scale, self.seed, int(self.scramble), output.max_weight).chunk()
