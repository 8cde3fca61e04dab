"""Reduce, compare, gather and select the values of columns, each rank those that it stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgraph.algorithms.common.exact_sum import exact_sum
from mgraph.cluster.base import Rank
from mgraph.errors import UsageError
from mgraph.io.output_tables import Values
from mgraph.rank_jobs.results import StoredColumns, labels_of_ids
from mgraph.types import Array

# Values read at a time: what a reduction allocates is a few times as large.
REDUCED_AT_ONCE = 1 << 24


def find_extreme(
    rank: Rank, key: str, column: str, missing: float | int | None, largest: bool
) -> tuple[float | int, int] | None:
    """Return this rank's least or greatest value and its first place; None if all are missing."""
    result: StoredColumns = rank.objects[key]
    xp = rank.backend.xp
    best = None
    for lo, part in _pieces(result.columns[column]):
        worst = _worst_of(part.dtype, largest=largest)
        if missing is not None:
            part = xp.where(part == missing, worst, part)
        at = int(part.argmax() if largest else part.argmin())
        value = part[at].item()
        if missing is not None and value == worst:
            continue
        if best is None or (value > best[0] if largest else value < best[0]):
            best = value, result.first + lo + at
    return best


def add_up(rank: Rank, key: str, column: str, missing: float | int | None) -> tuple[int, int]:
    """Return the exact sum of this rank's values that are not missing, as of `exact_sum`, and their number."""
    result: StoredColumns = rank.objects[key]
    total = 0
    count = 0
    for _, part in _pieces(result.columns[column]):
        known = part if missing is None else part[part != missing]
        total += exact_sum(rank.backend.xp, known)
        count += len(known)
    return total, count


def compare(
    rank: Rank,
    key: str,
    column: str,
    compared: tuple[str, str],
    operation: Callable[[Array, Any], Array],
    value: Any,
    missing: float | int | None,
) -> None:
    """Store for each value whether `operation(value, ...)` holds, under the key and name `compared`.

    It holds for no missing value.
    """
    result: StoredColumns = rank.objects[key]
    values = result.columns[column]
    holds = operation(values, value)
    if missing is not None:
        holds &= values != missing
    _store(rank, result, compared, holds)


def combine(
    rank: Rank,
    key: str,
    column: str,
    other: tuple[str, str],
    combined: tuple[str, str],
    operation: Callable[[Array, Array], Array],
) -> None:
    """Store `operation` of two boolean columns, the second of key and name `other`, as `combined`."""
    result: StoredColumns = rank.objects[key]
    _store(rank, result, combined, operation(result.columns[column], _mask(rank, result, other)))


def gather(rank: Rank, key: str, column: str, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the places this rank stores, and the values at these."""
    result: StoredColumns = rank.objects[key]
    first = result.first
    own = np.flatnonzero((places >= first) & (places < first + result.num_rows))
    return own, rank.backend.to_host(result.columns[column][rank.backend.to_device(places[own] - first)])


def gather_vertices(rank: Rank, key: str, column: str, places: np.ndarray) -> tuple[np.ndarray, Values]:
    """Return which of the places this rank stores, and the vertices at these, as labels if there are any."""
    own, ids = gather(rank, key, column, places)
    return own, labels_of_ids(rank, rank.objects[key].labels, ids)


def select(rank: Rank, key: str, column: str, mask: tuple[str, str]) -> np.ndarray:
    """Return this rank's values where a boolean column is true."""
    result: StoredColumns = rank.objects[key]
    return rank.backend.to_host(result.columns[column][_mask(rank, result, mask)])


def select_vertices(rank: Rank, key: str, column: str, mask: tuple[str, str]) -> Values:
    """Return this rank's values of a column of vertices where a boolean column is true, as labels if there are any."""
    return labels_of_ids(rank, rank.objects[key].labels, select(rank, key, column, mask))


def list_true(rank: Rank, key: str, column: str) -> Values:
    """Return this rank's vertices where a boolean column is true, as labels if there are any."""
    result: StoredColumns = rank.objects[key]
    places = rank.backend.xp.flatnonzero(result.columns[column])
    ids = result.first + places if result.vertices is None else result.vertices[places]
    return labels_of_ids(rank, result.labels, rank.backend.to_host(ids))


def _pieces(values: Array) -> Iterator[tuple[int, Array]]:
    for lo in range(0, len(values), REDUCED_AT_ONCE):
        yield lo, values[lo : lo + REDUCED_AT_ONCE]


def _worst_of(dtype: np.dtype, *, largest: bool) -> Any:
    """Return the value of a dtype that is the greatest, or least, only if there is no other."""
    if dtype.kind == "b":
        return np.bool_(not largest)
    if dtype.kind == "f":
        return dtype.type(-np.inf if largest else np.inf)
    return dtype.type(np.iinfo(dtype).min if largest else np.iinfo(dtype).max)


def _store(rank: Rank, result: StoredColumns, where: tuple[str, str], values: Array) -> None:
    """Store a column with a value for each row of a result."""
    key, name = where
    rank.objects[key] = StoredColumns(result.first, {name: values}, labels=result.labels, vertices=result.vertices)


def _mask(rank: Rank, result: StoredColumns, where: tuple[str, str]) -> Array:
    """Return a boolean column over the rows of a result."""
    mask: StoredColumns = rank.objects[where[0]]
    if (mask.first, mask.num_rows) != (result.first, result.num_rows):
        raise UsageError(f"the column {where[1]} is about the rows of another result")
    return mask.columns[where[1]]
