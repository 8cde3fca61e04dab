"""Find shortest paths by sweeps over edge blocks (Kolganov; Bellman and Ford), on any number of ranks.

    distance of the sources = 0, of all others = infinity
    repeat:
        sweep: for every edge (u, v, w) this rank holds, read once:
            distance[v] = min(distance[v], distance[u] + w)
            distance[u] = min(distance[u], distance[v] + w)     if the edge goes both ways
        distance = the minimum over the ranks
    until no rank improved a distance

Every rank holds an equal share of the edges, sorted in segments, and all distances. One exchange for each sweep. At the
end every rank has the distances of all vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.sssp.sweep_kernels import sweep_distances
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import unreached_of


def sssp_sweep(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from positions `sources`, without predecessors."""
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
    before = None
    improved = max(partition.num_positions, 1)
    while improved:
        counters[:] = 0
        before = backend.snapshot(dist, before)
        for part in blocks.on_device():
            sweep_distances[backend](
                0, part.num_units, *part.edges, part.weights, part.shape.segment_bits, both_ways, limit, before, dist,
                counters,
            )  # fmt: skip
        improved, is_due = comm.sum(int(counters[0]), trace.checkpoints.is_due())
        if improved:
            comm.allreduce(reduced, "min")
        trace.superstep(
            method="sweep",
            frontier=improved,
            arcs=blocks.num_edges << both_ways,
            reduced_bytes=reduced.nbytes if improved else 0,
            **blocks.counts,
        )
        if improved and is_due:
            # Any arc may still lower a distance.
            trace.checkpoints.keep(KeptState(dist[own], 0))
    return Traversal(dist[own], None)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search: two distances of each state, and its parent."""
    gathered = sizes.state * sizes.states if sizes.partition.num_ranks > 1 else 0
    # Parents of all states, marks of reached vertices, and sums of degrees. A pool keeps freed memory: parts add up.
    return 2 * sizes.state * sizes.states + gathered + sizes.vertex * sizes.states + 8 * sizes.owned


VARIANT = Variant(
    "sssp.sweep",
    when="on any ranks, if requested or the layout is compact",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=sssp_sweep,
    keeps_checkpoints=True,
)
