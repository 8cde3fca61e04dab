"""Input edges: one chunk of them, and the protocol of a source that yields chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mgraph.types import Array

if TYPE_CHECKING:
    from mgraph.backends.base import Backend


@dataclass(frozen=True)
class EdgeChunk:
    """Input edges in user ids, as generators and readers yield them.

    `sources` and `targets` are `vertex_dtype(num_vertices)`; `weights` is None for an unweighted graph.
    Loops and parallel edges are included: the build drops and counts them.
    """

    sources: Array
    targets: Array
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.sources)


class EdgeSource(Protocol):
    """A generator or a reader of a graph's edges: frozen and picklable.

    An undirected edge is given once or in both directions. Weights are None, or of a dtype in WEIGHT_DTYPES.
    """

    @property
    def name(self) -> str:
        """The graph's name in benchmarks and plots, such as rmat20 or the stem of a file."""

    @property
    def num_vertices(self) -> int:
        """The number of vertices, isolated ones included."""

    @property
    def directed(self) -> bool:
        """Whether (u, v) and (v, u) are two arcs."""

    @property
    def weight_dtype(self) -> np.dtype | None:
        """The dtype of the weights, None for an unweighted graph."""

    @property
    def num_input_edges(self) -> int | None:
        """The number of edges in all chunks, None if it is known only after reading them."""

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        """Return part k of num_chunks.

        All parts together are the same edges for every num_chunks.
        """
