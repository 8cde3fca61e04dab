"""Parquet files, read and written by pyarrow, which the extra `io` installs.

`mgraph.io.columns` finds the ends of the edges and the weight among the columns. A piece is a row group.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk, EdgePiece, EdgeSource, Labels
from mgraph.errors import InputError, UsageError
from mgraph.formatting import counted
from mgraph.io.checks import as_ids, as_weights, check_num_vertices, check_weights
from mgraph.io.columns import find_ends, find_weight
from mgraph.io.ranges import changed
from mgraph.types import vertex_dtype


@dataclass(frozen=True)
class ParquetTable:
    """A file as a table: the names of its columns, and a piece for each row group."""

    path: pathlib.Path
    columns: tuple[str, ...]  # the ends, and the weight if there is one
    num_vertices: int | None
    directed: bool
    max_edges: int
    num_pieces: int
    labels: Labels = "auto"
    base: int = 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def has_weights(self) -> bool:
        return len(self.columns) > 2

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Read row group k, or no rows of a file without groups."""
        file = _open(self.path)
        metadata = file.metadata
        if metadata.num_row_groups != (self.num_pieces if self.max_edges else metadata.num_row_groups):
            raise changed(self.path, f"it has {counted(metadata.num_row_groups, 'row group')}")
        first = sum(metadata.row_group(group).num_rows for group in range(k))
        sources, targets, *weights = (_values(self.path, file, k, name, first) for name in self.columns)
        for name, ids in zip(self.columns, (sources, targets), strict=False):
            as_ids(ids, f"{self.path}: {name}")
        checked = None
        if weights:
            name = self.columns[2]
            check_weights(weights[0], lambda i: f"{self.path}: {name} of row {first + i}")
            checked = as_weights(weights[0], len(sources), f"{self.path}: {name}")
        return EdgePiece(sources, targets, checked, lambda i: f"{self.path}: row {first + i}")

    def release(self) -> None:
        """Do nothing: there is no copy."""


def read_parquet(
    path: pathlib.Path,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> ParquetTable:
    """Look at the columns of a file and return it as a table.

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
    for name in columns[:2]:
        as_ids(_no_rows(schema, name), f"{path}: {name}")
    if weighted >= 0:
        as_weights(np.zeros(1, _no_rows(schema, columns[2]).dtype), 1, f"{path}: {columns[2]}")
    n = check_num_vertices(about.get("num_vertices") if num_vertices is None else num_vertices)
    metadata = file.metadata
    return ParquetTable(path, columns, n, directed, metadata.num_rows, max(metadata.num_row_groups, 1))


def _no_rows(schema: Any, name: str) -> np.ndarray:
    """Return a column without rows, of the dtype that it has with rows."""
    return schema.empty_table().column(name).to_numpy()


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


def _values(path: pathlib.Path, file: Any, group: int, name: str, begin: int) -> np.ndarray:
    """Return a column of a row group.

    `begin` is the number of its first row.
    """
    pyarrow, _ = _pyarrow()
    if group >= file.metadata.num_row_groups:
        return _no_rows(file.schema_arrow, name)
    try:
        column = file.read_row_group(group, columns=[name]).column(0)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: {name} cannot be read: {error}") from None
    if len(column) != (rows := file.metadata.row_group(group).num_rows):
        raise InputError(f"{path}: {name} has {len(column)} values in {rows} rows: truncated?")
    if column.null_count:
        missing = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(f"{path}: {name} of row {begin + missing} is missing")
    return column.to_numpy()


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
