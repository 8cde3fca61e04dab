"""Input edges: tables as readers give them, and sources of checked edges from which shards are built.

A generator is an EdgeSource. A reader of the user's data is an EdgeTable: `mgraph/ingest/read.py` reads every piece of
it once, on one rank, maps labels to ids, and keeps the result as an EdgeSource.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from mgraph.errors import InputError
from mgraph.types import Array

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from mgraph.backends.base import Backend
    from mgraph.labels.strings import Strings


@dataclass(frozen=True)
class EdgeChunk:
    """Input edges in user ids, as generators and readers yield them.

    `sources` and `targets` are `vertex_dtype(num_vertices)`; `weights` is None for an unweighted graph.
    Self-loops and parallel edges are included: the build drops and counts them.
    """

    sources: Array
    targets: Array
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.sources)


class EdgeSizes(Protocol):
    """The facts of input edges from which a graph is planned.

    A source may know more: by `expected_connected()`, how many vertices have edges; by `has_hubs`, which is False then,
    that no vertex has many times as many edges as others.
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


class EdgeSource(EdgeSizes, Protocol):
    """A generator or a reader of a graph's edges: frozen and picklable.

    An undirected edge is given once or in both directions. Weights are None, or of a dtype in WEIGHT_DTYPES.
    """

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        """Return part k of num_chunks.

        All parts together are the same edges for every num_chunks.
        """


# How ids are read. "auto" maps strings, and integers if any is negative or the largest is more than twice the number of
# distinct ids; "string" reads ids of a text as strings, True maps all labels, False refuses those that are not 0..n-1.
Labels = Literal["auto", "string", True, False]


@dataclass(frozen=True)
class EdgePiece:
    """The edges of one piece of a table as the input has them: ids are neither checked nor mapped.

    Attributes
    ----------
    sources, targets
        Integers of any dtype, in host memory or on the backend, or `Strings`; both ends alike.
    weights
        Of a dtype in WEIGHT_DTYPES, finite; None if the table has none.
    where
        Names edge i of the piece in an error, such as `edges.csv:17` or `edges.parquet: row 17`.
    vertices
        Labels of vertices that may have no edge.
    doubt
        The error to raise if no piece of the table has weights of floats, as for an integer beyond 64 bits.
    """

    sources: Array | Strings
    targets: Array | Strings
    weights: Array | None
    where: Callable[[int], str]
    vertices: Array | Strings | None = None
    doubt: InputError | None = None

    def __len__(self) -> int:
        return len(self.sources)


class EdgeTable(Protocol):
    """A reader of the user's edges: frozen, picklable, and checked as far as that needs no pass over the data.

    An undirected edge is given once or in both directions. If the input declares the number of edges, the table has it
    as `declared_edges`; another number is refused. A table that may have strings as ids says by `is_text` whether it
    has, and one of data in memory by `may_be_empty` that no edges, and no vertices, are a graph: a file is refused.
    """

    @property
    def name(self) -> str:
        """The graph's name in results, such as the stem of a file."""

    @property
    def directed(self) -> bool:
        """Whether (u, v) and (v, u) are two arcs."""

    @property
    def has_weights(self) -> bool:
        """Whether every piece has weights."""

    @property
    def num_vertices(self) -> int | None:
        """The number of vertices if the input or the user declares it: then ids are 0..n-1."""

    @property
    def labels(self) -> Labels:
        """How ids are read."""

    @property
    def base(self) -> int:
        """The id of the first vertex in the input, which becomes 0."""

    @property
    def num_pieces(self) -> int:
        """The number of pieces; any rank can read any of them."""

    @property
    def max_edges(self) -> int:
        """An upper bound or an estimate of the number of edges, for the memory plan."""

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Read piece k; called once in a build, by one rank, perhaps from several of its threads at a time."""

    def release(self) -> None:
        """Free temporary copies of the input."""


def is_table(edges: EdgeSizes | EdgeTable) -> TypeIs[EdgeTable]:
    """Return whether input edges are a table."""
    return hasattr(edges, "num_pieces")


def are_strings(edges: EdgeSizes | EdgeTable) -> bool:
    """Return whether ids are known to be strings, before any piece is read."""
    return bool(getattr(edges, "is_text", False))


def has_weights(edges: EdgeSizes | EdgeTable) -> bool:
    """Return whether input edges have weights."""
    return edges.has_weights if is_table(edges) else edges.weight_dtype is not None
