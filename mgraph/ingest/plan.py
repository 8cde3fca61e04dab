"""Plan the memory of a build in rows, from sizes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Limits
from mgraph.formatting import readable_bytes
from mgraph.partition import Partition
from mgraph.shard.batches import MIN_BATCH_ARCS, PARTS, batch_arcs, bucket_batch, range_batch
from mgraph.shard.bucketed_rows import RANGE_EDGE_BYTES, RANGE_EDGES, TAG
from mgraph.types import vertex_dtype

# A compact or split build reads at least this many chunks for each rank: its temporary memory may take 15 % of the
# result.
COMPACT_PARTS = 64
# Temporary bytes for each user id of a run that is sorted by degree: keys, indices, positions and their inputs.
ORDER_BYTES = 64
# Smaller chunks would save nothing.
MIN_CHUNK_EDGES = 1 << 16


@dataclass(frozen=True)
class Sizes:
    """Sizes that decide the memory of a graph.

    Before the input is counted they are expected values.
    """

    num_vertices: int
    num_input_edges: int
    row_arcs: int  # on the fullest rank, parallel ones included
    directed: bool
    input_weight_bytes: int  # of a weight in the input
    weight_bytes: int  # of a weight in the rows


@dataclass(frozen=True)
class Plan:
    """Bytes on the fullest rank, by purpose."""

    num_ranks: int
    order: int  # to compute the vertex order; freed before the rest is allocated
    tables: int  # between user ids and positions
    rows: int
    place: int  # temporary, while arcs are placed in rows
    sort: int  # temporary, while rows are sorted
    bucketed: bool = False  # whether arcs are put into row buckets first

    @property
    def to_allocate_bytes(self) -> int:
        """The bytes still to be allocated once the vertex order is computed."""
        return self.rows + max(self.place, self.sort)

    @property
    def peak_bytes(self) -> int:
        """The build's high-water mark."""
        return max(self.order, self.tables + self.to_allocate_bytes)

    def refusal(self, free_bytes: int) -> str:
        """Return the error text: bytes needed, bytes free, and what would fit."""
        # With more ranks each stores and sorts fewer rows, but its chunks stay as large.
        use = "ranks with more memory"
        if free_bytes > self.place:
            shares = self.rows / (free_bytes - self.place), (self.rows + self.sort) / free_bytes
            use = f"{max(math.ceil(max(shares) * self.num_ranks), self.num_ranks + 1)} ranks with as much"
        here = "here" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        return (
            f"building the graph takes {readable_bytes(self.to_allocate_bytes)} more {here}, "
            f"and {readable_bytes(free_bytes)} is free: use {use}, or fewer edges"
        )


def plan_build(
    sizes: Sizes,
    partition: Partition,
    limits: Limits,
    num_chunks: int,
    bucketed: bool = False,
    in_ranges: bool = False,
) -> Plan:
    """Plan the build of a graph in rows on the ranks of `partition`, with row buckets or without.

    Rows that are built in ranges need memory to drop the arcs of other rows.
    """
    n = sizes.num_vertices
    owned = partition.num_owned(0)
    position = partition.dtype.itemsize
    user = vertex_dtype(n).itemsize
    given = sizes.input_weight_bytes
    weight = sizes.weight_bytes
    degrees = degrees_bytes(n, sizes.directed)
    order = degrees + (order_bytes(n, partition, limits) if partition.cyclic else 0)
    tables = position * n + user * owned if partition.cyclic else 0
    # Offsets, and every arc.
    rows = 8 * owned + sizes.row_arcs * (position + weight)
    # Bytes of an input edge while self-loops are dropped, while it is translated, and while its arcs are placed.
    without_loops = 2 * (2 * user + given) + limits.mask_scratch_bytes
    edge = max(without_loops, 2 * user + 2 * position + given, 3 * position + 2 * weight) + 1
    if partition.num_ranks > 1:
        # With several ranks: bucketed by owner, sent, and received, in addition to the edge itself.
        edge = max(edge, 8 * position + 4 * weight + 9)
    # Bytes of an arc while its row is sorted: key, permutation, sorted key, and starts of runs of parallel arcs.
    arc = (33 if weight else 17) + limits.sort_scratch_bytes
    chunk = -(-sizes.num_input_edges // num_chunks)
    place = edge * chunk
    batch = batch_arcs(sizes.row_arcs, limits)
    # Cursors, and later the lengths of rows.
    beside = 8 * owned
    if in_ranges:
        place += (2 * position + weight + 1 + limits.mask_scratch_bytes) * chunk
        batch = range_batch(sizes.row_arcs, limits)
    if bucketed:
        # Threads of a single rank share a chunk, and translate its edges a range at a time.
        if partition.num_ranks == 1:
            place = (2 * user + given + weight) * chunk + RANGE_EDGE_BYTES * min(chunk, RANGE_EDGES)
        # A key, and for a quarter of them, in the buckets that threads sort, a copy.
        arc = 10 + weight
        batch = bucket_batch(sizes.row_arcs)
        beside = TAG.itemsize * sizes.row_arcs
    return Plan(
        partition.num_ranks,
        order=order,
        tables=tables,
        rows=rows,
        place=beside + place,
        sort=beside + arc * batch,
        bucketed=bucketed,
    )


def degrees_bytes(num_vertices: int, directed: bool) -> int:
    """Return the bytes of the degrees of all vertices, which every rank counts before it computes the order."""
    return 4 * num_vertices * (2 if directed else 1)


def order_bytes(num_vertices: int, partition: Partition, limits: Limits) -> int:
    """Return the bytes to compute the degree order: both tables, and one run of user ids that is sorted."""
    tables = partition.dtype.itemsize * num_vertices + vertex_dtype(num_vertices).itemsize * partition.num_owned(0)
    return tables + ORDER_BYTES * min(order_run(num_vertices, limits), num_vertices)


def order_run(num_vertices: int, limits: Limits) -> int:
    """Return how many user ids are sorted by degree at once."""
    return min(max(num_vertices // PARTS, MIN_BATCH_ARCS), limits.chunk_edges)


def default_chunks(num_input_edges: int | None, limits: Limits, num_ranks: int, layout: str = "rows") -> int:
    """Return the number of input chunks: a multiple of the ranks, with chunks small compared with the rows."""
    parts = PARTS if layout in ("rows", "auto") else COMPACT_PARTS * num_ranks
    edges = parts * MIN_CHUNK_EDGES if num_input_edges is None else num_input_edges
    chunks = max(min(parts, edges // MIN_CHUNK_EDGES), -(-edges // limits.chunk_edges), 1)
    return -(-chunks // num_ranks) * num_ranks


def bytes_of(dtype: np.dtype | None) -> int:
    """Return the bytes of a weight, 0 for none."""
    return 0 if dtype is None else dtype.itemsize


def state_bytes(weight_dtype: np.dtype | None, num_vertices: int, heaviest: float | int) -> int:
    """Return the bytes of a search state other than levels: as a float weight, or enough for the longest path."""
    if weight_dtype is not None and weight_dtype.kind == "f":
        return weight_dtype.itemsize
    return 4 if weight_dtype is None or num_vertices * int(heaviest) < np.iinfo(np.uint32).max else 8
