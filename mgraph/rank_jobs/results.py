"""Store a rank's part of a result, and copy, count and hash its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.io.output_tables import Values, as_objects, own_copy
from mgraph.labels.table import LabelTable
from mgraph.types import Array

# Entries of a column that are hashed at once, in several arrays of 8 bytes each.
HASHED_AT_ONCE = 1 << 22


class MadeColumns(dict[str, Array]):
    """Columns, some of which are made when they are first read.

    Attributes
    ----------
    made_by
        By name the functions that make those columns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made_by: dict[str, Callable[[], Array]] = {}

    def __missing__(self, name: str) -> Array:
        self[name] = column = self.made_by[name]()
        return column

    def __contains__(self, name: object) -> bool:
        return name in self.made_by or super().__contains__(name)


@dataclass
class StoredColumns:
    """One rank's part of a result: a value for each user id or edge, or each vertex in the graph's own order.

    Attributes
    ----------
    first
        The place of this rank's first row among those of all ranks.
    vertices
        The user id of each row, where that is not its place.
    """

    first: int
    columns: dict[str, Array]
    labels: LabelTable | None = field(default=None, kw_only=True)
    vertices: Array | None = field(default=None, kw_only=True)

    @property
    def num_rows(self) -> int:
        """The number of values of each column."""
        return len(next(iter(self.columns.values())))


def labels_of_ids(rank: Rank, labels: LabelTable | None, ids: np.ndarray) -> Values:
    """Return vertices as their labels; collective if there are labels."""
    return ids if labels is None else labels.labels_of(rank.comm, ids)


def fetch(rank: Rank, key: str, column: str, lo: int, hi: int) -> np.ndarray:
    """Return this rank's values of a column for user ids or edges lo..hi."""
    result: StoredColumns = rank.objects[key]
    first = result.first
    if lo <= first and hi >= first + result.num_rows:
        return _whole(rank, result, column)
    values = result.columns[column]
    return rank.backend.to_host(values[max(lo - first, 0) : max(hi - first, 0)])


def _whole(rank: Rank, result: StoredColumns, column: str) -> np.ndarray:
    """Return a column on this host: the caller's own, or a view of what is stored."""
    columns = result.columns
    # What is read once need not be stored: a reader of all of it is given what is made.
    if isinstance(columns, MadeColumns) and not dict.__contains__(columns, column):
        return rank.backend.to_host(columns.made_by[column]())
    return rank.backend.to_host(columns[column][:])


def fetch_vertices(rank: Rank, key: str, column: str, lo: int, hi: int) -> Values:
    """Return this rank's values of a column of vertices, as labels if there are any."""
    return labels_of_ids(rank, rank.objects[key].labels, fetch(rank, key, column, lo, hi))


def count_values(rank: Rank, key: str) -> int:
    """Return the number of values of each column on this rank."""
    result: StoredColumns = rank.objects[key]
    return result.num_rows


def copy_column(rank: Rank, key: str, column: str) -> np.ndarray:
    """Return a copy of this rank's part of a column.

    It remains valid after the result is closed.
    """
    return own_copy(_whole(rank, rank.objects[key], column))


def copy_vertices(rank: Rank, key: str, column: str) -> np.ndarray:
    """Return a copy of this rank's part of a column of vertices, as labels if there are any."""
    return as_objects(labels_of_ids(rank, rank.objects[key].labels, copy_column(rank, key, column)))


def digest(rank: Rank, key: str, column: str) -> int:
    """Return the sum of hashes of (vertex, value) in this rank's column."""
    result: StoredColumns = rank.objects[key]
    values = result.columns[column]
    xp = rank.backend.xp
    given = result.vertices
    hashes = 0
    # In pieces: the hashes of a whole column would need several times its memory.
    for lo in range(0, len(values), HASHED_AT_ONCE):
        part = values[lo : lo + HASHED_AT_ONCE]
        places = xp.arange(result.first + lo, result.first + lo + len(part), dtype=np.uint64)
        hashes += hash_of(xp, places if given is None else given[lo : lo + len(part)], part)
    return hashes % 2**64


def hash_of(xp: Any, vertices: Array, values: Array) -> int:
    """Return the sum of hashes of (vertex, value)."""
    bits = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    # Constants of splitmix64: odd, so that multiplication is a bijection; the shifts mix high bits into low ones.
    mixed = (vertices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ bits
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(factor)
    return int((mixed ^ (mixed >> np.uint64(32))).sum(dtype=np.uint64))
