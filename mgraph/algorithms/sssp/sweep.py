"""Find shortest paths by sweeps over edge blocks (Kolganov; Bellman and Ford), on any number of ranks.

    distance of the sources = 0, of all others = infinity
    repeat:
        sweep: for every edge (u, v, w) this rank holds, read once:
            distance[v] = min(distance[v], distance[u] + w)
            distance[u] = min(distance[u], distance[v] + w)     if the edge goes both ways
        distance = the minimum over the ranks
    until no rank improved a distance

Every rank holds an equal share of the edges, sorted in segments, and all distances. One exchange for each sweep; in the
layout host the blocks on the device are first swept until they settle, a few times at most. At the end every rank has
the distances of all vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.sweep import sweep_bytes
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.swept_states import SweptStates
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.predecessors.sweep import ParentSweeps
from mgraph.algorithms.sssp.sweep_kernels import sweep_distances
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import unreached_of

# In the layout host a sweep after one that improved less than one distance in LAST_SHARE is perhaps the last; if at
# least WHOLE_SHARE of the host parts are in reach, it reads all, and finds parents too.
LAST_SHARE = 64
WHOLE_SHARE = 0.75


def sssp_sweep(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from positions `sources`; predecessors too if the last sweep reads all, else after."""
    backend = shard.backend
    partition = shard.partition
    blocks = require_blocks(shard, comm, dtype)
    top = unreached_of(dtype)
    dist = backend.full(blocks.shape.padded(partition.num_states), top, dtype)
    own = slice(comm.rank * partition.stride, comm.rank * partition.stride + shard.num_owned)
    state = trace.checkpoints.found
    reduced = dist[: partition.num_states]
    if state is None:
        states = np.array([partition.state(p) for p in set(sources)], partition.dtype)
        dist[backend.to_device(states)] = 0
    else:
        dist[own] = state.values
        comm.allreduce(reduced, "min")
    limit = backend.to_device(np.array([top if cutoff is None else cutoff], dtype))
    counters = backend.xp.zeros(1, np.int64)
    both_ways = 0 if shard.info.directed else 1
    swept = SweptStates(backend, blocks, dist, both_ways, max(shard.info.min_weight, 0), counters)
    parents = None
    num_whole = 0
    improved = max(partition.num_positions, 1)
    while improved:
        counters[:] = 0
        # Perhaps the last sweep: then no distance changes while it finds parents.
        finds_parents = shard.info.layout == "host" and improved * LAST_SHARE < partition.num_positions
        parents = None  # before others are allocated
        if finds_parents:
            parents = ParentSweeps(shard, comm, sources, reduced)
        for part in swept.sweep(WHOLE_SHARE if finds_parents else 1.0):
            sweep_distances[backend](
                0, part.num_units, *part.edges, part.weights, part.shape.segment_bits, both_ways, limit,
                swept.before, dist, counters,
            )  # fmt: skip
            if parents is not None and swept.is_whole:
                parents.lower_to_nearer(part)
        improved, is_due, num_whole = comm.sum(int(counters[0]), trace.checkpoints.is_due(), swept.is_whole)
        if improved:
            comm.allreduce(reduced, "min")
        trace.superstep(
            method="sweep",
            frontier=improved,
            arcs=swept.counts["edges"] << both_ways,
            reduced_bytes=reduced.nbytes if improved else 0,
            **swept.counts,
        )
        if improved and is_due:
            # Any arc may still lower a distance.
            trace.checkpoints.keep(KeptState(dist[own], 0))
    if parents is None or num_whole < comm.size:
        return Traversal(dist[own], None)
    return Traversal(dist[own], parents.finish())


VARIANT = Variant(
    "sssp.sweep",
    when="on any ranks, if requested or the layout is compact or host",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: sweep_bytes(sizes, sizes.state, sizes.state),
    loop=sssp_sweep,
    keeps_checkpoints=True,
)
