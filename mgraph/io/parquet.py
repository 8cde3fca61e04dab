"""Parquet files, read and written by pyarrow, which the extra `io` installs.

`mgraph.io.columns` finds the ends of the edges and the weight among the columns. Rows are read by whole row groups:
a chunk that needs a few rows of a large group reads all of it.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError, UsageError
from mgraph.io.arrays import on_backend
from mgraph.io.checks import as_ids, as_weights, check_ids, check_num_vertices, check_weights
from mgraph.io.columns import find_ends, find_weight
from mgraph.partition import chunk_range
from mgraph.types import vertex_dtype


@dataclass(frozen=True)
class ParquetEdges:
    """A file with checked columns."""

    path: pathlib.Path
    columns: tuple[str, ...]  # the ends, and the weight if there is one
    num_vertices: int
    directed: bool
    weight_dtype: np.dtype | None
    num_input_edges: int

    @property
    def name(self) -> str:
        return self.path.stem

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        groups = [arrays for _, arrays in _rows(self.path, self.columns, lo, hi)]
        nothing = [np.empty(0, np.int64)] * 2 + [np.empty(0, self.weight_dtype)]
        ends_and_weights = [np.concatenate(parts) for parts in zip(*groups, strict=True)] or nothing
        sources, targets = ends_and_weights[:2]
        weights = None if self.weight_dtype is None else ends_and_weights[2].astype(self.weight_dtype, copy=False)
        return on_backend(sources, targets, weights, self.num_vertices, backend)


def read_parquet(
    path: pathlib.Path,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> ParquetEdges:
    """Check the columns of a file once and return it as a source.

    `weight` is a column as in a text file.
    """
    file = _open(path)
    schema = file.schema_arrow
    about = _metadata(path, file)
    if directed is None:
        directed = bool(about.get("directed"))
    names = schema.names
    ends = find_ends(path, names, directed)
    weighted = find_weight(path, weight, len(names), names, ends)
    columns = tuple(names[k] for k in (*ends, weighted) if k >= 0)
    dtype = None
    if weighted >= 0:
        # The dtype without rows: the empty column of the schema has the same type as one with rows.
        kind = schema.empty_table().column(columns[2]).to_numpy().dtype
        dtype = as_weights(np.zeros(1, kind), 1, f"{path}: {columns[2]}").dtype
    n = check_num_vertices(about.get("num_vertices") if num_vertices is None else num_vertices)
    top = -1
    for first, arrays in _rows(path, columns, 0, file.metadata.num_rows):
        for name, ids in zip(columns[:2], arrays, strict=False):
            top = max(top, check_ids(as_ids(ids, f"{path}: {name}"), n, _place(path, name, first)))
        if weighted >= 0:
            check_weights(arrays[2], _place(path, columns[2], first))
    return ParquetEdges(path, columns, top + 1 if n is None else n, directed, dtype, file.metadata.num_rows)


def _open(path: pathlib.Path) -> Any:
    """Open the file with pyarrow."""
    pyarrow, parquet = _pyarrow()
    try:
        return parquet.ParquetFile(path, memory_map=False)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is no Parquet file, or truncated: {error}") from None


def _metadata(path: pathlib.Path, file: Any) -> dict[str, Any]:
    """Return the metadata `mgraph` of the file, {} if it has none."""
    text = (file.schema_arrow.metadata or {}).get(b"mgraph", b"{}")
    try:
        about = json.loads(text)
        number = about.get("num_vertices", 0)
        if type(number) is int and 0 <= number <= np.iinfo(np.int64).max:
            return about
    except (ValueError, AttributeError):
        pass
    raise InputError(f"{path}: its metadata {text[:80]!r} have no valid number of vertices")


def _rows(path: pathlib.Path, columns: tuple[str, ...], lo: int, hi: int) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (number of the first row, columns) for the rows lo..hi, one row group at a time."""
    file = _open(path)
    begin = 0
    for group in range(file.metadata.num_row_groups):
        end = begin + file.metadata.row_group(group).num_rows
        if begin < hi and lo < end:
            first = max(lo, begin)
            last = min(hi, end)
            yield first, [_values(path, file, group, name, begin)[first - begin : last - begin] for name in columns]
        begin = end


def _values(path: pathlib.Path, file: Any, group: int, name: str, begin: int) -> np.ndarray:
    """Return a column of a row group.

    `begin` is the number of its first row.
    """
    pyarrow, _ = _pyarrow()
    try:
        column = file.read_row_group(group, columns=[name]).column(0)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: {name} cannot be read: {error}") from None
    if len(column) != (rows := file.metadata.row_group(group).num_rows):
        raise InputError(f"{path}: {name} has {len(column)} values in {rows} rows: truncated?")
    if column.null_count:
        missing = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(f"{_place(path, name, begin)(missing)} is missing")
    return column.to_numpy()


def _place(path: pathlib.Path, name: str, first: int) -> Callable[[int], str]:
    return lambda i: f"{path}: {name} of row {first + i}"


def write_parquet_edges(path: pathlib.Path, source: EdgeSource, chunks: Callable[[], Iterator[EdgeChunk]]) -> None:
    """Write the columns source, target and weight, one row group per chunk, and the metadata `mgraph`."""
    pyarrow, parquet = _pyarrow()
    ids = pyarrow.from_numpy_dtype(vertex_dtype(source.num_vertices))
    fields = [("source", ids), ("target", ids)]
    if source.weight_dtype is not None:
        fields.append(("weight", pyarrow.from_numpy_dtype(source.weight_dtype)))
    about = json.dumps({"num_vertices": source.num_vertices, "directed": source.directed})
    schema = pyarrow.schema(fields, metadata={"mgraph": about})
    with parquet.ParquetWriter(path, schema) as writer:
        for chunk in chunks():
            columns = [chunk.sources, chunk.targets] + ([] if chunk.weights is None else [chunk.weights])
            writer.write_table(pyarrow.table(columns, schema=schema))


def write_parquet_columns(path: pathlib.Path, columns: dict[str, np.ndarray]) -> None:
    """Write the columns as one table."""
    pyarrow, parquet = _pyarrow()
    parquet.write_table(pyarrow.table(columns), path)


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its parquet module, or refuse with how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install pyarrow") from None
    return pyarrow, pyarrow.parquet
