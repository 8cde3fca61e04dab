"""Tables to write: named columns with rows that are made in batches, so that no whole column need be in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.recycled import owns_memory
from mgraph.edges import EdgeSource
from mgraph.errors import InputError
from mgraph.labels.strings import Strings, concatenate
from mgraph.types import vertex_dtype

# A column of a batch, and a batch: columns by name, all equally long.
Values = np.ndarray | Strings
Batch = dict[str, Any]
# The type of a column: None for strings.
ColumnType = np.dtype | None
# Rows in memory at a time.
BATCH_ROWS = 1 << 22
EDGE_COLUMNS = ("source", "target", "weight")


@dataclass(frozen=True)
class EdgeFacts:
    """What a table of edges says about its graph.

    The number of vertices is None if the input does not declare it, the largest id if it was not looked for.
    """

    num_vertices: int | None
    directed: bool
    highest: int | None = None


@dataclass(frozen=True)
class Table:
    """Rows to write.

    Attributes
    ----------
    columns
        The type of every column.
    num_rows
        None if it is known only after all batches.
    batches
        Makes the batches of the named columns, from the first row on at every call; also of all columns.
    edges
        Given for a table of edges: its columns are the first two or three of EDGE_COLUMNS.
    missing
        Of columns of integers with missing values: the integer in their place, which text keeps.
    """

    columns: Mapping[str, ColumnType]
    num_rows: int | None
    batches: Callable[[Sequence[str]], Iterator[Batch]]
    edges: EdgeFacts | None = None
    missing: Mapping[str, int] = field(default_factory=dict)

    def all_batches(self) -> Iterator[Batch]:
        """Make the batches of all columns."""
        return self.batches(tuple(self.columns))

    def counted_rows(self) -> int:
        """Return the number of rows; count them if it is not known."""
        if self.num_rows is not None:
            return self.num_rows
        return sum(num_rows(batch) for batch in self.batches(tuple(self.columns)[:1]))

    @property
    def strings(self) -> list[str]:
        """The names of the columns of strings."""
        return [name for name, kind in self.columns.items() if kind is None]


def num_rows(batch: Batch) -> int:
    """Return the number of rows of a batch."""
    return len(next(iter(batch.values()))) if batch else 0


def type_of(values: Values) -> ColumnType:
    """Return the type of a column's values."""
    return None if isinstance(values, Strings) else values.dtype


def table_of_columns(columns: Mapping[str, Any]) -> Table:
    """Return columns in memory as a table; refuse columns of several lengths."""
    arrays: Batch = {name: v if isinstance(v, Strings) else np.asarray(v) for name, v in columns.items()}
    shapes = {name: (len(v),) if isinstance(v, Strings) else v.shape for name, v in arrays.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        raise InputError(f"columns must be one-dimensional and equally long, not {shapes}")
    rows = num_rows(arrays)

    def batches(names: Sequence[str]) -> Iterator[Batch]:
        for lo in range(0, rows, BATCH_ROWS):
            yield {name: arrays[name][lo : min(lo + BATCH_ROWS, rows)] for name in names}

    return Table({name: type_of(values) for name, values in arrays.items()}, rows, batches)


def table_of_source(source: EdgeSource, backend: Backend) -> Table:
    """Return the edges of a source as a table, as the source yields them."""
    ids = vertex_dtype(source.num_vertices)
    columns: dict[str, ColumnType] = {"source": ids, "target": ids}
    if source.weight_dtype is not None:
        columns["weight"] = source.weight_dtype
    estimate = 4 * source.num_vertices if source.num_input_edges is None else source.num_input_edges
    num_chunks = max(1, -(-estimate // BATCH_ROWS))

    def batches(names: Sequence[str]) -> Iterator[Batch]:
        for k in range(num_chunks):
            chunk = source.chunk(k, num_chunks, backend)
            found = {"source": chunk.sources, "target": chunk.targets, "weight": chunk.weights}
            yield {name: backend.to_host(found[name]) for name in names}

    return Table(columns, source.num_input_edges, batches, EdgeFacts(source.num_vertices, source.directed))


def joined(parts: Sequence[Values]) -> Values:
    """Return the parts of a column, one after another."""
    if isinstance(parts[0], Strings):
        return concatenate(parts)  # type: ignore[arg-type]
    return own_copy(parts[0]) if len(parts) == 1 else np.concatenate(parts)  # type: ignore[arg-type]


def own_copy(values: np.ndarray) -> np.ndarray:
    """Return an array that no other one shares: the values themselves, unless they are a view or read-only."""
    return values if owns_memory(values) and values.flags.writeable else values.copy()


def as_objects(values: Values) -> np.ndarray:
    """Return a column as an array; strings become an array of str, empty ones None: no vertex has an empty label."""
    if not isinstance(values, Strings):
        return values
    texts = np.empty(len(values), object)
    texts[:] = [text or None for text in values.tolist()]
    return texts


def as_column(values: Values, missing: int | None = None) -> Any:
    """Return a column as data frames of pandas take it: with nulls, if an integer means a missing value."""
    if missing is None or isinstance(values, Strings):
        return as_objects(values)
    import pandas

    return pandas.arrays.IntegerArray(values, values == missing)
