"""Predecessors, found after the fixed point and never carried with the distance.

The predecessor of v is the first u, by position, with dist[u] < dist[v] and dist[u] + w == dist[v].
A vertex with none was reached over weight zero, or over a weight that rounding absorbed: it takes the
first such u that is one hop nearer, over those arcs, to a vertex that has one or to a source. So every
chain ends at a source, and the answer is the same for any number of ranks.
"""

from __future__ import annotations

import numpy as np

from mgraph.build.by_weight import class_scale
from mgraph.comm.base import Communicator
from mgraph.kernels.predecessors import find_equal, find_nearer, find_nearer_by_weight
from mgraph.shard import Shard
from mgraph.translate import gather_states
from mgraph.types import LEVEL, Array, none_of


def find_predecessors(shard: Shard, comm: Communicator, sources: list[int], distances: Array) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances` of owned vertices.

    Distances in the dtype of levels, which no sum of weights has, count hops: every arc has weight 1.
    """
    run, partition, rows = shard.backend, shard.partition, shard.incoming
    weights = None if distances.dtype == LEVEL else rows.weights
    xp, base = run.xp, comm.rank * partition.stride
    dist = gather_states(shard, comm, distances)
    parents = xp.full(shard.num_owned, none_of(partition.dtype), partition.dtype)
    for position in set(sources):
        if partition.owner(position) == comm.rank:
            parents[partition.local(position)] = position
    shape = (base, partition.stride, partition.multiplier)
    counters = xp.zeros(1, np.int64)
    # Rows by weight are out-rows: they are in-rows too where arcs lead both ways.
    if shard.by_weight is not None and weights is not None and not shard.info.directed:
        light = shard.by_weight
        find_nearer_by_weight[run](
            0, shard.num_owned, light.indptr, light.targets, light.weights, class_scale(shard.info), dist, parents
        )
    find_nearer[run](0, shard.num_owned, rows.indptr, rows.targets, weights, dist, *shape, parents, counters)
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
