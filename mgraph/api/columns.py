"""Define columns: one value for each vertex (or edge), which stay on the ranks until they are read.

They are reduced, compared and selected where they are: only what comes out of that is fetched.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.algorithms.common.exact_sum import UNIT_BITS, as_float
from mgraph.api.graph import Stored, as_vertices
from mgraph.api.labels import dtype_of_vertices, names_of
from mgraph.errors import UsageError, refuse_pickle
from mgraph.formatting import counted
from mgraph.io.checks import as_ids, as_integer
from mgraph.io.output_tables import as_objects, joined
from mgraph.rank_jobs.columns import (
    add_up,
    combine,
    compare,
    find_extreme,
    gather,
    gather_vertices,
    list_true,
    select,
    select_vertices,
)
from mgraph.rank_jobs.results import copy_column, copy_vertices, count_values, digest, fetch, fetch_vertices

if TYPE_CHECKING:
    import dask.array

BOOLEAN = np.dtype(bool)
# What rows with a value for each vertex are: by user id, or by place in the graph's own order.
OF_VERTICES = ("vertex", "place")
SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|"}


def _comparison(name: str) -> Callable[[Column, Any], Column]:
    return lambda column, value: compared(column, name, value, missing=missing_stored(column))


def _combination(name: str) -> Callable[[Column, Column], Column]:
    return lambda column, other: combined(column, name, other)


class Column:
    """Hold one value for each user id, or edge of a forest.

    `np.asarray(column)` and `column.to_numpy()` fetch the whole column; `column[v]`, `column[lo:hi]`, `column[ids]` and
    `column[mask]` a part. In a graph with labels, `v` and `ids` are labels, and values that are vertices are labels,
    strings as an array of str; the order is that of the labels, and `column[lo:hi]` are places in it.

    A comparison with a value, such as `column > 3`, makes a boolean column on the ranks, a mask, which `&`, `|` and `~`
    combine. `<`, `<=`, `>` and `>=` are false where a value is missing. `==` and `!=` compare what is stored; those of
    two columns, and with None, ask whether they are the same object.

    No vertex is negative: `column[-1]` raises IndexError, as every id that no vertex has does. Places, as those of a
    slice, an edge of a forest or a label in `g.labels`, count from the end if they are negative, as in NumPy.

    Examples
    --------
    >>> hops = mg.bfs(mg.from_edges(["a", "b"], ["b", "c"]), "a").distances
    >>> int(hops["c"]), hops[0:2].tolist(), int(hops.max()), hops.argmax(), (hops > 0).vertices().tolist()
    (2, [0, 1], 2, 'c', ['b', 'c'])
    """

    __reduce__ = refuse_pickle("take its values with to_numpy()")

    def __init__(
        self, stored: Stored, name: str, dtype: np.dtype | None = None, *, rows: tuple[int, str] | None = None
    ) -> None:
        """Make a column of values of a dtype, or of vertices without one.

        One value is got by its vertex or, given the number of `rows` and what one is, by its place.
        """
        info = stored.graph.info
        self._stored = stored
        self.name = name
        self._are_labels = bool(info.labels) and dtype is None
        self.dtype = dtype_of_vertices(info) if dtype is None else dtype
        self._rows = rows
        self._length, self._item = (info.num_vertices, "vertex") if rows is None else rows

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        raise UsageError(f"column {self.name} is neither true nor false: use `is None`, len(column) or mask.sum()")

    @property
    def missing(self) -> Any:
        """The value where no vertex was reached.

        Of vertices it is -1, None for labels that are strings, and the least or greatest integer of the dtype if a
        label is negative or beyond int64. For labels, frames and Arrow have nulls there. Of distances it is -1, or
        infinity for floats.
        """
        if self._are_labels:
            info = self._stored.graph.info
            return None if info.labels == "string" else info.missing_label
        return math.inf if self.dtype.kind == "f" else -1

    def to_numpy(self) -> np.ndarray:
        """Return the whole column."""
        return values_between(self, 0, len(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a column is stored on the ranks: it cannot be read without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_numpy())

    def __getitem__(self, index: Any) -> Any:
        """Return the value of a vertex, or the values of a slice, of some vertices, or where a mask is true."""
        return values_at(self, index)

    def max(self) -> Any:
        """Return the greatest value. Here and below, missing values do not count."""
        return value_as_user(self, extreme(self, largest=True)[0])

    def min(self) -> Any:
        """Return the least value."""
        return value_as_user(self, extreme(self, largest=False)[0])

    def argmax(self) -> Any:
        """Return the vertex of the greatest value, of several the first: the smallest id or label."""
        return place_as_vertex(self, extreme(self, largest=True)[1])

    def argmin(self) -> Any:
        """Return the vertex of the least value, of several the first."""
        return place_as_vertex(self, extreme(self, largest=False)[1])

    def sum(self) -> int | float:
        """Return the sum: an exact int, or a float that is rounded once; of a mask, the number of true values."""
        total, _ = summed(self)
        return as_float(total) if self.dtype.kind == "f" else total

    def mean(self) -> float:
        """Return the mean, rounded once."""
        total, count = summed(self)
        return total / ((count or raise_empty(self)) << (UNIT_BITS if self.dtype.kind == "f" else 0))

    def is_missing(self) -> Column:
        """Return the mask of missing values: of vertices that were not reached."""
        missing = missing_stored(self)
        return _mask_of(self, f"{self.name} is missing", "eq", math.nan if missing is None else missing)

    def vertices(self) -> np.ndarray:
        """Return the vertices where this mask is true."""
        if self.dtype != BOOLEAN or self._item not in OF_VERTICES:
            raise UsageError(f"column {self.name} is no mask of vertices: compare it, as in (column > 0).vertices()")
        return as_objects(joined(self._stored.run(list_true, self.name)))

    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")
    __and__ = _combination("and_")
    __or__ = _combination("or_")
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return self is other if other is None or isinstance(other, Column) else compared(self, "eq", other)

    def __ne__(self, other: object) -> Any:
        return self is not other if other is None or isinstance(other, Column) else compared(self, "ne", other)

    def __invert__(self) -> Column:
        return _mask_of(require_mask(self), f"~({self.name})", "ne", True)

    def digest(self) -> int:
        """Return a 64-bit hash of all values and their vertices, both as ids.

        It does not depend on the number of ranks.
        """
        return sum(self._stored.run(digest, self.name)) % 2**64

    def to_dask_array(self) -> dask.array.Array:
        """Return the column as a Dask array, one chunk for each rank.

        Each chunk is a copy on the rank's worker. Compute the array with the client of the cluster: the default one,
        or `g.cluster.client.compute(array)`.
        """
        return dask_array_of(self)

    def __repr__(self) -> str:
        what = "closed" if self._stored.closed else f"{counted(len(self), self._item)}, {self.dtype}"
        return f"<Column {self.name}: {what}>"


def missing_stored(column: Column) -> float | int | None:
    """Return what ranks store where a value is missing; None if none can be."""
    if column._item not in OF_VERTICES or column.dtype == BOOLEAN:
        return None
    return math.inf if column.dtype.kind == "f" else -1


def value_as_user(column: Column, stored: Any) -> Any:
    """Return a value as the user sees it."""
    return id_as_vertex(column, stored) if column._are_labels else column.dtype.type(stored)


def values_between(column: Column, lo: int, hi: int) -> np.ndarray:
    """Return the values at a range of places."""
    place = column.name, lo, max(lo, hi)
    # Ranks exchange labels.
    stored = column._stored
    parts = stored.run(fetch_vertices, *place) if column._are_labels else stored.read(fetch, *place)
    return as_objects(joined(parts))


def values_at(column: Column, index: Any) -> Any:
    """Return the value of a vertex, or the values of a slice, of some vertices, or where a mask is true."""
    if isinstance(index, slice):
        lo, hi, step = index.indices(len(column))
        if step != 1:
            raise UsageError(f"a slice with step {step} is not supported: use to_numpy() first")
        return values_between(column, lo, hi)
    if isinstance(index, Column):
        return _selected(column, require_mask(index))
    if np.ndim(index):
        return _gathered(column, places_of(column, index))
    (place,) = places_of(column, [index])
    return values_between(column, place, place + 1)[0]


def places_of(column: Column, indices: Any) -> np.ndarray:
    """Return the places of some vertices, or of indices of rows."""
    info = column._stored.graph.info
    if info.labels and column._rows is None:
        return np.array(as_vertices(info, column._stored.run, indices, "vertex").ids, np.int64)
    if isinstance(indices, np.ndarray) and indices.dtype == BOOLEAN:
        raise UsageError("an array of booleans is no index: give ids, as by np.flatnonzero, or compare a column")
    if isinstance(indices, np.ndarray):
        given = as_ids(indices, "indices")
    else:
        given = np.array([as_integer(index, column._item) for index in indices], np.int64)
    # A negative vertex is often the predecessor of one that was not reached.
    lowest = 0 if column._rows is None else -len(column)
    wrong = (given < lowest) | (given >= len(column))
    if wrong.any():
        raise IndexError(f"{column._item} {given[wrong.argmax()]} is not in 0..{len(column) - 1}")
    places = given.astype(np.int64)
    return np.where(places < 0, places + len(column), places)


def _selected(column: Column, mask: Column) -> np.ndarray:
    """Return the values where a mask is true."""
    _require_same_rows(column, mask)
    job = select_vertices if column._are_labels else select
    return as_objects(joined(column._stored.run(job, column.name, (mask._stored.key, mask.name))))


def _gathered(column: Column, places: np.ndarray) -> np.ndarray:
    """Return the values at places, in their order."""
    parts = column._stored.run(gather_vertices if column._are_labels else gather, column.name, places)
    found = as_objects(joined([values for _, values in parts]))
    values = np.empty_like(found)
    values[np.concatenate([own for own, _ in parts])] = found
    return values


def extreme(column: Column, *, largest: bool) -> tuple[Any, int]:
    """Return the smallest or largest value, in the dtype that ranks store, and the first place that has it."""
    parts = column._stored.run(find_extreme, column.name, missing_stored(column), largest)
    found = [part for part in parts if part is not None] or raise_empty(column)
    # Places rise with the ranks, and of equal values max and min return the first.
    return max(found, key=lambda part: part[0]) if largest else min(found, key=lambda part: part[0])


def raise_empty(column: Column) -> Any:
    """Raise the error of a column without a value."""
    raise UsageError(f"column {column.name} has no value: none was reached, or there is no {column._item}")


def summed(column: Column) -> tuple[int, int]:
    """Return the exact sum of the values, in the units of `exact_sum`, and their number."""
    if column._are_labels:
        raise UsageError(f"the values of column {column.name} are labels: they have no sum")
    parts = column._stored.run(add_up, column.name, missing_stored(column))
    return sum(total for total, _ in parts), sum(count for _, count in parts)


def id_as_vertex(column: Column, vertex: int) -> Any:
    """Return a vertex as the user names it."""
    info = column._stored.graph.info
    return names_of(info, column._stored.graph._ask, [vertex])[0] if info.labels else vertex


def place_as_vertex(column: Column, place: int) -> Any:
    """Return what is at a place: a vertex as the user names it, or the index of a row."""
    return place if column._rows else id_as_vertex(column, place)


def compared(column: Column, operation: str, value: Any, *, missing: float | int | None = None) -> Column:
    """Return the mask of the values for which a comparison with one value holds, but for those that are missing."""
    name = f"{column.name} {SIGNS[operation]} {value!r}"
    return _mask_of(column, name, operation, comparable(column, value), missing)


def _mask_of(column: Column, name: str, operation: str, value: Any, missing: float | int | None = None) -> Column:
    stored = Stored(column._stored.graph)
    operate = getattr(operator, operation)
    column._stored.run(compare, column.name, (stored.key, name), operate, value, missing)
    return Column(stored, name, BOOLEAN, rows=column._rows)


def comparable(column: Column, value: Any) -> Any:
    """Return a value as the ranks compare it with what they store."""
    if isinstance(value, np.generic):
        value = value.item()
    if column._are_labels:
        info = column._stored.graph.info
        is_missing = info.labels == "integer" and value == column.missing
        return -1 if is_missing else as_vertices(info, column._stored.run, [value], "vertex").ids[0]
    if not isinstance(value, (int, float)):
        raise UsageError(f"column {column.name} is compared with one number, not with {value!r:.80}: use to_numpy()")
    if abs(value) > sys.float_info.max:
        value = math.inf if value > 0 else -math.inf
    # NumPy compares floats with an integer as a float; CuPy refuses one of more than 64 bits.
    if column.dtype.kind not in "iu":
        return float(value)
    # As integers, which floats beyond 2^53 do not hold; one beyond the dtype is beyond all of its values.
    if math.isfinite(value) and value == math.floor(value):
        value = math.floor(value)
    bounds = np.iinfo(column.dtype)
    return value if isinstance(value, float) or bounds.min <= value <= bounds.max else math.copysign(math.inf, value)


def combined(column: Column, operation: str, other: Column) -> Column:
    """Return the mask that combines two."""
    require_mask(column)
    require_mask(other)
    _require_same_rows(column, other)
    name = f"({column.name}) {SIGNS[operation]} ({other.name})"
    stored = Stored(column._stored.graph)
    keys = (other._stored.key, other.name), (stored.key, name)
    column._stored.run(combine, column.name, *keys, getattr(operator, operation))
    return Column(stored, name, BOOLEAN, rows=column._rows)


def require_mask(column: Any) -> Column:
    """Return a boolean column; raise UsageError if it is none."""
    if not isinstance(column, Column) or column.dtype != BOOLEAN:
        raise UsageError(f"{column!r:.80} is not a boolean column: compare one with a value, as in column > 0")
    return column


def _require_same_rows(column: Column, mask: Column) -> None:
    """Raise UsageError if two columns are about different graphs or rows."""
    mask._stored.require_open()
    if mask._stored.graph is not column._stored.graph or (mask._length, mask._item) != (column._length, column._item):
        raise UsageError(f"the columns {column.name} and {mask.name} are not about the same rows of one graph")


def dask_array_of(column: Column, width: int | None = None) -> dask.array.Array:
    """Return a Dask array with a copy of each rank's values; given a width, with rows of so many."""
    import dask.array

    job = copy_vertices if column._are_labels else copy_column
    lengths = column._stored.run(count_values)
    chunks = column._stored.cluster.run_and_store(job, column._stored.key, column.name)
    parts = [
        dask.array.from_delayed(chunk, (length,), column.dtype) for chunk, length in zip(chunks, lengths, strict=True)
    ]
    return dask.array.concatenate(parts if width is None else [part.reshape(-1, width) for part in parts])
