"""The partitions of Dask's frames and arrays: read where they lie, a piece for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError
from mgraph.io.columns import listed
from mgraph.io.frames import columns_of
from mgraph.io.memory import columns_table
from mgraph.io.memory_columns import ids_column, sample_columns, weights_of
from mgraph.io.samples import LABEL_PLACES, LabelSample

# The number of edges, and the bytes of their ids if these are strings.
Sizes = tuple[int, int | None]


@dataclass(frozen=True, eq=False)
class PartitionTable:
    """Computed partitions, in this process or as futures of those on workers.

    Attributes
    ----------
    names
        Of the columns of the ends and of any weight, as errors call them.
    partitions
        By the number of the piece: a frame of these columns, a list of columns, or the future of one of them.
    numbers
        By the number of the piece: the number of the partition.
    holders
        By the number of the piece: the addresses of the workers that hold the partition.
    """

    name: str
    names: tuple[str, ...]
    max_edges: int
    num_pieces: int
    partitions: dict[int, Any]
    numbers: dict[int, int] = field(default_factory=dict)
    holders: dict[int, Sequence[str]] = field(default_factory=dict)
    num_vertices: int | None = None
    directed: bool = False
    labels: Labels = "auto"
    base: int = 0
    may_be_empty: ClassVar[bool] = True
    text_bytes: int | None = None  # of all ids of both ends, as the partitions suggest it
    distinct: tuple[int, int] | None = None  # how many strings differ, as expected and at most

    @property
    def has_weights(self) -> bool:
        return len(self.names) > 2

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Return the edges of a partition; pieces without one, where ranks hold unequal numbers, are empty."""
        if k not in self.partitions:
            none = np.empty(0, np.int64)
            return EdgePiece(none, none, np.empty(0, np.uint8) if self.has_weights else None, str)
        what = f"{self.name}: partition {self.numbers.get(k, k)}"
        columns = _values(self.partitions[k])
        found = getattr(self.partitions[k], "columns", None)
        if found is not None and [str(name) for name in found] != list(self.names):
            # Dask does not look whether partitions are as their collection says.
            raise InputError(f"{what} has the columns {listed(map(str, found))}, not {listed(self.names)}")
        titles = [f"{what}, {name}" for name in self.names] + [""]
        weights = columns[2] if self.has_weights else None
        table = columns_table(columns[0], columns[1], weights, names=(titles[0], titles[1], titles[2]))
        m = len(table.sources)
        return EdgePiece(
            table.sources.part(0, m, backend),
            table.targets.part(0, m, backend),
            None if table.weights is None else weights_of(table.weights, 0, m, backend, titles[2]),
            partial(_row, what),
        )

    def in_parts(self, workers: Sequence[str]) -> list[tuple[PartitionTable, list[Any]]]:
        """Give each rank the partitions that its worker holds, and those of other workers to ranks with the fewest.

        Rank r of p reads the pieces r, r + p, ...
        """
        own = deal([self.holders[k] for k in self.partitions], workers)
        keys = list(self.partitions)
        num_pieces = max(max(map(len, own)), 1) * len(workers)
        parts = []
        for rank, dealt in enumerate(own):
            numbers = {rank + i * len(workers): keys[j] for i, j in enumerate(dealt)}
            table = dataclasses.replace(
                self, num_pieces=num_pieces, partitions=dict.fromkeys(numbers), numbers=numbers, holders={}
            )
            parts.append((table, [self.partitions[keys[j]] for j in dealt]))
        return parts

    def release(self) -> None:
        """Drop the partitions: on a cluster, workers free those that nothing else uses."""
        self.partitions.clear()


def deal(holders: Sequence[Sequence[str]], workers: Sequence[str]) -> list[list[int]]:
    """Return the partitions of each rank: those that its worker holds, and its share of the others."""
    own: list[list[int]] = [[] for _ in workers]
    ranks = {worker: rank for rank, worker in enumerate(workers)}
    others = []
    for k, addresses in enumerate(holders):
        local = [ranks[address] for address in addresses if address in ranks]
        if local:
            own[min(local, key=lambda rank: len(own[rank]))].append(k)
        else:
            others.append(k)
    for k in others:
        min(own, key=len).append(k)
    return own


def sizes_of(partition: Any) -> Sizes:
    """Return the number of edges of a computed partition, and the bytes of their ids if these are strings."""
    sample = sample_of(partition, LABEL_PLACES)
    num_edges = len(_values(partition)[0])
    return num_edges, None if sample is None else sample.text_bytes(num_edges)


def sample_of(partition: Any, most: int = 1) -> LabelSample | None:
    """Return the ids in at most `most` places of a computed partition; None if these are numbers."""
    try:
        return sample_columns([ids_column(column, "ids") for column in _values(partition)[:2]], most)
    except InputError:
        return None  # found again, and reported, when the piece is read


def distinct_of(samples: Sequence[LabelSample | None], sizes: Sequence[Sizes]) -> tuple[int, int] | None:
    """Return how many distinct strings all partitions have, as expected and at most; None if ids are numbers."""
    known = [sample for sample in samples if sample is not None]
    return LabelSample.merged(known).distinct(sum(num_edges for num_edges, _ in sizes)) if known else None


def _values(partition: Any) -> list[Any]:
    """Return the columns of a partition: of a frame, of an array of shape (m, 2), or a list of columns."""
    if isinstance(partition, (list, tuple)):
        return list(partition)
    if isinstance(partition, np.ndarray) or (hasattr(partition, "shape") and not hasattr(partition, "columns")):
        if len(partition.shape) != 2:
            raise InputError(f"a partition is an array of shape {partition.shape}: give pairs of ends")
        return [partition[:, k] for k in range(partition.shape[1])]
    names, choose = columns_of(partition)
    return choose(range(len(names)))


def _row(what: str, i: int) -> str:
    return f"{what}, row {i}"
