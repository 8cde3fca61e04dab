"""Parquet files, read and written by pyarrow, which the extra `io` installs.

`mgraph.io.columns` finds the ends of the edges and the weight among the columns. A piece is a row group.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UsageError
from mgraph.formatting import counted
from mgraph.io.arrow_columns import (
    check_id_type,
    check_weight_type,
    chunked,
    decoded,
    is_text,
    strings_of,
    type_of_values,
)
from mgraph.io.checks import as_weights, check_num_vertices, check_weights
from mgraph.io.columns import NO_COLUMNS, Columns, find_columns
from mgraph.io.input_file import Identity, InputFile, identity, release
from mgraph.io.pyarrow_module import require_pyarrow
from mgraph.io.ranges import changed
from mgraph.io.samples import LABEL_PLACES, ROWS, LabelSample, kept_with_table, places
from mgraph.labels.strings import Strings

# Some rows of a column are read in parts of this size.
SAMPLE_BYTES = 1 << 16


@dataclass(frozen=True)
class ParquetTable:
    """A file as a table: the names of its columns, and a piece for each row group."""

    path: InputFile
    columns: tuple[str, ...]  # the ends, and the weight if there is one
    num_vertices: int | None
    directed: bool
    max_edges: int
    num_pieces: int
    is_text: bool
    labels: Labels = "auto"
    base: int = 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def has_weights(self) -> bool:
        return len(self.columns) > 2

    @property
    def text_bytes(self) -> int | None:
        """The bytes of the columns of both ends, as some rows suggest it, or as stored; None if these are numbers."""
        if not self.is_text:
            return None
        sample = self.label_sample()
        # Stored are at least the strings of a dictionary, each once.
        stored = sum(chunk.total_uncompressed_size for chunk in _end_chunks(self))
        return stored if sample is None else sample.text_bytes(self.max_edges)

    def label_sample(self, most: int = LABEL_PLACES) -> LabelSample | None:
        """Return the ids in at most `most` row groups; None if these are numbers, or cannot be read."""
        return _label_sample(self, most, identity(self.path.stat())) if self.is_text else None

    @property
    def expected_vertices(self) -> int | None:
        """The number of vertices as the statistics of the columns of both ends say it; None if these are strings."""
        if self.is_text:
            return None
        found = [column.statistics for column in _end_chunks(self)]
        known = [one.max for one in found if one is not None and one.has_min_max]
        return max(known) + 1 - self.base if known and len(known) == len(found) else None

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Read row group k, or no rows of a file without groups."""
        metadata = _metadata(self.path)
        if metadata.num_row_groups and metadata.num_row_groups != self.num_pieces:
            raise changed(self.path, f"it has {counted(metadata.num_row_groups, 'row group')}")
        first = sum(metadata.row_group(group).num_rows for group in range(k))
        columns = _columns(self.path, metadata, k, self.columns, first)
        ends = [as_end(column) for column in columns[:2]]
        weights = None
        if self.has_weights:
            name = self.columns[2]
            weights = columns[2].to_numpy()
            check_weights(weights, lambda i: f"{self.path}: {name} of row {first + i}")
            weights = as_weights(weights, len(weights), f"{self.path}: {name}")
        return EdgePiece(ends[0], ends[1], weights, lambda i: f"{self.path}: row {first + i}")

    def release(self) -> None:
        release(self.path)


def read_parquet(
    path: InputFile,
    *,
    columns: Columns = NO_COLUMNS,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
    base: int = 0,
) -> ParquetTable:
    """Look at the columns of a file and return it as a table.

    `columns` are as in a text file.
    """
    metadata = _metadata(path)
    schema = metadata.schema.to_arrow_schema()
    about = declared_in(path, schema)
    if directed is None:
        directed = bool(about.get("directed"))
    names = schema.names
    *ends, weighted = find_columns(path, columns, len(names), names, directed)
    chosen = tuple(names[k] for k in (*ends, weighted) if k >= 0)
    has_strings = check_types(path, schema, chosen, labels)
    n = check_num_vertices(about.get("num_vertices") if num_vertices is None else num_vertices)
    groups = max(metadata.num_row_groups, 1)
    return ParquetTable(path, chosen, n, directed, metadata.num_rows, groups, has_strings, labels, base)


