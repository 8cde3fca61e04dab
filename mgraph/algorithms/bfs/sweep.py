"""Breadth-first search by sweeps over edge blocks (Kolganov), on any number of ranks.

    level of the sources = 0, of all others = unreached
    for i = 0, 1, 2, ...
        sweep: for every edge (u, v) this rank holds, read once:
            if level[u] == i and level[v] > i + 1: level[v] = i + 1
            else if level[v] == i and level[u] > i + 1: level[u] = i + 1     if the edge goes both ways
        level = the minimum over the ranks
    until no rank lowered a level

Every rank holds an equal share of the edges, sorted in segments, and the levels of all vertices: in 8
bits, 255 for unreached, until level 254 occurs and they widen to 32. Valid at the end: the levels of
all vertices, on every rank.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.sweep_kernels import sweep_levels
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, NARROW_LEVEL, Array, unreached_of


def bfs_sweep(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels from `sources`, which are positions, without predecessors."""
    backend = shard.backend
    partition = shard.partition
    blocks = require_blocks(shard, comm, LEVEL)
    own = slice(comm.rank * partition.stride, comm.rank * partition.stride + shard.num_owned)
    state = trace.checkpoints.found
    dtype = LEVEL if state else NARROW_LEVEL
    levels = backend.full(blocks.shape.padded(partition.num_states), unreached_of(dtype), dtype)
    if state is None:
        states = np.array([partition.state(p) for p in set(sources)], partition.dtype)
        levels[backend.to_device(states)] = 0
    else:
        levels[own] = state.values
        comm.allreduce(levels[: partition.num_states], "min")
    counters = backend.xp.zeros(1, np.int64)
    bits = blocks.shape.segment_bits
    both_ways = 0 if shard.info.directed else 1
    before = None
    level = 0 if state is None else int(state.bound)
    improved = 1
    while improved and level != depth_limit:
        # The sweep writes level + 1: levels widen before that equals the value for unreached.
        if levels.dtype == NARROW_LEVEL and level + 1 == unreached_of(NARROW_LEVEL):
            levels = _widen(levels)
            before = None
        counters[:] = 0
        before = backend.snapshot(levels, before)
        for part in blocks.on_device(weighted=False):
            sweep_levels[backend](0, part.num_units, *part.edges, bits, both_ways, level, before, levels, counters)
        improved, is_due = comm.sum(int(counters[0]), trace.checkpoints.is_due())
        reduced = levels[: partition.num_states]
        if improved:
            comm.allreduce(reduced, "min")
        trace.superstep(
            method="sweep",
            frontier=improved,
            arcs=blocks.num_edges << both_ways,
            reduced_bytes=reduced.nbytes if improved else 0,
            **blocks.counts,
        )
        level += 1
        if improved and is_due:
            trace.checkpoints.keep(KeptState(_widen(levels[own]), level))
    return Traversal(_widen(levels[own]), None)


def _widen(narrow: Array) -> Array:
    """Return levels of 8 bits in the width of results, wide ones as they are."""
    if narrow.dtype != NARROW_LEVEL:
        return narrow
    levels = narrow.astype(LEVEL)
    levels[narrow == unreached_of(NARROW_LEVEL)] = unreached_of(LEVEL)
    return levels


def sweep_bytes(sizes: GraphSizes, swept: int, state: int) -> int:
    """Return the bytes of a search: its sweeps hold `swept` bytes for a state, and its result holds `state`."""
    sweep = 2 * swept * sizes.states + (state * sizes.owned if state != swept else 0)
    gathered = state * sizes.states if sizes.partition.num_ranks > 1 else 0
    # Parents of all states, marks of reached vertices, and sums of degrees. A pool keeps freed memory: parts add up.
    return sweep + gathered + sizes.vertex * sizes.states + 8 * sizes.owned


VARIANT = Variant(
    "bfs.sweep",
    when="on any ranks, if requested or the layout is compact",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: sweep_bytes(sizes, 1, 4),
    loop=bfs_sweep,
    keeps_checkpoints=True,
)
