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
all vertices, on every rank. In the layout host a sweep also lowers the parent of the end that it
reaches to the other one.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.sweep_kernels import sweep_levels, sweep_levels_and_parents
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.swept_states import SweptStates
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, NARROW_LEVEL, Array, none_of, unreached_of


def bfs_sweep(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels from `sources`, which are positions; predecessors too where parts are streamed, else afterwards."""
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
    # Another pass over the host link would take longer than to lower parents on the way.
    finds_parents = shard.info.layout == "host" and state is None
    parents = _parents_of_sources(shard, sources) if finds_parents else None
    swept = SweptStates(backend, blocks, levels, both_ways, least=1)
    level = 0 if state is None else int(state.bound)
    improved = 1
    while improved and level != depth_limit:
        # The sweep writes level + 1: levels widen before that equals the value for unreached.
        if levels.dtype == NARROW_LEVEL and level + 1 == unreached_of(NARROW_LEVEL):
            levels = _widen(levels)
            swept = SweptStates(backend, blocks, levels, both_ways, least=1)
        counters[:] = 0
        shape = backend.to_device(np.array([bits, both_ways, level, partition.stride, partition.multiplier], np.int64))
        for part in swept.sweep():
            edges = (0, part.num_units, *part.edges)
            if parents is None:
                sweep_levels[backend](*edges, bits, both_ways, level, swept.before, levels, counters)
            else:
                of_segment = levels.itemsize << bits
                sweep_levels_and_parents[backend](*edges, shape, of_segment, swept.before, levels, parents, counters)
        improved, is_due = comm.sum(int(counters[0]), trace.checkpoints.is_due())
        reduced = levels[: partition.num_states]
        if improved:
            comm.allreduce(reduced, "min")
        trace.superstep(
            method="sweep",
            frontier=improved,
            arcs=swept.counts["edges"] << both_ways,
            reduced_bytes=reduced.nbytes if improved else 0,
            **swept.counts,
        )
        level += 1
        if improved and is_due:
            trace.checkpoints.keep(KeptState(_widen(levels[own]), level))
    if parents is None:
        return Traversal(_widen(levels[own]), None)
    comm.allreduce(parents, "min")
    return Traversal(_widen(levels[own]), parents[own] if comm.size == 1 else parents[own].copy())


def _parents_of_sources(shard: Shard, sources: list[int]) -> Array:
    """Return the parents of all states before a search: a source is its own."""
    backend = shard.backend
    partition = shard.partition
    parents = backend.full(partition.num_states, none_of(partition.dtype), partition.dtype)
    positions = np.array(sorted(set(sources)), partition.dtype)
    parents[backend.to_device(partition.state(positions).astype(partition.dtype))] = backend.to_device(positions)
    return parents


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
    when="on any ranks, if requested or the layout is compact or host",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: sweep_bytes(sizes, 1, 4),
    loop=bfs_sweep,
    keeps_checkpoints=True,
)
