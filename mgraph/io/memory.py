"""Edges in memory as a table: columns of sources, targets and weights, divided into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.checks import as_flag, as_ids, check_base, check_labels, check_num_vertices, refuse_lazy
from mgraph.io.device import DeviceColumn, on_host
from mgraph.io.indptr import check_indptr
from mgraph.io.memory_columns import MemoryColumn, RowColumn, ids_column, sample_columns, weights_column, weights_of
from mgraph.io.samples import LABEL_PLACES, LabelSample
from mgraph.partition import chunk_range

# Edges in a piece: 16 to 24 MiB. Few edges have many pieces too, so that ranks and threads share them.
PIECE_EDGES = 1 << 20
PIECES = 64
MIN_PIECE_EDGES = 1 << 12
# On a GPU a piece takes some launches, and threads of the host share nothing but these.
DEVICE_PIECE_EDGES = 1 << 24
DEVICE_PIECES = 16


@dataclass(frozen=True)
class IdOptions:
    """How the ids of edges in memory are read; made by `id_options`, which checks it."""

    num_vertices: int | None = None
    directed: bool = False
    labels: Labels = "auto"
    base: int = 0


def id_options(num_vertices: Any = None, directed: Any = False, labels: Any = "auto", base: Any = 0) -> IdOptions:
    """Check the options of reading ids."""
    return IdOptions(
        check_num_vertices(num_vertices), as_flag(directed, "directed"), check_labels(labels), check_base(base)
    )


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Edges in this process, as columns of equal length.

    Attributes
    ----------
    row
        What an error calls an edge, such as `edge` in `edge 17`.
    vertices
        Vertices that may have no edge.
    """

    sources: MemoryColumn
    targets: MemoryColumn
    weights: MemoryColumn | None
    name: str = "edges"
    row: str = "edge"
    vertices: MemoryColumn | None = None
    num_vertices: int | None = None
    directed: bool = False
    labels: Labels = "auto"
    base: int = 0
    may_be_empty: ClassVar[bool] = True

    @property
    def has_weights(self) -> bool:
        return self.weights is not None

    @property
    def max_edges(self) -> int:
        return len(self.sources)

    @property
    def text_bytes(self) -> int | None:
        """The bytes of all ids of both ends, estimated from some of them; None if these are numbers."""
        sample = self.label_sample()
        return None if sample is None else sample.text_bytes(self.max_edges)

    def label_sample(self, most: int = LABEL_PLACES) -> LabelSample | None:
        """Return the ids in at most `most` places; None if these are numbers."""
        return sample_columns([self.sources, self.targets], most)

    @property
    def num_pieces(self) -> int:
        num_edges = len(self.sources)
        on_device = isinstance(self.sources, DeviceColumn)
        few, largest = (DEVICE_PIECES, DEVICE_PIECE_EDGES) if on_device else (PIECES, PIECE_EDGES)
        return max(min(few, num_edges // MIN_PIECE_EDGES), -(-num_edges // largest), 1)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        lo, hi = chunk_range(len(self.sources), k, self.num_pieces)
        return EdgePiece(
            self.sources.part(lo, hi, backend),
            self.targets.part(lo, hi, backend),
            None if self.weights is None else weights_of(self.weights, lo, hi, backend),
            partial(_row, self.row, lo),
            self._vertices(k, backend),
        )

    def _vertices(self, k: int, backend: Backend) -> Any:
        if self.vertices is None:
            return None
        return self.vertices.part(*chunk_range(len(self.vertices), k, self.num_pieces), backend)

    def release(self) -> None:
        """Do nothing: the columns are the user's."""


def _row(row: str, first: int, i: int) -> str:
    return f"{row} {first + i}"


def edges_table(
    sources: Any, targets: Any = None, weights: Any = None, *, name: str = "edges", how: IdOptions | None = None
) -> MemoryTable:
    """Return the edges (sources[i], targets[i]) as a table; without targets, `sources` has pairs of ends."""
    refuse_other_kinds(sources)
    if targets is None:
        sources, targets = ends_of_pairs(sources)
    return columns_table(sources, targets, weights, name=name, how=how)


def columns_table(
    sources: Any,
    targets: Any,
    weights: Any,
    *,
    names: tuple[str, str, str] = ("sources", "targets", "weights"),
    name: str = "edges",
    row: str = "edge",
    how: IdOptions | None = None,
) -> MemoryTable:
    """Return columns of any kind as a table; `names` are theirs in errors."""
    how = how or IdOptions()
    ends = ids_column(sources, names[0]), ids_column(targets, names[1])
    if len(ends[0]) != len(ends[1]):
        raise InputError(
            f"there are {len(ends[0])} {names[0]} and {len(ends[1])} {names[1]}: give one of each for an edge"
        )
    if len(ends[0]) and ends[0].is_text != ends[1].is_text:
        text, number = (names[0], names[1]) if ends[0].is_text else (names[1], names[0])
        raise InputError(f"{text} are strings, and {number} integers: give both as one kind")
    if how.labels == "string" and not ends[0].is_text:
        raise UsageError(f"labels='string' is for ids of a text, and {names[0]} are integers: labels=True maps them")
    column = None if weights is None else weights_column(weights, len(ends[0]), names[2])
    return MemoryTable(
        *ends,
        column,
        name,
        row,
        num_vertices=how.num_vertices,
        directed=how.directed,
        labels=how.labels,
        base=how.base,
    )


def csr_table(
    indptr: Any,
    indices: Any,
    weights: Any = None,
    *,
    directed: bool = False,
    by_target: bool = False,
    name: str = "csr",
) -> MemoryTable:
    """Return a CSR as a table: vertex u has arcs to indices[indptr[u] : indptr[u + 1]].

    With `by_target` these are the vertices from which arcs lead to u, as in a CSC.
    """
    for values, what in ((indptr, "indptr"), (indices, "indices"), (weights, "weights")):
        refuse_lazy(values, what)
    offsets = as_ids(on_host(indptr, "indptr"), "indptr")
    others = ids_column(indices, "indices")
    if others.is_text:
        raise InputError("indices are strings, not integers: vertices are numbered 0..n-1")
    check_indptr(offsets, len(others), "indptr")
    rows = RowColumn(offsets.astype(np.int64, copy=False))
    column = None if weights is None else weights_column(weights, len(others))
    ends = (others, rows) if by_target else (rows, others)
    n = len(offsets) - 1
    given = id_options(n, directed, labels=False)
    return MemoryTable(ends[0], ends[1], column, name, "arc", None, given.num_vertices, given.directed, given.labels)


def ends_of_pairs(pairs: Any) -> tuple[Any, Any]:
    """Return the columns of an (m, 2) array, or of a list of pairs."""
    if isinstance(pairs, (list, tuple)):
        return _ends_of_list(pairs)
    if not hasattr(pairs, "shape"):
        raise InputError(
            f"{type(pairs).__name__} has no pairs of ends: give a list of pairs or an array of shape (m, 2)"
        )
    if len(pairs.shape) != 2 or pairs.shape[1] != 2:
        raise InputError(
            f"edges of shape {tuple(pairs.shape)} are no pairs of ends: give targets, or an array of shape (m, 2), "
            "with the weights apart"
        )
    return pairs[:, 0], pairs[:, 1]


def _ends_of_list(pairs: Any) -> tuple[Any, Any]:
    if not pairs:
        return [], []
    try:
        columns = list(zip(*pairs, strict=True))
    except (TypeError, ValueError):
        columns = []
    if len(columns) != 2 or isinstance(pairs[0], str):
        raise InputError("edges without targets must be pairs of ends, as [(0, 1), (1, 2)], with the weights apart")
    return columns[0], columns[1]


def refuse_other_kinds(values: Any) -> None:
    """Refuse what another function reads, with its name."""
    refuse_lazy(values, "edges" if hasattr(values, "columns") else "sources")
    if isinstance(values, str) or hasattr(values, "__fspath__"):
        raise UsageError(f"{str(values)!r:.80} is not an array: mg.read reads files")
    kinds = (
        (hasattr(values, "tocoo"), "a sparse array", "mg.from_scipy"),
        (hasattr(values, "nodes") and hasattr(values, "edges"), "a graph", "mg.from_networkx"),
        (hasattr(values, "columns") or isinstance(values, dict), "a table", "mg.from_table"),
    )
    for found, kind, reader in kinds:
        if found:
            raise UsageError(f"{type(values).__name__} is {kind}, not an array of sources: {reader} reads it")
