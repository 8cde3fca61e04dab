"""Lazy collections of Dask: which delayed partitions have the edges, and the columns of their ends and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io.columns import Columns
from mgraph.io.frames import choose_columns
from mgraph.io.memory import IdOptions
from mgraph.io.memory_columns import ids_column, weights_column
from mgraph.io.partitions import PartitionTable, Sizes


@dataclass(frozen=True)
class LazyEdges:
    """Edges that are not computed yet: delayed partitions of frames, of arrays of pairs, or of lists of columns."""

    partitions: tuple[Any, ...]
    names: tuple[str, ...]
    how: IdOptions
    name: str = "dask"

    def computed(
        self, values: list[Any], sizes: list[Sizes], distinct: tuple[int, int] | None, holders: list[list[str]]
    ) -> PartitionTable:
        """Return the table of the partitions: of their values, or of futures and the workers that hold them."""
        numbers = range(len(values))
        texts = [text for _, text in sizes if text is not None]
        return PartitionTable(
            self.name,
            self.names,
            sum(length for length, _ in sizes),
            max(len(values), 1),
            dict(zip(numbers, values, strict=True)),
            {},
            dict(zip(numbers, holders, strict=False)),
            self.how.num_vertices,
            self.how.directed,
            self.how.labels,
            self.how.base,
            text_bytes=sum(texts) if texts else None,
            distinct=distinct,
        )


def lazy_edges(edges: Any, targets: Any, weights: Any, columns: Columns, how: IdOptions) -> LazyEdges:
    """Return a Dask frame, an array of pairs, or columns of arrays or series as lazy edges of checked dtypes."""
    if hasattr(edges, "_meta") and hasattr(edges, "columns") and edges.ndim == 2:
        if targets is not None or weights is not None:
            raise UsageError("targets and weights are for columns: name those of a frame by source=, target=, weight=")
        return _of_frame(edges, columns, how)
    if any(column is not None for column in columns.given):
        raise UsageError("source=, target= and weight= name the columns of a frame, and there is none")
    if targets is not None:
        return _of_columns([edges, targets, *([] if weights is None else [weights])], how)
    _require(edges, "edges", 2)
    if edges.shape[1] != 2:
        raise InputError(f"edges have {edges.shape[1]} columns: give pairs of ends, an array of shape (m, 2)")
    if weights is not None:
        return _of_columns([edges[:, 0], edges[:, 1], weights], how)
    _check([edges._meta.reshape(-1)] * 2, ("sources", "targets"))
    whole_rows = edges.rechunk({1: -1})
    return LazyEdges(tuple(whole_rows.to_delayed().ravel()), ("sources", "targets"), how)


def _of_frame(frame: Any, columns: Columns, how: IdOptions) -> LazyEdges:
    names = [str(name) for name in frame.columns]
    chosen = choose_columns(names, columns, how, "table")
    kept = frame[[frame.columns[k] for k in chosen]]
    if list(kept.columns) != [frame.columns[k] for k in chosen]:
        raise InputError("the table has two columns of one name: give each its own name")
    titles = tuple(names[k] for k in chosen)
    _check([kept._meta.iloc[:, k] for k in range(len(chosen))], titles)
    return LazyEdges(tuple(kept.to_delayed()), titles, how)


def _of_columns(columns: list[Any], how: IdOptions) -> LazyEdges:
    """Return arrays or series as lazy edges; partition k of each has the same edges."""
    import dask

    titles = ("sources", "targets", "weights")[: len(columns)]
    for column, title in zip(columns, titles, strict=True):
        _require(column, title, 1)
    _check([column._meta for column in columns], titles)
    known = columns[0].chunks if hasattr(columns[0], "chunks") else None
    if known and all(getattr(c, "chunks", None) and c.shape == columns[0].shape for c in columns):
        columns = [columns[0], *(column.rechunk(known) for column in columns[1:])]
    delayed = [np.ravel(column.to_delayed()).tolist() for column in columns]
    counts = [len(parts) for parts in delayed]
    if len(set(counts)) > 1:
        raise InputError(
            f"{', '.join(titles)} have {', '.join(map(str, counts))} partitions: give columns of one frame, or arrays "
            "of the same chunks"
        )
    as_list = dask.delayed(list, pure=True)
    return LazyEdges(tuple(as_list(list(parts)) for parts in zip(*delayed, strict=True)), titles, how)


def _require(values: Any, what: str, dimensions: int) -> None:
    """Refuse what is no Dask array or series with this number of dimensions."""
    if not hasattr(values, "to_delayed") or not hasattr(values, "_meta") or not hasattr(values, "ndim"):
        raise InputError(
            f"{what}: {type(values).__name__} is no frame, array or series of Dask: mg.from_edges and mg.from_table "
            "read what is in memory"
        )
    if values.ndim != dimensions:
        raise InputError(f"{what} have {values.ndim} dimensions, not {dimensions}")


def _check(columns: list[Any], titles: tuple[str, ...]) -> None:
    """Refuse dtypes that no partition may have; `columns` are without rows."""
    for column, title in zip(columns[:2], titles, strict=False):
        ids_column(column, title)
    if len(columns) > 2:
        weights_column(columns[2], 0, titles[2])
