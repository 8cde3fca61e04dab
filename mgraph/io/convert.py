"""Make a table to write from a table of edges that was read: pieces go from the reader to the writer.

No graph is built: self-loops and parallel edges stay, and so do ids, which are not mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, EdgeTable
from mgraph.errors import InputError
from mgraph.formatting import counted
from mgraph.io.ahead import mapped_ahead
from mgraph.io.checks import check_not_empty, mixed_kinds
from mgraph.io.output_tables import Batch, ColumnType, EdgeFacts, Table
from mgraph.labels.strings import Strings
from mgraph.types import LARGE_VERTEX, SMALL_VERTEX, none_of


@dataclass(frozen=True)
class _Piece:
    """A piece in host memory, ids less the base, and what a table says of all pieces."""

    columns: Batch
    num_vertices_apart: int  # vertices that may have no edge
    low: int
    high: int
    doubt: InputError | None

    @property
    def is_text(self) -> bool:
        return isinstance(self.columns["source"], Strings)

    def __len__(self) -> int:
        return len(self.columns["source"])


@dataclass(frozen=True)
class Survey:
    """What is known after reading all pieces once."""

    columns: dict[str, ColumnType]
    num_edges: int
    highest: int | None  # None if ids are strings
    num_vertices_apart: int


def table_of_pieces(edges: EdgeTable, backend: Backend, *, in_one_pass: bool) -> tuple[Table, Survey | None]:
    """Return the edges of a table as a table to write.

    Text is written `in_one_pass`; other formats need the types of all columns before the first row, so that every piece
    is read twice, once for the survey.
    """
    facts = EdgeFacts(edges.num_vertices, edges.directed)
    survey = None
    if in_one_pass:
        kinds: dict[str, ColumnType] = {
            name: None if isinstance(values, Strings) else values.dtype
            for name, values in _read(edges, backend, 0).columns.items()
        }
    else:
        survey = _survey(edges, backend)
        kinds = survey.columns
        facts = EdgeFacts(edges.num_vertices, edges.directed, survey.highest)

    def batches(names: Sequence[str]) -> Iterator[Batch]:
        count = apart = 0
        floats = False
        doubt = None
        for piece in _pieces(edges, backend):
            _refuse_mixed(edges, piece.is_text, kinds["source"] is None, len(piece))
            count += len(piece)
            apart += piece.num_vertices_apart
            doubt = doubt or piece.doubt
            floats = floats or _is_float(piece)
            if len(piece) and survey is not None:
                yield {name: _cast(piece.columns[name], kinds[name]) for name in names}
            elif len(piece):
                yield {name: piece.columns[name] for name in names}
        _check_end(edges, count, apart, None if floats else doubt)

    return Table(kinds, None if survey is None else survey.num_edges, batches, facts), survey


def _pieces(edges: EdgeTable, backend: Backend) -> Iterator[_Piece]:
    yield from mapped_ahead(partial(_read, edges, backend), range(edges.num_pieces), per_thread=1)


def _read(edges: EdgeTable, backend: Backend, k: int) -> _Piece:
    piece = edges.piece(k, backend)
    columns: Batch = {"source": _ids(edges, backend, piece, 0), "target": _ids(edges, backend, piece, 1)}
    if piece.weights is not None:
        columns["weight"] = backend.to_host(piece.weights)
    bounds = [0, -1]
    if len(piece) and not isinstance(columns["source"], Strings):
        ends = [columns["source"], columns["target"]]
        bounds = [min(int(ids.min()) for ids in ends), max(int(ids.max()) for ids in ends)]
    if edges.num_vertices is not None and bounds[1] >= edges.num_vertices:
        i = next(int(np.argmax(ids)) for ids in ends if int(ids.max()) == bounds[1])
        raise InputError(f"{piece.where(i)}: id {bounds[1]} is not below the number of vertices, {edges.num_vertices}")
    apart = 0 if piece.vertices is None else len(piece.vertices)
    return _Piece(columns, apart, bounds[0], bounds[1], piece.doubt)


def _ids(edges: EdgeTable, backend: Backend, piece: EdgePiece, end: int) -> Any:
    ids = (piece.sources, piece.targets)[end]
    if isinstance(ids, Strings):
        return ids
    ids = backend.to_host(ids)
    if not edges.base or len(ids) == 0:
        return ids
    if int(ids.min()) < edges.base:
        raise InputError(f"{piece.where(int(np.argmin(ids)))}: id {ids.min()} is below {edges.base}, the first vertex")
    return ids.astype(np.int64) - edges.base


def _is_float(piece: _Piece) -> bool:
    return "weight" in piece.columns and piece.columns["weight"].dtype.kind == "f"


def _survey(edges: EdgeTable, backend: Backend) -> Survey:
    """Read all pieces once: count their edges, and find types that hold all of them."""
    num_edges = apart = 0
    low = 0
    high = -1
    weights: list[np.dtype] = []
    doubt = None
    is_text = None
    for piece in _pieces(edges, backend):
        num_edges += len(piece)
        apart += piece.num_vertices_apart
        doubt = doubt or piece.doubt
        if "weight" in piece.columns and piece.columns["weight"].dtype not in weights:
            weights.append(piece.columns["weight"].dtype)
        if len(piece) or is_text is None:
            _refuse_mixed(edges, piece.is_text, bool(is_text), 0 if is_text is None else num_edges - len(piece))
            is_text = piece.is_text
        low = min(low, piece.low)
        high = max(high, piece.high)
    _check_end(edges, num_edges, apart, None if any(dtype.kind == "f" for dtype in weights) else doubt)
    ids = None if is_text else _ids_dtype(low, high)
    columns: dict[str, ColumnType] = {"source": ids, "target": ids}
    if edges.has_weights:
        columns["weight"] = np.result_type(*weights) if weights else np.dtype(np.int64)
    return Survey(columns, num_edges, None if is_text else high, apart)


def _ids_dtype(low: int, high: int) -> np.dtype:
    if low >= 0 and high < none_of(SMALL_VERTEX):
        return SMALL_VERTEX
    return LARGE_VERTEX if high <= np.iinfo(np.int64).max else np.dtype(np.uint64)


def _refuse_mixed(edges: EdgeTable, is_text: bool, others: bool, count: int) -> None:
    if count and is_text != others:
        raise mixed_kinds(edges.name)


def _check_end(edges: EdgeTable, num_edges: int, num_vertices: int, doubt: InputError | None) -> None:
    """Raise what only the whole input shows: an integer beyond 64 bits, a missing edge, or none."""
    if doubt is not None:
        raise doubt
    declared = getattr(edges, "declared_edges", None)
    if declared is not None and declared != num_edges:
        raise InputError(
            f"{edges.name} has {counted(num_edges, 'edge')} where its header says {declared:,}: truncated?"
        )
    check_not_empty(edges, num_edges, num_vertices)


def _cast(values: Any, kind: ColumnType) -> Any:
    return values if kind is None else values.astype(kind, copy=False)
