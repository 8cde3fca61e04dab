"""Breadth-first search by sweeps over edge blocks (Kolganov), on any number of ranks.

    frontier = the sources, which are their own parents; unreached = all others
    for level = 1, 2, ... while there is a frontier:
        sweep: for every edge (u, v) this rank holds, read once:
            if u is in the frontier and v is unreached: parent[v] = min(parent[v], u)
            if v is in the frontier and u is unreached: parent[u] = min(parent[u], v)     if the edge goes both ways
        frontier = the unreached with a parent on any rank: their level is found
    parent = the minimum over the ranks

Every rank holds an equal share of the edges, sorted in segments, and of all vertices two bits and the parent that its
own edges give. The bits of a segment fit shared memory, and a sweep does not read a unit of edges if its segment and
its window of starts have no frontier and unreached vertices to join.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.sweep_kernels import find_reached, settle_level, sweep_frontier
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.common.unit_flags import ALL_BITS, UnitFlags
from mgraph.algorithms.common.unite_bits import unite_bits
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states
from mgraph.types import LEVEL, Array, none_of, unreached_of


def bfs_sweep(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and predecessors from positions `sources`; from a kept state levels alone."""
    search = LevelSweeps(shard, comm)
    kept = trace.checkpoints.found
    level = 0 if kept is None else int(kept.bound)
    reached = search.begin(sources) if kept is None else search.resume(kept.values, level)
    while reached and level != depth_limit:
        counts = search.sweep()
        level += 1
        reached = search.settle(level)
        trace.superstep(method="sweep", frontier=reached, **counts)
        if reached and trace.checkpoints.are_due(comm):
            trace.checkpoints.keep(KeptState(search.levels, level))
    return Traversal(search.levels, search.finish() if kept is None else None)


class LevelSweeps:
    """The bits and parents of all states, and the levels of the owned ones.

    States in the frontier are active, unreached ones are open (see UnitFlags).
    """

    def __init__(self, shard: Shard, comm: Communicator) -> None:
        backend = shard.backend
        partition = shard.partition
        self.shard = shard
        self.comm = comm
        self.blocks = require_blocks(shard, comm, LEVEL)
        self.num_states = partition.num_states
        self.flags = UnitFlags(shard, self.blocks.shape)
        self.frontier = backend.xp.zeros(self.flags.num_words, np.uint32)
        self.unreached = backend.full(self.flags.num_words, ALL_BITS, np.dtype(np.uint32))
        self.parents = backend.full(self.num_states, none_of(partition.dtype), partition.dtype)
        self.levels = backend.full(shard.num_owned, unreached_of(LEVEL), LEVEL)
        self.counters = backend.xp.zeros(1, np.int64)

    def begin(self, sources: list[int]) -> int:
        """Let the sources be the frontier; return how many there are."""
        partition = self.shard.partition
        positions = np.array(sorted(set(sources)), partition.dtype)
        states = self.shard.backend.to_device(partition.state(positions).astype(partition.dtype))
        self.parents[states] = self.shard.backend.to_device(positions)
        return self.settle(0)

    def resume(self, kept: Array, level: int) -> int:
        """Go on from the owned vertices' levels up to the frontier's; return its size."""
        levels = gather_states(self.shard, self.comm, kept)
        for last in (level - 1, level):
            self.parents[: len(levels)][levels <= last] = 0
            count = self.settle(level)
        self.parents[:] = none_of(self.parents.dtype)
        self.levels[:] = kept
        return count

    def sweep(self) -> dict[str, int]:
        """Lower parents over the edges from the frontier to the unreached; return counts."""
        backend = self.shard.backend
        counts = {"edges": 0, "skipped_units": 0}
        for part in self.blocks.on_device(weighted=False):
            units, num_edges = self.flags.units_of(part)
            sweep_frontier[backend](
                0, len(units), units, *part.edges, part.shape.segment_bits, self.flags.shape, self.frontier,
                self.unreached, self.flags.windows, self.parents,
            )  # fmt: skip
            counts["edges"] += num_edges
            counts["skipped_units"] += part.num_units - len(units)
        reduced = self.frontier.nbytes if self.comm.size > 1 else 0
        return {
            "arcs": counts["edges"] << self.flags.both_ways,
            "reduced_bytes": reduced,
            **self.blocks.counts,
            **counts,
        }

    def settle(self, level: int) -> int:
        """Make the unreached states with a parent the frontier; return its size."""
        backend = self.shard.backend
        num_words = len(self.frontier)
        find_reached[backend](0, num_words, self.num_states, self.unreached, self.parents, self.frontier)
        if self.comm.size > 1:
            unite_bits(self.comm, backend, self.frontier[: self.num_states // 32])
        self.flags.clear()
        self.counters[:] = 0
        first = self.comm.rank * self.shard.partition.stride
        settle_level[backend](
            0, num_words, level, first, first + self.shard.num_owned, self.flags.shape, self.frontier,
            self.unreached, self.levels, self.flags.segments, self.flags.windows, self.counters,
        )  # fmt: skip
        return int(self.counters[0])

    def finish(self) -> Array:
        """Return the predecessors of the owned vertices."""
        self.comm.allreduce(self.parents, "min")
        first = self.comm.rank * self.shard.partition.stride
        parents = self.parents[first : first + self.shard.num_owned]
        return parents if self.comm.size == 1 else parents.copy()


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search: two bits and the parent of each state; of several ranks levels to resume from."""
    is_alone = sizes.partition.num_ranks == 1
    bits = sizes.states // 8 * (2 if is_alone else 4)
    gathered = 0 if is_alone else LEVEL.itemsize * sizes.states
    # Marks of states, and of the owned vertices sums of degrees. A pool keeps freed memory: parts add up.
    marks = 3 * sizes.states
    return bits + gathered + marks + sizes.vertex * sizes.states + (LEVEL.itemsize + 8) * sizes.owned


VARIANT = Variant(
    "bfs.sweep",
    when="on any ranks, if requested or the layout is compact",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=bfs_sweep,
    keeps_checkpoints=True,
)
