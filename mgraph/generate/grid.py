"""Road-like grids: large diameter, small degrees, a share of the edges removed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.errors import UsageError
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
from mgraph.generate.grid_kernels import grid_edges
from mgraph.partition import chunk_range
from mgraph.types import signed


@dataclass(frozen=True)
class Grid:
    """An undirected grid; vertex (x, y) is y * columns + x.

    Parameters
    ----------
    rows, columns
        Size of the grid.
    drop
        Share of the edges that are missing, 0 <= drop < 1.
    seed, weights, max_weight
        As for Rmat.
    """

    rows: int
    columns: int
    drop: float = 0.10
    seed: int = 1
    weights: str | None = "int"
    max_weight: int = DEFAULT_MAX_WEIGHT

    directed = False
    has_hubs = False
    num_input_edges = None  # missing edges are drawn at random: counted only by generating them

    def __post_init__(self) -> None:
        check_integer("rows", self.rows, 0, MAX_EDGES)
        check_integer("columns", self.columns, 0, MAX_EDGES)
        check_real("drop", self.drop, 0, 1)
        if self.drop == 1:
            raise UsageError("drop 1 would leave no edge: give a share below 1")
        check_weighted(self)
        check_num_edges(2 * self.num_vertices)

    @property
    def name(self) -> str:
        if self.rows == self.columns:
            thousands, rest = divmod(self.rows, 1024)
            stem = f"grid{thousands}k" if thousands and not rest else f"grid{self.rows}"
        else:
            stem = f"grid{self.rows}x{self.columns}"
        return name_of(self, stem, drop=(self.drop, 0.10))

    @property
    def num_vertices(self) -> int:
        return self.rows * self.columns

    @property
    def weight_dtype(self) -> np.dtype | None:
        return weight_dtype(self)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(2 * self.num_vertices, k, num_chunks)
        output = Output(self, backend, hi - lo)
        threshold = signed(int(self.drop * 2.0**64))
        return output.fill(
            grid_edges, lo, hi, lo, self.rows, self.columns, self.seed, threshold, output.max_weight, output.none
        ).present()
