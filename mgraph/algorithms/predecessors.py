"""Predecessors, found after the fixed point and never carried with the distance.

The predecessor of v is the first u, by position, with dist[u] < dist[v] and dist[u] + w == dist[v].
A vertex with none was reached over weight zero, or over a weight that rounding absorbed: it takes the
first such u that is one hop nearer, over those arcs, to a vertex that has one or to a source. So every
chain ends at a source, and the answer is the same for any number of ranks.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.kernels.predecessors import find_equal, find_nearer
from mgraph.shard import Shard
from mgraph.types import Array, none_of


def find_predecessors(shard: Shard, comm: Communicator, sources: list[int], distances: Array) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances` of owned vertices."""
    run, partition, rows = shard.backend, shard.partition, shard.incoming
    xp, base = run.xp, comm.rank * partition.stride
    dist = _replicate(shard, comm, distances)
    parents = xp.full(shard.num_owned, none_of(partition.dtype), partition.dtype)
    for position in set(sources):
        if partition.owner(position) == comm.rank:
            parents[partition.local(position)] = position
    shape = (base, partition.stride, partition.multiplier)
    counters = xp.zeros(1, np.int64)
    find_nearer[run](0, shard.num_owned, rows.indptr, rows.targets, rows.weights, dist, *shape, parents, counters)
    unexplained = comm.sum(int(counters[0]))[0]
    explained = None
    while unexplained:
        if explained is None:
            explained = (parents != none_of(partition.dtype)).astype(np.uint8)
        hops = _replicate(shard, comm, explained)
        counters[:] = 0
        find_equal[run](
            0, shard.num_owned, rows.indptr, rows.targets, rows.weights, dist, hops, *shape, parents, explained, counters
        )
        found = comm.sum(int(counters[0]))[0]
        assert found, "a distance that no arc explains"
        unexplained -= found
    return parents


def _replicate(shard: Shard, comm: Communicator, owned: Array) -> Array:
    """Gather every rank's owned values into one array by state index."""
    if comm.size == 1:
        return owned
    xp, stride = shard.backend.xp, shard.partition.stride
    part = xp.zeros(stride, owned.dtype)
    part[: len(owned)] = owned
    return comm.allgather(part, xp.empty(shard.partition.num_states, owned.dtype))
