"""Search from many sources by weights as one computation, near before far, on any number of ranks.

    a copy of the graph for each source, all with the same rows
    far = every source in its copy
    from here on as mgraph/algorithms/sssp/near_far.py, where a state is a pair: a source, and a vertex of its copy

One search of a deep graph has hundreds of supersteps, each with its launches, messages and reductions. All sources
together have hardly more: all distances begin at 0, so that the buckets of one suit all. Where the frontiers of one
search are wide, one search after another is as fast: its distances are in the cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from mgraph.algorithms.common.dtype_ladder import farthest, first_dtypes, is_whole, searched_bytes
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.distance_matrix.near_far_kernels import relax_pairs
from mgraph.algorithms.distance_matrix.searches import Searches, own_columns, own_targets, states_of, widened
from mgraph.algorithms.sssp.near_far import ArcsOfRows, NearFarSearch, default_delta, typical_weight
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.shard import DEEP_DEGREE, Shard
from mgraph.types import Array, none_of

# Sources of one computation, at most.
MAX_AT_ONCE = 64
# The free memory divided by what its arrays may take, unless those of one source take more.
ROOM_SHARE = 2


class ArcsOfPairs(ArcsOfRows):
    """The arcs between pairs of a source and a vertex."""

    def __init__(self, shard: Shard, num_sources: int) -> None:
        super().__init__(shard)
        self.copies = num_sources
        self.shape = shard.backend.to_device(np.array([num_sources, shard.partition.stride]))

    def relax(self, frontier: Array, offsets: Array, begins: Array, *lowered: Array) -> int:
        rows = self.shard.rows
        arcs = int(offsets[-1])
        relax_pairs[self.shard.backend](
            0, arcs, frontier, len(frontier), offsets, begins, rows.targets, rows.weights, self.shape, *lowered
        )
        return arcs


def search_pairs(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the distances from some sources after others: a row for each, a column for each own target or vertex."""
    num = len(searches.sources)
    num_batches = -(-num // _at_once(shard, comm, searches)) if num else 0
    for batch in range(num_batches):
        sources = searches.sources[num * batch // num_batches : num * (batch + 1) // num_batches]
        yield _search_batch(shard, comm, dataclasses.replace(searches, sources=sources), trace)


def _at_once(shard: Shard, comm: Communicator, searches: Searches) -> int:
    """Return how many sources are searched at once: as many as every rank has room for."""
    partition = shard.partition
    state = searches.dtype.itemsize
    room = shard.backend.free_bytes() // ROOM_SHARE // _bytes_of_source(partition, shard.num_owned, state, state)
    (room,) = comm.allreduce(np.array([room]), "min").tolist()
    # State indices of pairs have the dtype of those of vertices.
    return max(1, min(room, none_of(partition.dtype) // partition.num_states, MAX_AT_ONCE))


def _search_batch(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Array:
    """Return the rows of sources that are searched at once, again in a wider dtype where a narrow one is exceeded."""
    for dtype in first_dtypes(shard, searches.dtype, has_peer_buffers=False):
        limit = min(int(searches.farthest), farthest(dtype, shard.info.max_weight))
        search = _search(shard, comm, dataclasses.replace(searches, dtype=dtype, limit=limit), trace)
        if is_whole(shard, comm, Traversal(search.own_distances, None), searches.limit):
            return _rows_of(search, comm, searches)
        shard.overflowed_itemsize = dtype.itemsize
        del search  # its memory is needed again
    return _rows_of(_search(shard, comm, searches, trace), comm, searches)


def _rows_of(search: NearFarSearch, comm: Communicator, searches: Searches) -> Array:
    """Return the rows of a search in the dtype of the request."""
    shard = search.arcs.shard
    rows = search.dist.reshape(comm.size, len(searches.sources), -1)[comm.rank, :, : shard.num_owned]
    columns = own_columns(shard, comm.rank, searches)
    # A copy: rows are in use while the next ones are searched.
    return widened(rows.copy() if columns is None else rows[:, columns], searches.dtype)


def _search(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> NearFarSearch:
    """Search from all sources; where there are targets, until those of every source are settled."""
    stride = shard.partition.stride
    num_sources = len(searches.sources)
    states = states_of(shard, searches.sources).astype(np.int64)
    (own,) = np.nonzero(states // stride == comm.rank)
    first = comm.rank * num_sources
    starts = (first + own) * stride + states[own] % stride
    targets = None
    if searches.targets is not None:
        _, local = own_targets(shard.partition, comm.rank, searches.targets)
        targets = np.add.outer((first + np.arange(num_sources)) * stride, local).reshape(-1)
    search = NearFarSearch(
        ArcsOfPairs(shard, num_sources), comm, starts.astype(shard.partition.dtype), searches.dtype, searches.limit,
        targets, trace.checkpoints,
    )  # fmt: skip
    delta = default_delta(shard, searches.dtype, mean_weight=typical_weight(shard, comm))
    search.run(delta, trace)
    return search


def _bytes_of_source(partition: Partition, owned: int, searched: int, state: int) -> int:
    """Return the bytes of a source's distances, queues, bitmaps, offsets, and of its row with a copy of it."""
    vertex = partition.dtype.itemsize
    of_states = (searched + vertex) * partition.num_states + partition.num_states // 4
    return of_states + 3 * vertex * partition.stride + (16 + searched + state) * owned


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of one source: as many are searched at once as there is room for."""
    searched = searched_bytes(sizes, has_peer_buffers=False)
    return _bytes_of_source(sizes.partition, sizes.owned, searched, sizes.state)


VARIANT = Variant(
    "distance_matrix.near_far",
    when=f"by weights on several ranks without peer memory, {MAX_AT_ONCE} sources in one search, on graphs of at most "
    f"{DEEP_DEGREE} arcs a vertex",
    # Through peer memory a search is one launch, and its supersteps are cheap.
    applies=lambda conditions: (
        conditions.has_rows
        and not conditions.by_hops
        and conditions.num_ranks > 1
        and not conditions.has_peer_memory
        and conditions.arcs_per_vertex <= DEEP_DEGREE
    ),
    bytes=_bytes,
    loop=search_pairs,
)
