"""How much memory a build takes, counted before it takes it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Limits
from mgraph.formatting import readable_bytes
from mgraph.partition import Partition
from mgraph.types import vertex_dtype

# A build reads the input in at least this many chunks and sorts its rows in as many batches, so that
# neither is large beside the rows; smaller ones than these gain nothing.
PARTS = 16
# The compact layout may take 15 % beside what it leaves; each rank reads so many chunks and sorts so many batches.
COMPACT_PARTS = 64
# For each user id of a run that is put in order: keys, places, positions, and what they are made of.
ORDER_BYTES = 64
LEAST_CHUNK_EDGES = 1 << 16
LEAST_BATCH_ARCS = 1 << 16


@dataclass(frozen=True)
class Sizes:
    """What decides how much memory a graph takes; expected where it is not counted yet."""

    num_vertices: int
    num_input_edges: int
    row_arcs: int  # on the fullest rank, parallel ones included
    directed: bool
    given_weight_bytes: int  # of a weight as it is read
    weight_bytes: int  # as it is stored


@dataclass(frozen=True)
class Plan:
    """Bytes on the fullest rank, by what they are for."""

    num_ranks: int
    order: int  # to find the order; before all of the following
    tables: int  # between user ids and positions
    rows: int
    place: int  # beside tables and rows, while arcs are placed in rows
    sort: int  # the same, while rows are sorted

    @property
    def to_allocate_bytes(self) -> int:
        """What is still to be allocated once the order is found."""
        return self.rows + max(self.place, self.sort)

    @property
    def peak_bytes(self) -> int:
        """The build's high-water mark."""
        return max(self.order, self.tables + self.to_allocate_bytes)

    def refusal(self, free_bytes: int) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        # With more ranks each has fewer rows to hold and to sort, and chunks as large.
        use = "ranks with more memory"
        if free_bytes > self.place:
            shares = self.rows / (free_bytes - self.place), (self.rows + self.sort) / free_bytes
            use = f"{max(math.ceil(max(shares) * self.num_ranks), self.num_ranks + 1)} ranks with as much"
        here = "here" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        return (
            f"building the graph takes {readable_bytes(self.to_allocate_bytes)} more {here}, "
            f"and {readable_bytes(free_bytes)} is free: use {use}, or fewer edges"
        )


def plan_build(sizes: Sizes, partition: Partition, limits: Limits, num_chunks: int) -> Plan:
    """Plan the build of a graph on the ranks of `partition`; the fullest one decides."""
    n, owned, position = sizes.num_vertices, partition.num_owned(0), partition.dtype.itemsize
    user, given, weight = vertex_dtype(n).itemsize, sizes.given_weight_bytes, sizes.weight_bytes
    degrees = degrees_bytes(n, sizes.directed)
    order = degrees + (order_bytes(n, partition, limits) if partition.cyclic else 0)
    tables = position * n + user * owned if partition.cyclic else 0
    # Offsets and cursors, and every arc.
    rows = 16 * owned + sizes.row_arcs * (position + weight)
    # An edge while loops are taken out, while it is translated, and while its arcs are placed.
    without_loops = 2 * (2 * user + given) + limits.mask_scratch_bytes
    edge = max(without_loops, 2 * user + 2 * position + given, 3 * position + 2 * weight) + 1
    if partition.num_ranks > 1:
        # Sorted by owner, sent, and received, beside the edge itself.
        edge = max(edge, 8 * position + 4 * weight + 9)
    # An arc while its row is sorted: key, order, sorted key, and where runs of parallel arcs start.
    arc = (33 if weight else 17) + limits.sort_scratch_bytes
    return Plan(
        partition.num_ranks,
        order=order,
        tables=tables,
        rows=rows,
        place=edge * -(-sizes.num_input_edges // num_chunks),
        sort=8 * owned + arc * batch_arcs(sizes.row_arcs, limits),
    )


def degrees_bytes(num_vertices: int, directed: bool) -> int:
    """Return what the degrees take that every rank counts before there is an order."""
    return 4 * num_vertices * (2 if directed else 1)


def order_bytes(num_vertices: int, partition: Partition, limits: Limits) -> int:
    """Return what finding the order by degree takes: both tables, and a run of user ids that is sorted."""
    tables = partition.dtype.itemsize * num_vertices + vertex_dtype(num_vertices).itemsize * partition.num_owned(0)
    return tables + ORDER_BYTES * min(order_run(num_vertices, limits), num_vertices)


def order_run(num_vertices: int, limits: Limits) -> int:
    """Return how many user ids to put in order at once."""
    return min(max(num_vertices // PARTS, LEAST_BATCH_ARCS), limits.chunk_edges)


def default_chunks(num_input_edges: int | None, limits: Limits, num_ranks: int, layout: str = "rows") -> int:
    """Return in how many chunks to read the input: a multiple of the ranks, and each chunk small."""
    parts = COMPACT_PARTS * num_ranks if layout == "compact" else PARTS
    edges = parts * LEAST_CHUNK_EDGES if num_input_edges is None else num_input_edges
    chunks = max(min(parts, edges // LEAST_CHUNK_EDGES), -(-edges // limits.chunk_edges), 1)
    return -(-chunks // num_ranks) * num_ranks


def batch_arcs(row_arcs: int, limits: Limits) -> int:
    """Return how many arcs to sort at once."""
    return min(row_arcs, max(row_arcs // PARTS, LEAST_BATCH_ARCS), limits.batch_arcs)


def bytes_of(dtype: np.dtype | None) -> int:
    """Return the width of a weight, 0 for none."""
    return 0 if dtype is None else dtype.itemsize


def state_bytes(weight_dtype: np.dtype | None, num_vertices: int, heaviest: float | int) -> int:
    """Return how wide the states of searches are, levels apart: as a float weight, or as the longest path."""
    if weight_dtype is not None and weight_dtype.kind == "f":
        return weight_dtype.itemsize
    return 4 if weight_dtype is None or num_vertices * int(heaviest) < np.iinfo(np.uint32).max else 8
