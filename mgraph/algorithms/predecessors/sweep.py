"""Find predecessors without rows: those of rows.py, by sweeps over the blocks.

    parent = none
    sweep: over every edge (u, v, w) with dist[u] < dist[v] and dist[u] + w == dist[v], u is a candidate of v
    parent = the minimum over the ranks
    while a reached vertex has no parent:
        sweep: over every edge with dist[u] == dist[v] == dist[u] + w, u is a candidate of v if u was explained before
        and v was not
        parent = the minimum over the ranks

Parents are positions, of which the smallest is kept. Every rank holds the distances and the parents of all vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.predecessors.sweep_kernels import sweep_equal, sweep_nearer
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states
from mgraph.types import LEVEL, Array, none_of, unreached_of


def find_predecessors_by_sweep(shard: Shard, comm: Communicator, sources: list[int], distances: Array) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances`.

    Distances are those of owned vertices. In the dtype of levels, which no sum of weights has, they count hops: every
    edge has weight 1.
    """
    backend = shard.backend
    partition = shard.partition
    blocks = require_blocks(shard, comm, distances.dtype)
    is_weighted = distances.dtype != LEVEL
    none = none_of(partition.dtype)
    parents = backend.full(partition.num_states, none, partition.dtype)
    positions = np.array(sorted(set(sources)), partition.dtype)
    parents[backend.to_device(partition.state(positions).astype(partition.dtype))] = backend.to_device(positions)
    both_ways = 0 if shard.info.directed else 1
    shape = backend.to_device(
        np.array([blocks.shape.segment_bits, both_ways, partition.stride, partition.multiplier], np.int64)
    )
    own = slice(comm.rank * partition.stride, comm.rank * partition.stride + shard.num_owned)
    # The tails of slices have no vertices, and no edge leads there.
    dist = gather_states(shard, comm, distances)
    for part in blocks.on_device():
        weights = part.weights if is_weighted else None
        sweep_nearer[backend](0, part.num_units, *part.edges, weights, shape, dist, parents)
    comm.allreduce(parents, "min")
    is_reached = distances != unreached_of(distances.dtype)
    unexplained = comm.sum(int((is_reached & (parents[own] == none)).sum()))[0]
    while unexplained:
        hops = (parents != none).astype(np.uint8)
        for part in blocks.on_device():
            weights = part.weights if is_weighted else None
            sweep_equal[backend](0, part.num_units, *part.edges, weights, shape, dist, hops, parents)
        comm.allreduce(parents, "min")
        left = comm.sum(int((is_reached & (parents[own] == none)).sum()))[0]
        assert left < unexplained, "a distance that no edge explains"
        unexplained = left
    return parents[own] if comm.size == 1 else parents[own].copy()


VARIANT = Variant(
    "predecessors.sweep",
    when="in the layouts compact and host, after every search",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    # Counted with the search: the memory pool keeps what that has freed.
    bytes=lambda sizes: 0,
    loop=lambda shard, comm, sources, distances, all_distances: find_predecessors_by_sweep(
        shard, comm, sources, distances
    ),
)