def check_types(path: InputFile, schema: Any, names: tuple[str, ...], labels: Labels) -> bool:
    """Return whether the ends, the first two of `names`, are strings; refuse types that no ends or weights have."""
    if repeated := [name for name in names if schema.names.count(name) > 1]:
        raise InputError(f"{path} has two columns called {repeated[0]!r}: give each its own name")
    types = [schema.field(name).type for name in names]
    for name, kind in zip(names[:2], types, strict=False):
        check_id_type(kind, f"{path}: {name}")
    for name, kind in zip(names[2:], types[2:], strict=True):
        check_weight_type(kind, f"{path}: {name}")
    source, target = (is_text(type_of_values(kind)) for kind in types[:2])
    if source != target:
        raise InputError(f"{path}: {names[0]} is {types[0]} and {names[1]} {types[1]}: both ends are of one kind")
    if labels == "string" and not source:
        raise UsageError(
            f"{path}: {names[0]} is {types[0]}, and labels='string' is for ids of a text: labels=True maps integers"
        )
    return source


def as_end(column: Any) -> np.ndarray | Strings:
    """Return a column of a checked type, without missing values, as ids."""
    return strings_of(column) if is_text(column.type) else column.to_numpy()


@contextlib.contextmanager
def _opened(path: InputFile, metadata: Any = None, buffer_bytes: int = 0) -> Iterator[Any]:
    """Open the file with pyarrow, which reads columns in parts of `buffer_bytes`, or each at once."""
    pyarrow = require_pyarrow("Parquet needs", "parquet")
    options = {"metadata": metadata, "buffer_size": buffer_bytes}
    with contextlib.ExitStack() as files:
        try:
            if isinstance(path, pathlib.Path):
                file = pyarrow.parquet.ParquetFile(path, memory_map=False, **options)
            else:
                raw = files.enter_context(path.open("rb", buffering=0))
                file = pyarrow.parquet.ParquetFile(pyarrow.PythonFile(raw, mode="r"), **options)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path} is no Parquet file, or truncated: {error}") from None
        yield files.enter_context(file)


def _end_chunks(table: ParquetTable) -> list[Any]:
    """Return what the metadata say of the columns of both ends in every row group."""
    metadata = _metadata(table.path)
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    columns = (group.column(c) for group in groups for c in range(group.num_columns))
    return [column for column in columns if column.path_in_schema in table.columns[:2]]


@kept_with_table
def _label_sample(table: ParquetTable, most: int, _: Identity) -> LabelSample | None:
    """Return the strings of both ends in the first rows of some row groups."""
    metadata = _metadata(table.path)
    found = []
    try:
        for group in places(metadata.num_row_groups - 1, most):
            options = {"row_groups": [group], "columns": list(table.columns[:2]), "use_threads": False}
            with _opened(table.path, metadata, SAMPLE_BYTES) as file:
                batch = next(file.iter_batches(ROWS, **options), None)
            if batch is not None:
                source, target = (strings_of(decoded(chunked(batch.column(name)))) for name in table.columns[:2])
                found.append((source, target))
    except (require_pyarrow("Parquet needs").ArrowException, OSError, ValueError):
        return None  # found again, and reported, when the row group is read
    return LabelSample.of(found)


def _metadata(path: InputFile) -> Any:
    """Return the metadata of all row groups, read once for each state of the file."""
    return _read_metadata(path, identity(path.stat()))


@functools.lru_cache(maxsize=16)
def _read_metadata(path: InputFile, _: Identity) -> Any:
    with _opened(path) as file:
        return file.metadata


def declared_in(path: InputFile, schema: Any) -> dict[str, Any]:
    """Return the metadata `mgraph` of an Arrow schema, {} if it has none."""
    text = (schema.metadata or {}).get(b"mgraph", b"{}")
    try:
        about = json.loads(text)
        number = about.get("num_vertices", 0)
        if type(number) is int and 0 <= number <= np.iinfo(np.int64).max:
            return about
    except (ValueError, AttributeError):
        pass
    raise InputError(f"{path}: its metadata {text[:80]!r} have no valid number of vertices")


def _columns(path: InputFile, metadata: Any, group: int, names: tuple[str, ...], begin: int) -> list[Any]:
    """Return columns of a row group, of which row `begin` is the first; refuse missing values."""
    pyarrow = require_pyarrow("Parquet needs")
    if group >= metadata.num_row_groups:
        rows = metadata.schema.to_arrow_schema().empty_table()
        return [decoded(rows.column(name)) for name in names]
    try:
        # Row groups are read by several threads of ours, and each by one.
        with _opened(path, metadata) as file:
            rows = file.read_row_group(group, columns=list(names), use_threads=False)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: {', '.join(names)} cannot be read: {error}") from None
    columns = [decoded(rows.column(name)) for name in names]
    num_rows = metadata.row_group(group).num_rows
    for name, column in zip(names, columns, strict=True):
        if len(column) != num_rows:
            raise InputError(f"{path}: {name} has {len(column)} values in {num_rows} rows: truncated?")
        if column.null_count:
            missing = int(np.argmax(column.is_null().to_numpy()))
            raise InputError(f"{path}: {name} of row {begin + missing} is missing")
    return columns
