"""Search from many sources on one GPU, a block of threads for each.

    every block, for one source after another:
        near = the source; far = none
        while near or far:
            relax the arcs of near: targets lowered to at most the bound are the next near, others are appended to far
            near is empty: the bound rises to that of the nearest vertex in far, and far is split

The frontiers of a deep graph occupy a part of one multiprocessor: a block has barriers of its own, and as many searches
as the device holds blocks run side by side. Of a graph with wide frontiers one search after another, each on the
whole GPU, is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.per_block_kernels import NUM_QUEUES, search_each
from mgraph.algorithms.distance_matrix.searches import Searches, columns_of, states_of
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import DEEP_DEGREE, Shard
from mgraph.types import Array, unreached_of

# The width of a bucket, in mean weights; of hops one.
DELTA_BLOCK = 4.0
# Searches of one launch, at most.
MAX_AT_ONCE = 1024
# Arrays of a launch take at most this share of the free memory; those of one search, if they are larger.
ROOM_SHARE = 2
# Counts of queues have 32 bits.
MAX_VERTICES = 1 << 28


def search_by_blocks(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the distances from some sources after others: a row for each, a column for each target or vertex."""
    backend = shard.backend
    xp = backend.xp
    n = shard.num_owned
    rows = shard.rows
    vertex = shard.partition.dtype
    starts = states_of(shard, searches.sources)
    until = None if searches.targets is None else backend.to_device(states_of(shard, searches.targets))
    bounds = backend.to_device(np.array([bucket_width(shard, searches), searches.farthest], searches.dtype))
    room = backend.free_bytes() // ROOM_SHARE // _bytes_of_search(shard, searches)
    at_once = max(1, min(len(starts), MAX_AT_ONCE, room))
    queues = xp.empty(NUM_QUEUES * n * at_once, vertex)
    for first in range(0, len(starts), at_once):
        batch = backend.to_device(starts[first : first + at_once])
        dist = xp.empty(len(batch) * n, searches.dtype)
        search_each[backend](
            0, len(batch), rows.indptr, rows.targets, rows.weights if searches.weighted else None, batch,
            batch if until is None else until, 0 if until is None else len(until), n, bounds, dist, queues,
        )  # fmt: skip
        yield columns_of(dist.reshape(len(batch), n), until)
        trace.superstep(method="blocks", frontier=len(batch), arcs=len(batch) * shard.info.num_arcs)


def bucket_width(shard: Shard, searches: Searches) -> float | int:
    """Return the width of a bucket in the dtype of the distances."""
    if not searches.weighted:
        return 1
    delta = DELTA_BLOCK * shard.info.mean_weight
    if searches.dtype.kind == "f":
        return min(delta, float(np.finfo(searches.dtype).max))
    return min(max(1, round(delta)), int(unreached_of(searches.dtype)))


def _bytes_of_search(shard: Shard, searches: Searches) -> int:
    return (searches.dtype.itemsize + NUM_QUEUES * shard.partition.dtype.itemsize) * max(1, shard.num_owned)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of distances and queues of one search: as many run at once as there is room for."""
    return (sizes.state + NUM_QUEUES * sizes.vertex) * sizes.owned


VARIANT = Variant(
    "distance_matrix.per_block",
    when=f"on one GPU, a block of threads for each source, on graphs of at most {DEEP_DEGREE} arcs a vertex",
    applies=lambda conditions: (
        conditions.has_rows
        and conditions.has_persistent_kernels
        and conditions.num_ranks == 1
        and conditions.arcs_per_vertex <= DEEP_DEGREE
        and conditions.stride <= MAX_VERTICES
    ),
    bytes=_bytes,
    loop=search_by_blocks,
)
