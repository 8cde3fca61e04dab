"""SSCA#2 graphs: cliques of random size, joined by edges that become rarer with distance."""

from __future__ import annotations

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
from mgraph.generate.ssca2_kernels import ssca2_edges
from mgraph.partition import chunk_range

# The sequence of cliques restarts in each window, of this many times the largest clique; the last clique of a window is
# cut at its end.
CLIQUES_PER_WINDOW = 8


@dataclass(frozen=True)
class Ssca2:
    """An undirected graph of 2^scale vertices, after the specification of SSCA#2.

    Clique sizes are drawn from 1..max_clique. Each vertex has at most one edge out of its clique, to a
    distance of 2^l .. 2^(l+1) with probability 2^-(l+1); it has none if that target is within the clique.
    The mean degree is near 2/3 of max_clique.

    Parameters
    ----------
    scale
        Logarithm of the number of vertices, 0..62.
    max_clique
        Size of the largest clique; None means the specification's 2^(scale / 3), rounded down.
    seed, weights, max_weight, scramble
        As for Rmat.
    """

    scale: int
    max_clique: int | None = None
    seed: int = 1
    weights: str | None = "int"
    scramble: bool = True
    max_weight: int = DEFAULT_MAX_WEIGHT

    directed = False
    has_hubs = False
    num_input_edges = None  # drawn at random: counted only by generating them

    def __post_init__(self) -> None:
        check_integer("scale", self.scale, 0, 62)
        if self.max_clique is not None:
            check_integer("max_clique", self.max_clique, 1, 1 << 24)
        check_weighted(self)
        check_num_edges(self.num_vertices * self._slots)

    @property
    def name(self) -> str:
        return name_of(self, f"ssca2-{self.scale}", clique=(self.max_clique, None))

    @property
    def num_vertices(self) -> int:
        return 1 << self.scale

    @property
    def largest_clique(self) -> int:
        """The upper bound of the clique sizes."""
        return cube_root(self.num_vertices) if self.max_clique is None else self.max_clique

    @property
    def weight_dtype(self) -> np.dtype | None:
        return weight_dtype(self)

    @property
    def _slots(self) -> int:
        """Slots for edges of each vertex (see the kernel)."""
        return self.largest_clique // 2 + 1

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_vertices, k, num_chunks)
        output = Output(self, backend, (hi - lo) * self._slots)
        clique = self.largest_clique
        scramble = int(self.scramble)
        window = CLIQUES_PER_WINDOW * clique
        return output.fill(
            ssca2_edges, lo, hi, lo, self.scale, self.seed, clique, window, scramble, output.max_weight, output.none
        ).present()


def cube_root(n: int) -> int:
    """Return the integer part of the cube root of n."""
    root = round(n ** (1 / 3))
    while root**3 > n:
        root -= 1
    while (root + 1) ** 3 <= n:
        root += 1
    return root
