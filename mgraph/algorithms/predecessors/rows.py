"""Predecessors, found after the fixed point and never carried with the distance.

The predecessor of v is the first u, by position, with dist[u] < dist[v] and dist[u] + w == dist[v].
A vertex with none was reached over weight zero, or over a weight that rounding absorbed: it takes the
first such u that is one hop nearer, over those arcs, to a vertex that has one or to a source. So every
chain ends at a source, and the answer is the same for any number of ranks.

Where there are rows by weight, the long ones are looked through there: all arcs that are no longer than the
whole way, of which the smallest position counts. All others are looked through by position, up to the first, and so
are long ones of which many arcs are as light as that.

A source that hangs on a heavy arc makes every way long, though most arcs of it lead through a dense core. What lies
before that has few arcs, and offers itself along these; behind it an arc counts as light if it is no longer than the
way from where the core begins.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.predecessors.rows_kernels import (
    LONG_ROW,
    digest_distances,
    find_core,
    find_equal,
    find_nearer,
    find_nearer_by_weight,
    offer_early,
    take_offers,
)
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import GraphInfo, Shard, long_rows
from mgraph.shard.user_ids import gather_states
from mgraph.shard.weight_sorted_rows import class_scale
from mgraph.types import LEVEL, Array, none_of, unreached_of

# A mean degree below which a vertex looks up few distances (uni24 and grid4k on one H200: a third less time, and more).
DIGEST_DEGREE = 8
# The core begins at the nearest of so many vertices, those of highest degree where these come first; and there is room
# for one offer to so many arcs, on a rank for so many at most (roots of rmat28 have some thousands).
SAMPLE, OFFER_SHARE, MOST_OFFERS = 1 << 10, 1 << 10, 1 << 17
# With fewer arcs a rank, a graph is looked through as fast as the core is found (rmat22 and uni24 on one H200).
CORE_ARCS = 1 << 27


def find_predecessors(
    shard: Shard, comm: Communicator, sources: list[int], distances: Array, everywhere: Array | None = None
) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances` of owned vertices.

    Distances in the dtype of levels, which no sum of weights has, count hops: every arc has weight 1. `everywhere` are
    those of all states, where they are known. Where every arc leads farther, nobody waits to see that all were found.
    """
    run, partition, rows = shard.backend, shard.partition, shard.incoming
    weights = None if distances.dtype == LEVEL else rows.weights
    xp, base = run.xp, comm.rank * partition.stride
    dist = gather_states(shard, comm, distances) if everywhere is None else everywhere
    shape = (base, partition.stride, partition.multiplier)
    # First, so that it is under way while the host goes on.
    core, offers = _offer_early(shard, comm, dist, shape) if _may_be_light(shard, weights) else (None, None)
    parents = run.full(shard.num_owned, none_of(partition.dtype), partition.dtype)
    for position in set(sources):
        if partition.owner(position) == comm.rank:
            parents[partition.local(position)] = position
    counters = xp.zeros(1, np.int64)
    if offers is not None:
        # Of each rank a pair that counts them, and room for so many.
        most = len(offers) // comm.size // 2 - 1
        take_offers[run](0, most * comm.size, offers, most, comm.size, base, shard.num_owned, parents, core)
    _find_nearer(shard, weights, dist, shape, parents, core, counters)
    if not _may_be_as_far(shard.info, distances.dtype):
        return parents
    unexplained = comm.sum(int(counters[0]))[0]
    explained = None
    while unexplained:
        if explained is None:
            explained = (parents != none_of(partition.dtype)).astype(np.uint8)
        # A copy: with one rank the gathered array is `explained` itself, which this hop writes.
        hops = gather_states(shard, comm, explained.copy())
        counters[:] = 0
        find_equal[run](
            0,
            shard.num_owned,
            rows.indptr,
            rows.targets,
            weights,
            dist,
            hops,
            *shape,
            parents,
            explained,
            counters,
        )
        found = comm.sum(int(counters[0]))[0]
        assert found, "a distance that no arc explains"
        unexplained -= found
    return parents


def _may_be_light(shard: Shard, weights: Array | None) -> bool:
    """Return whether rows by weight, which are out-rows, are in-rows too: arcs lead both ways."""
    return weights is not None and not shard.info.directed


