"""Make rows of a result, or of a graph's edges, from what the ranks store: for the client, for files, for data frames.

A range of rows is made on all ranks together, since labels and edges are exchanged: every job is collective.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.errors import InputError, UsageError
from mgraph.io.ahead import mapped_ahead
from mgraph.io.output_tables import (
    BATCH_ROWS,
    EDGE_COLUMNS,
    Batch,
    EdgeFacts,
    Table,
    as_column,
    joined,
    num_rows,
    type_of,
)
from mgraph.io.parts_folder import new_part, part_path
from mgraph.io.remote import is_url
from mgraph.io.write_arrow import write_parquet
from mgraph.labels.spread import serially
from mgraph.labels.table import stride_of
from mgraph.partition import chunk_range
from mgraph.rank_jobs.results import StoredColumns, labels_of_ids
from mgraph.shard.edges_by_user import ByUser, cut_by_arcs, edges_of_range, ranges_of, vertices_by_user
from mgraph.shard.shard import Shard

if TYPE_CHECKING:
    import pandas

# Rows made at a time by a rank that writes its own parts, and about those of a part: 16 to 64 MiB.
PART_ROWS = 1 << 21
# From this many parts on, those of one rank are made side by side; of fewer, one is made by all threads.
PARTS_AT_ONCE = 4

Maker = Callable[[], Batch]


@dataclass(frozen=True)
class ResultRows:
    """Rows of a result: a row for each vertex, or for each edge.

    Attributes
    ----------
    columns
        The name of each column in the table, and where its values are stored; "" for the row's own vertex.
    ids
        The columns of vertices, which are written as labels.
    edges
        Given if the rows are edges.
    missing
        The integer that means no vertex, by column, if there may be such rows.
    """

    columns: tuple[tuple[str, str], ...]
    ids: tuple[str, ...]
    edges: EdgeFacts | None = None
    missing: Mapping[str, int] = field(default_factory=dict)

    def shared(self, rank: Rank, key: str, lo: int, hi: int, names: Sequence[str]) -> Batch:
        """Return the rows lo..hi that this rank stores."""
        result: StoredColumns = rank.objects[key]
        begin, end = (min(max(row - result.first, 0), result.num_rows) for row in (lo, hi))
        return self._rows(rank, result, begin, end, names, self._are_own(rank, result, names))

    def own(self, rank: Rank, key: str, names: Sequence[str]) -> Iterator[Maker]:
        """Yield functions that make this rank's rows, as often on every rank."""
        result: StoredColumns = rank.objects[key]
        times = self.times(rank, key)
        # Ranks make their rows together; those of one rank are made by the threads that write them.
        are_made = rank.size > 1 or times < PARTS_AT_ONCE
        if not are_made and result.labels is not None:
            result = dataclasses.replace(result, labels=dataclasses.replace(result.labels, spread=serially))
        are_own = self._are_own(rank, result, names)
        for k in range(times):
            begin, end = (min(row * PART_ROWS, result.num_rows) for row in (k, k + 1))
            make = functools.partial(self._rows, rank, result, begin, end, names, are_own)
            yield _given(make()) if are_made else make

    def times(self, rank: Rank, key: str) -> int:
        """Return how many batches `own` yields, on every rank."""
        return -(-_largest(rank, rank.objects[key].num_rows) // PART_ROWS)

    def first_row(self, rank: Rank, key: str) -> int:
        """Return the number of this rank's first row."""
        first: int = rank.objects[key].first
        return first

    def _rows(
        self, rank: Rank, result: StoredColumns, begin: int, end: int, names: Sequence[str], are_own: bool
    ) -> Batch:
        rank.backend.enter_thread()
        rows: Batch = {}
        for name, stored in self.columns:
            if name not in names:
                continue
            if stored:
                values = rank.backend.to_host(result.columns[stored][begin:end])
            else:
                values = np.arange(result.first + begin, result.first + end)
            if name not in self.ids or result.labels is None:
                rows[name] = values
            elif not stored and are_own:
                rows[name] = result.labels.part[begin:end]
            else:
                rows[name] = result.labels.labels_of(rank.comm, values)
        return rows

    def _are_own(self, rank: Rank, result: StoredColumns, names: Sequence[str]) -> bool:
        """Return whether every rank has the labels of its own vertices: collective, once for all batches."""
        labels = result.labels
        if labels is None or not any(name in names and name in self.ids for name, stored in self.columns if not stored):
            return False
        own = stride_of(labels.num_vertices, rank.size) * rank.index
        return not rank.comm.any(result.num_rows != len(labels.part) or (result.first != own and result.num_rows > 0))


@dataclass(frozen=True)
class GraphEdges:
    """The edges of a graph, sorted by source and target; with `both`, undirected ones in both directions.

    The key is that of what `sort_vertices` stored.
    """

    graph: str
    edges: EdgeFacts
    both: bool = False
    missing: ClassVar[Mapping[str, int]] = {}
    numbered: bool = False  # vertices are ids and not labels

    def shared(self, rank: Rank, key: str, lo: int, hi: int, names: Sequence[str]) -> Batch:
        """Return the edges of this rank's part of the sources lo..hi."""
        part = chunk_range(hi - lo, rank.index, rank.size)
        return self._rows(rank, key, lo + part[0], lo + part[1], names)

    def own(self, rank: Rank, key: str, names: Sequence[str]) -> Iterator[Maker]:
        """Yield functions that return the edges with sources in this rank's range, as often on every rank."""
        own = self._own_ranges(rank, key)
        end = (own[-1][1],) * 2 if own else (0, 0)
        for lo, hi in itertools.islice(itertools.chain(own, itertools.repeat(end)), self.times(rank, key)):
            yield _given(self._rows(rank, key, lo, hi, names))

    def times(self, rank: Rank, key: str) -> int:
        """Return how many batches `own` yields, on every rank."""
        return _largest(rank, len(self._own_ranges(rank, key)))

    def _own_ranges(self, rank: Rank, key: str) -> list[tuple[int, int]]:
        shard: Shard = rank.objects[self.graph].for_call(rank.comm)
        return list(ranges_of(rank.objects[key].cuts, *shard.user_range))

    def first_row(self, rank: Rank, key: str) -> int:
        """Return 0: the edges of lower ranks are not counted."""
        return 0

    def _rows(self, rank: Rank, key: str, lo: int, hi: int, names: Sequence[str]) -> Batch:
        shard: Shard = rank.objects[self.graph].for_call(rank.comm)
        columns = edges_of_range(shard, rank.comm, rank.objects[key].by_user, lo, hi, both=self.both)
        rows = dict(zip(EDGE_COLUMNS, map(rank.backend.to_host, columns), strict=False))
        labels = None if self.numbered else shard.labels
        return {
            name: rows[name] if name == "weight" else labels_of_ids(rank, labels, rows[name])
            for name in rows
            if name in names
        }


Rows = ResultRows | GraphEdges


def _given(batch: Batch) -> Maker:
    return lambda: batch


@dataclass
class VertexOrder:
    """What the ranks keep while the edges of a graph are read."""

    by_user: ByUser
    cuts: list[int]


def _largest(rank: Rank, number: int) -> int:
    return int(rank.comm.allreduce(np.array([number], np.int64), "max")[0])


def sort_vertices(rank: Rank, graph: str, key: str) -> list[int]:
    """Store the order of this rank's vertices as `key`; return user ids that cut the edges into batches."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    by_user = vertices_by_user(shard)
    cuts = cut_by_arcs(shard, rank.comm, by_user, BATCH_ROWS)
    part_cuts = cut_by_arcs(shard, rank.comm, by_user, PART_ROWS)
    rank.objects[key] = VertexOrder(by_user, part_cuts)
    return cuts


def number_vertices(rank: Rank, graph: str, key: str) -> None:
    """Store the numbers of this rank's vertices as `key`, with their labels."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    lo, hi = shard.user_range
    numbers = rank.backend.to_device(np.arange(lo, hi))
    rank.objects[key] = StoredColumns(lo, {"vertex": numbers}, labels=shard.labels)


def make_rows(rank: Rank, key: str, rows: Rows, lo: int, hi: int, names: Sequence[str]) -> Batch:
    """Return this rank's rows of a range, for the client."""
    return rows.shared(rank, key, lo, hi, names)


def make_frame(rank: Rank, key: str, rows: Rows, names: Sequence[str]) -> pandas.DataFrame:
    """Return a data frame of this rank's rows, in its memory, which remains when the result is closed."""
    import pandas

    batches = [make() for make in rows.own(rank, key, names)] or [rows.shared(rank, key, 0, 0, names)]
    columns = {name: as_column(joined([batch[name] for batch in batches]), rows.missing.get(name)) for name in names}
    first = rows.first_row(rank, key)
    count = len(next(iter(columns.values())))
    return pandas.DataFrame(columns, index=pandas.RangeIndex(first, first + count), copy=False)


def write_parts(rank: Rank, key: str, rows: Rows, folder: str, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Write this rank's rows to parts in a folder, some at a time; return the path, rows and bytes of each."""
    here = f"rank {rank.index} on {socket.gethostname()}"
    kinds = {name: type_of(values) for name, values in rows.shared(rank, key, 0, 0, names).items()}
    times = rows.times(rank, key)
    if not is_url(folder) and not os.path.isdir(folder):
        raise UsageError(
            f"{here} does not see the folder {os.path.dirname(folder)} of the parts: "
            "name a folder on a file system that all ranks share, or a single file"
        )

    def write(part: tuple[int, Maker]) -> tuple[str, int, int] | None:
        k, make = part
        batch = make()
        count = num_rows(batch)
        # The first part is there even if the table has no rows.
        if count == 0 and k > 0:
            return None
        try:
            with new_part(folder, k) as file:
                write_parquet(file, Table(kinds, count, lambda _: iter([batch]), rows.edges, rows.missing))
                return part_path(folder, k), count, file.tell()
        except OSError as error:
            raise InputError(
                f"{part_path(folder, k)} cannot be written by {here}: {error.strerror or error}"
            ) from error

    parts = enumerate(rows.own(rank, key, names), start=rank.index * times)
    written = list(mapped_ahead(write, parts, per_thread=1, threads=getattr(rank.backend, "threads", None)))
    if times == 0 and rank.index == 0:
        written.append(write((0, _given(rows.shared(rank, key, 0, 0, names)))))
    return [part for part in written if part is not None]
