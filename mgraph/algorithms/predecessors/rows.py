"""Find predecessors after the fixed point: they are never carried with the distance.

The predecessor of v is the first u, by position, with dist[u] < dist[v] and dist[u] + w == dist[v]. A vertex without
one was reached over weight zero, or over a weight that rounding absorbed: its predecessor is the first such u that is
one hop nearer, over those arcs, to a vertex that has one or to a source. So every chain ends at a source, and the
result is the same for any number of ranks. A round over all open vertices finds a hop; where one finds less than half
of them, one CPU rank finds all further hops along the arcs of what it has found (as_far_kernels.py).

In a long row with lightest arcs only those are scanned that are no heavier than the distance; the smallest position is
kept. If all of them are that light, further arcs of the row may be too: it is scanned by position up to the first hit,
as are short rows and those without lightest arcs.

A source that is attached by a heavy arc makes every path long, though most arcs of a path lie in a dense region.
Vertices below the dense-region threshold have few arcs, and push their candidates along these; above it an arc counts
as light if it is no longer than the way from the threshold.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.predecessors.as_far_kernels import explain_from
from mgraph.algorithms.predecessors.rows_kernels import (
    BLOCK_ROW,
    LANE_ROW,
    digest_distances,
    find_before_candidates,
    find_core,
    find_equal,
    find_nearer,
    find_nearer_by_weight,
    offer_early,
    take_offers,
)
from mgraph.algorithms.variant import Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.shard.lightest_arcs import class_scale
from mgraph.shard.shard import GraphInfo, Shard, long_rows
from mgraph.shard.user_ids import gather_states
from mgraph.types import LEVEL, Array, none_of, unreached_of

# A mean degree below which a vertex looks up few distances (uni24 and grid4k on one H200: a third less time, and more).
LOW_BYTES_DEGREE = 8
# The threshold is the least distance of this many vertices, those of highest degree where these come first. Capacity is
# one candidate for each CANDIDATE_SHARE arcs, and at most MAX_CANDIDATES on a rank (roots of rmat28 have some
# thousands).
SAMPLE = 1 << 10
CANDIDATE_SHARE = 1 << 10
MAX_CANDIDATES = 1 << 17
# With fewer arcs per rank, a graph is searched as fast as the threshold is found (rmat22 and uni24 on one H200).
THRESHOLD_ARCS = 1 << 27


def find_predecessors(
    shard: Shard, comm: Communicator, sources: list[int], distances: Array, all_distances: Array | None = None
) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances`.

    Distances are those of owned vertices. In the dtype of levels, which no sum of weights has, they count hops: every
    arc has weight 1. `all_distances` are those of all states, where they are known. Where every arc leads farther, the
    host does not wait to check that all were found.
    """
    backend = shard.backend
    partition = shard.partition
    rows = shard.incoming
    weights = None if distances.dtype == LEVEL else rows.weights
    xp = backend.xp
    base = comm.rank * partition.stride
    dist = gather_states(shard, comm, distances) if all_distances is None else all_distances
    shape = (base, partition.stride, partition.multiplier)
    # First, so that it runs while the host continues.
    threshold, candidates = (
        _find_candidates(shard, comm, dist, shape) if _may_be_light(shard, weights) else (None, None)
    )
    parents = backend.full(shard.num_owned, none_of(partition.dtype), partition.dtype)
    for position in set(sources):
        if partition.owner(position) == comm.rank:
            parents[partition.local(position)] = position
    counters = xp.zeros(1, np.int64)
    if candidates is not None:
        # For each rank a pair that counts them, and its capacity.
        capacity = len(candidates) // comm.size // 2 - 1
        take_offers[backend](
            0, capacity * comm.size, candidates, capacity, comm.size, base, shard.num_owned, parents, threshold
        )
    _find_nearer(shard, weights, dist, shape, parents, threshold, counters)
    if not _may_be_as_far(shard.info, distances.dtype):
        return parents
    _find_as_far(shard, comm, weights, dist, shape, parents, counters)
    return parents


def _find_as_far(
    shard: Shard,
    comm: Communicator,
    weights: Array | None,
    dist: Array,
    shape: tuple[int, int, int],
    parents: Array,
    counters: Array,
) -> None:
    """Find predecessors that are as far, hop by hop, until all vertices that were counted have one."""
    backend = shard.backend
    none = none_of(shard.partition.dtype)
    rows = shard.incoming
    unexplained = comm.sum(int(counters[0]))[0]
    explained = None
    while unexplained:
        if explained is None:
            explained = (parents != none).astype(np.uint8)
        # A copy: with one rank the gathered array is `explained` itself, which this hop writes.
        hops = gather_states(shard, comm, explained.copy())
        counters[:] = 0
        find_equal[backend](
            0, shard.num_owned, rows.indptr, rows.targets, weights, dist, hops, *shape, parents, explained, counters
        )
        found = comm.sum(int(counters[0]))[0]
        assert found, "a distance that no arc explains"
        unexplained -= found
        # Else rounds are few: each at least halves what is open, and scans a row only up to the first hit.
        if unexplained > found and comm.size == 1 and isinstance(backend, CpuBackend):
            _explain_from(shard, (explained > hops).nonzero()[0], dist, parents)
            return


def _explain_from(shard: Shard, last: np.ndarray, dist: np.ndarray, parents: np.ndarray) -> None:
    """Find all further hops from the vertices of the last one, by one core."""
    rows = shard.rows
    queue = np.empty(len(dist), parents.dtype)
    queue[: len(last)] = last
    hops = np.zeros(len(dist), np.int32)
    hops[last] = 1
    explain_from(queue, len(last), hops, rows.indptr, rows.targets, rows.weights, dist, parents)


