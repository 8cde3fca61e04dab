"""Uniform random graphs: undirected with a mean degree, or directed with a fixed out-degree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.generate.base import (
    DEFAULT_MAX_WEIGHT,
    MAX_EDGES,
    Output,
    check_integer,
    check_num_edges,
    check_real,
    check_weighted,
    name_of,
    weight_dtype,
)
from mgraph.generate.uniform_kernels import fixed_out_degree_arcs, uniform_edges
from mgraph.partition import chunk_range


@dataclass(frozen=True)
class Uniform:
    """An undirected graph of num_vertices * degree / 2 edges, both ends of each drawn uniformly.

    Parameters
    ----------
    num_vertices
        Number of vertices, 0..2^62.
    degree
        Mean degree, self-loops and parallel edges included; need not be an integer.
    seed, weights, max_weight
        As for Rmat.
    """

    num_vertices: int
    degree: float
    seed: int = 1
    weights: str | None = "int"
    max_weight: int = DEFAULT_MAX_WEIGHT

    directed = False
    has_hubs = False

    def __post_init__(self) -> None:
        check_integer("num_vertices", self.num_vertices, 0, MAX_EDGES)
        check_real("degree", self.degree, 0, MAX_EDGES)
        check_weighted(self)
        check_num_edges(self.num_input_edges)

    @property
    def name(self) -> str:
        n = self.num_vertices
        stem = f"uni{n.bit_length() - 1}" if n > 0 and n & (n - 1) == 0 else f"uni{n}v"
        return name_of(self, stem, d=(f"{self.degree:g}", "16"))

    @property
    def num_input_edges(self) -> int:
        # Rounded as C's llround does: half away from zero.
        half = float(self.num_vertices) * self.degree / 2
        return math.floor(half) + (half - math.floor(half) >= 0.5)

    @property
    def weight_dtype(self) -> np.dtype | None:
        return weight_dtype(self)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        output = Output(self, backend, hi - lo)
        return output.fill(uniform_edges, lo, hi, lo, self.num_vertices, self.seed, output.max_weight).chunk()


@dataclass(frozen=True)
class FixedOutDegree:
    """A directed graph where every vertex has out_degree arcs to targets drawn uniformly.

    Parameters
    ----------
    num_vertices
        Number of vertices, 0..2^62.
    out_degree
        Arcs of each vertex, self-loops and parallel arcs included.
    seed, weights, max_weight
        As for Rmat.
    """

    num_vertices: int
    out_degree: int
    seed: int = 1
    weights: str | None = "int"
    max_weight: int = DEFAULT_MAX_WEIGHT

    directed = True
    has_hubs = False

    def __post_init__(self) -> None:
        check_integer("num_vertices", self.num_vertices, 0, MAX_EDGES)
        check_integer("out_degree", self.out_degree, 0, 1 << 31)
        check_weighted(self)
        check_num_edges(self.num_input_edges)

    @property
    def name(self) -> str:
        return name_of(self, f"out{self.num_vertices}x{self.out_degree}")

    @property
    def num_input_edges(self) -> int:
        return self.num_vertices * self.out_degree

    @property
    def weight_dtype(self) -> np.dtype | None:
        return weight_dtype(self)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        output = Output(self, backend, hi - lo)
        return output.fill(
            fixed_out_degree_arcs, lo, hi, lo, self.num_vertices, self.out_degree, self.seed, output.max_weight
        ).chunk()
