"""Plan the memory of the compact layout, and of blocks in addition to rows, from sizes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mgraph.backends.base import Limits
from mgraph.formatting import readable_bytes
from mgraph.ingest.keys import KeyLayout
from mgraph.ingest.plan import COMPACT_PARTS, Sizes, degrees_bytes, order_bytes
from mgraph.ingest.ranked import ranked_bytes
from mgraph.partition import Partition
from mgraph.shard.batches import MIN_BATCH_ARCS
from mgraph.types import vertex_dtype

# The temporary memory of a build may take 15 % of the graph and the state of a search; less is planned, since parallel
# edges make the graph smaller than planned.
SLACK = 0.13
MIN_BUFFER_KEYS = 1 << 16
MIN_BUFFER_SHARE = 32


@dataclass(frozen=True)
class CompactPlan:
    """Bytes on the fullest rank, by purpose."""

    num_ranks: int
    order: int  # to compute the vertex order; freed before the rest is allocated
    tables: int  # between user ids and positions, while edges are translated
    own_tables: int  # the part of them that the shard keeps
    words: int  # with weights
    headers: int  # of tiles and units
    buffer_keys: int  # capacity in keys of the buffer in addition to the words
    batch_keys: int  # keys sorted at once
    buffer: int
    place: int  # temporary, while keys are placed in buckets
    sort: int  # temporary, while keys are sorted
    degrees: int  # of owned vertices
    count: int  # temporary, while degrees are counted, after tables and buffer are freed

    @property
    def shard_bytes(self) -> int:
        """The bytes of the finished shard."""
        return self.own_tables + self.words + self.headers + self.degrees

    @property
    def to_allocate_bytes(self) -> int:
        """The bytes still to be allocated once the vertex order is computed."""
        build = self.buffer + max(self.place, self.sort)
        return self.words + self.headers + max(build, self.count - (self.tables - self.own_tables))

    @property
    def peak_bytes(self) -> int:
        """The build's high-water mark."""
        return max(self.order, self.tables + self.to_allocate_bytes)

    def refusal(self, free_bytes: int) -> str:
        """Return the error text: bytes needed, bytes free, and what would fit."""
        more = max(math.ceil(self.to_allocate_bytes / max(free_bytes, 1) * self.num_ranks), self.num_ranks + 1)
        here = "here" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        return (
            f"building the compact graph takes {readable_bytes(self.to_allocate_bytes)} more {here}, "
            f"and {readable_bytes(free_bytes)} is free: use {more} ranks with as much, or fewer edges"
        )


def plan_compact(
    sizes: Sizes, partition: Partition, layout: KeyLayout, limits: Limits, num_chunks: int, state_bytes: int
) -> CompactPlan:
    """Plan the compact layout.

    `sizes.row_arcs` is the number of edges of the fullest rank, with parallel ones.
    """
    n = sizes.num_vertices
    owned = partition.num_owned(0)
    position = partition.dtype.itemsize
    user = vertex_dtype(n).itemsize
    given = sizes.input_weight_bytes
    weight = sizes.weight_bytes
    edges = sizes.row_arcs + (sizes.row_arcs & 1)
    tables = (ranked_bytes(n, partition) or position * n) + user * owned if partition.cyclic else 0
    own_tables = position * -(-n // partition.num_ranks) + user * owned if partition.cyclic else 0
    words = edges * (4 + weight)
    tiles = min(layout.num_windows * layout.num_tiles // (1 if sizes.directed else 2), edges)
    headers = 16 * tiles
    # Bytes of an input edge: as read, with both ends oriented, and its key; or bucketed by owner, sent and received.
    edge = 2 * user + given + 2 * position + 8 + (weight if weight != given else 0)
    if partition.num_ranks > 1:
        edge = max(edge, 8 * position + 4 * weight + 17)
    batch = min(edges, max(edges // COMPACT_PARTS, MIN_BATCH_ARCS), limits.batch_arcs)
    buckets = 16 * layout.num_buckets
    place = buckets + edge * -(-sizes.num_input_edges // num_chunks)
    sort = buckets + sort_bytes(weight, limits) * batch
    degrees = 4 * owned
    count = 4 * partition.num_states + (degrees if partition.num_ranks > 1 else 0)
    result = own_tables + words + headers + degrees
    slack = SLACK * (result + 2 * state_bytes * partition.num_states)
    beside = tables - own_tables - degrees + max(place, sort)
    # Every pass halves the remaining edges: only a buffer of some size ends this.
    least = max(edges // MIN_BUFFER_SHARE, MIN_BUFFER_KEYS)
    buffer_keys = min(max(int((slack - beside) // (8 + weight)), least), edges)
    return CompactPlan(
        partition.num_ranks,
        order=degrees_bytes(n, sizes.directed) + (order_bytes(n, partition, limits) if partition.cyclic else 0),
        tables=tables,
        own_tables=own_tables,
        words=words,
        headers=headers,
        buffer_keys=buffer_keys,
        batch_keys=batch,
        buffer=(8 + weight) * buffer_keys,
        place=place,
        sort=sort,
        degrees=degrees,
        count=count,
    )


def sort_bytes(weight: int, limits: Limits) -> int:
    """Return the bytes of a key while it is sorted: key, permutation, sorted key, starts of runs of equal keys."""
    return (33 if weight else 17) + limits.sort_scratch_bytes