def _may_be_light(shard: Shard, weights: Array | None) -> bool:
    """Return whether lightest arcs, which are those of out-rows, are those of in-rows too: arcs lead both ways."""
    return weights is not None and not shard.info.directed


def _find_nearer(
    shard: Shard,
    weights: Array | None,
    dist: Array,
    shape: tuple[int, int, int],
    parents: Array,
    threshold: Array | None,
    counters: Array,
) -> None:
    """Find nearer predecessors, of long rows among light arcs; count vertices without one."""
    backend = shard.backend
    rows = shard.incoming
    info = shard.info
    # In degree order the longest rows come first; of a directed graph that is the order by both degrees.
    falls = info.order == "degree" and not info.directed
    lightest = shard.lightest_arcs
    scale = class_scale(info)
    # First: it tests every long row that has a parent, which now are those with a candidate, and sources.
    if threshold is not None:
        lightest_weights = None if lightest is None else lightest.weights
        find_before_candidates[backend](
            0, long_rows(shard, LANE_ROW), rows.indptr, rows.targets, weights, lightest_weights, scale, dist, threshold,
            *shape, parents,
        )  # fmt: skip
    if _may_be_light(shard, weights) and lightest is not None:
        find_nearer_by_weight[backend](
            0, shard.num_owned, int(falls), rows.indptr, lightest.targets, lightest.weights, scale, dist, threshold,
            *shape, parents,
        )  # fmt: skip
    low_bytes = None
    if wants_low_bytes(info, dist, backend.cache_bytes):
        low_bytes = backend.xp.empty(len(dist), np.uint8)
        digest_distances[backend](0, len(dist), dist, low_bytes)
    find_nearer[backend](
        0, shard.num_owned, rows.indptr, rows.targets, weights, long_rows(shard, BLOCK_ROW - 1), dist, low_bytes,
        threshold, *shape, parents, counters,
    )  # fmt: skip


def _may_be_as_far(info: GraphInfo, dtype: np.dtype) -> bool:
    """Return whether an arc may lead no farther: over weight zero, or one that rounding absorbs."""
    return dtype != LEVEL and (dtype.kind == "f" or info.min_weight == 0)


def _find_candidates(
    shard: Shard, comm: Communicator, dist: Array, shape: tuple[int, int, int]
) -> tuple[Array, Array] | tuple[None, None]:
    """Return the dense-region threshold and all ranks' candidates from below it; None without one.

    The host does not wait: each rank has a fixed capacity, and where candidates exceed it the threshold becomes 0 when
    they are merged.
    """
    backend = shard.backend
    rows = shard.rows
    info = shard.info
    threshold = _find_threshold(shard, dist)
    if threshold is None:
        return None, None
    capacity = min(SAMPLE + info.num_arcs // CANDIDATE_SHARE // comm.size, MAX_CANDIDATES)
    length = 2 * (capacity + 1)
    candidates = backend.xp.zeros(length * comm.size, shard.partition.dtype)
    own = candidates[length * comm.rank :][:length]
    offer_early[backend](
        0, shard.num_owned, rows.indptr, rows.targets, rows.weights, dist, threshold, *shape, capacity, own
    )
    return threshold, comm.allgather(own, candidates)


def _find_threshold(shard: Shard, dist: Array) -> Array | None:
    """Return an array of the dense-region threshold, the same on every rank; None where it has no use.

    Rounding would blur it: floats have none.
    """
    backend = shard.backend
    partition = shard.partition
    info = shard.info
    if dist.dtype.kind == "f" or info.num_arcs < THRESHOLD_ARCS * partition.num_ranks:
        return None
    size = min(SAMPLE, partition.num_positions)
    step = 1 if info.order == "degree" else partition.num_positions // size
    # An array of two, as atomics of 16 bits need the pair.
    threshold = backend.xp.full(2, unreached_of(dist.dtype), dist.dtype)[:1]
    find_core[backend](0, size, step, dist, partition.stride, partition.multiplier, threshold)
    return threshold


def wants_low_bytes(info: GraphInfo, dist: Array, cache_bytes: int) -> bool:
    """Return whether low bytes are looked up first: they fit the cache, but the distances do not.

    In degree order the cache holds the distances looked up most, and on meshes those of neighbors are adjacent.
    """
    is_spread = info.order == "natural" and info.num_arcs >= LOW_BYTES_DEGREE * info.num_vertices
    return is_spread and dist.dtype.kind != "f" and dist.nbytes > cache_bytes


def find_roots(shard: Shard, comm: Communicator, predecessors: Array) -> Array:
    """Return, as positions, the source at the end of every owned vertex's predecessor chain.

    Pointer jumping: each round doubles the length of chain that is known of every vertex.
    """
    xp = shard.backend.xp
    partition = shard.partition
    none = none_of(partition.dtype)
    above = gather_states(shard, comm, predecessors)
    roots = predecessors.copy()
    while True:
        reached = xp.flatnonzero(roots != none)
        further = above[partition.state(roots[reached])]
        if not comm.any(bool((further != roots[reached]).any())):
            return roots
        roots[reached] = further
        above = gather_states(shard, comm, roots)


VARIANT = Variant(
    "predecessors.rows",
    when="on rows, after a search that finds distances only",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    # Counted with the search: the memory pool keeps what that has freed.
    bytes=lambda sizes: 0,
    loop=find_predecessors,
)