def _find_nearer(
    shard: Shard,
    weights: Array | None,
    dist: Array,
    shape: tuple[int, int, int],
    parents: Array,
    core: Array | None,
    counters: Array,
) -> None:
    """Find those that are nearer, among light arcs where there are rows by weight; count vertices with none."""
    run, rows, info = shard.backend, shard.incoming, shard.info
    # In degree order the longest rows come first; of a directed graph that is the order by both degrees.
    falls = info.order == "degree" and not info.directed
    # A rank that had no room for rows by weight looks at whole ones that have an offer: as if arcs were of one class.
    light, scale = (rows, 0.0) if shard.by_weight is None else (shard.by_weight, class_scale(info))
    if _may_be_light(shard, weights) and (core is not None or shard.by_weight is not None):
        find_nearer_by_weight[run](
            0, shard.num_owned, int(falls), light.indptr, light.targets, light.weights, scale, dist, core, *shape,
            parents,
        )  # fmt: skip
    digests = None
    if wants_digests(info, dist, run.cache_bytes):
        digests = run.xp.empty(len(dist), np.uint8)
        digest_distances[run](0, len(dist), dist, digests)
    find_nearer[run](
        0, shard.num_owned, rows.indptr, rows.targets, weights, long_rows(shard, LONG_ROW - 1), dist, digests, core,
        *shape, parents, counters,
    )  # fmt: skip


def _may_be_as_far(info: GraphInfo, dtype: np.dtype) -> bool:
    """Return whether an arc may lead no farther: over weight zero, or one that rounding absorbs."""
    return dtype != LEVEL and (dtype.kind == "f" or info.min_weight == 0)


def _offer_early(
    shard: Shard, comm: Communicator, dist: Array, shape: tuple[int, int, int]
) -> tuple[Array, Array] | tuple[None, None]:
    """Return where the core begins, and what all ranks offer from before it; None where nobody looks for it.

    The host waits for nothing: there is room for so many offers of every rank, and where there are more the core
    becomes 0 when they are taken.
    """
    run, rows, info = shard.backend, shard.rows, shard.info
    core = _find_core(shard, dist)
    if core is None:
        return None, None
    most = min(SAMPLE + info.num_arcs // OFFER_SHARE // comm.size, MOST_OFFERS)
    length = 2 * (most + 1)
    offers = run.xp.zeros(length * comm.size, shard.partition.dtype)
    own = offers[length * comm.rank :][:length]
    offer_early[run](0, shard.num_owned, rows.indptr, rows.targets, rows.weights, dist, core, *shape, most, own)
    return core, comm.allgather(own, offers)


def _find_core(shard: Shard, dist: Array) -> Array | None:
    """Return an array of a distance that few arcs begin before, the same on every rank; None where it is of no use.

    Rounding would blur it: floats have none.
    """
    run, partition, info = shard.backend, shard.partition, shard.info
    if dist.dtype.kind == "f" or info.num_arcs < CORE_ARCS * partition.num_ranks:
        return None
    size = min(SAMPLE, partition.num_positions)
    step = 1 if info.order == "degree" else partition.num_positions // size
    # Of two, as atomics of 16 bits take the pair.
    core = run.xp.full(2, unreached_of(dist.dtype), dist.dtype)[:1]
    find_core[run](0, size, step, dist, partition.stride, partition.multiplier, core)
    return core


def wants_digests(info: GraphInfo, dist: Array, cache_bytes: int) -> bool:
    """Return whether the last bytes of the distances are looked at first: the cache holds these, but not the distances.

    In degree order it holds those most looked up, and on meshes neighbours' stand together.
    """
    is_spread = info.order == "natural" and info.num_arcs >= DIGEST_DEGREE * info.num_vertices
    return is_spread and dist.dtype.kind != "f" and dist.nbytes > cache_bytes


def find_roots(shard: Shard, comm: Communicator, predecessors: Array) -> Array:
    """Return, as positions, the source at the end of every owned vertex's chain of predecessors.

    Pointer jumping: each round doubles the length of chain that is behind every vertex.
    """
    xp, partition = shard.backend.xp, shard.partition
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
    when="on rows, behind a search that finds distances alone",
    applies=lambda setting: setting.layout == "rows",
    needs=(IN_ROWS,),
    # Counted with the search: the memory pool keeps what that has freed.
    bytes=lambda sizes: 0,
    run=find_predecessors,
)
