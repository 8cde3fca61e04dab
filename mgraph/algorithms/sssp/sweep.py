"""Find shortest paths by sweeps over edge blocks (Kolganov; Bellman and Ford), on any number of ranks.

    distance of the sources = 0, of all others = infinity
    repeat:
        for the light edges of this rank, several times, then for its heavy ones (light_units.py):
            active = the states lowered since the last sweep of these edges
            open = the states farther than the nearest active one and the least weight
            sweep: for every edge (u, v, w) from an active state to an open one, or back, read once:
                distance[v] = min(distance[v], distance[u] + w)
                distance[u] = min(distance[u], distance[v] + w)     if the edge goes both ways
        distance = the minimum over the ranks
    until no rank lowered a distance

Every rank holds an equal share of the edges, sorted in segments, and all distances. A sweep tests two bits of the ends
of an edge before it reads a distance, and does not read a unit of edges if its segment and its window of starts have no
active and open states to join. At the end every rank has the distances of all vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.common.unit_flags import ALL_BITS, UnitFlags, add
from mgraph.algorithms.common.unit_flags_kernels import gather_lowered
from mgraph.algorithms.common.unite_bits import unite_bits
from mgraph.algorithms.derived import EDGE_BLOCKS, LIGHT_UNITS
from mgraph.algorithms.sssp.sweep_kernels import sweep_active
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.light_units import groups_of
from mgraph.shard.shard import Blocks, Shard
from mgraph.types import Array, unreached_of

# Sweeps of the light edges before the heavy ones, at most. Of 4 to 12, with 8 sweeps of RMAT and uniform graphs read
# fewest edges.
MAX_LIGHT_SWEEPS = 8


def sssp_sweep(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from positions `sources`, without predecessors."""
    search = DistanceSweeps(shard, comm, dtype, cutoff)
    kept = trace.checkpoints.found
    if kept is None:
        search.begin(sources)
    else:
        search.resume(kept.values)
    improved = 1
    while improved:
        lowered, counts = search.settle()
        improved, is_due = comm.sum(lowered, trace.checkpoints.is_due())
        reduced = search.exchange() if improved else 0
        trace.superstep(method="sweep", frontier=improved, reduced_bytes=reduced, **counts)
        if improved and is_due:
            # Any arc may still lower a distance.
            trace.checkpoints.keep(KeptState(search.owned(), 0))
    return Traversal(search.owned(), None)


class DistanceSweeps:
    """The distances of all states, and which of them have been lowered.

    Attributes
    ----------
    lowered
        Bits of the states that the last sweep has lowered.
    pending
        For each group of units, bits of the states lowered since their last sweep; of several ranks, also
        of those lowered since the last exchange.
    least
        The least distance of each of these.
    """

    def __init__(self, shard: Shard, comm: Communicator, dtype: np.dtype, cutoff: float | int | None) -> None:
        backend = shard.backend
        xp = backend.xp
        partition = shard.partition
        blocks = require_blocks(shard, comm, dtype)
        assert isinstance(blocks, Blocks), "all edges are on the device"
        self.shard = shard
        self.comm = comm
        self.blocks = blocks
        self.groups = groups_of(shard, blocks)
        self.num_units = [blocks.num_units if units is None else int(units.sum()) for units, _ in self.groups]
        self.top = dtype.type(unreached_of(dtype))
        self.has_no_limit = cutoff is None
        self.limit = backend.to_device(np.array([self.top if cutoff is None else cutoff], dtype))
        self.dist = backend.full(partition.num_states, self.top, dtype)
        self.flags = UnitFlags(shard, blocks.shape)
        num_words = self.flags.num_words
        self.marks = xp.empty(num_words, np.uint64)
        self.lowered = xp.zeros(num_words, np.uint32)
        self.pending = xp.zeros((len(self.groups) + (comm.size > 1), num_words), np.uint32)
        self.least = np.full(len(self.pending), self.top)
        self.counters = xp.zeros(len(self.pending), np.int64)
        self.is_at_sources = False

    def begin(self, sources: list[int]) -> None:
        """Lower the distances of the sources."""
        partition = self.shard.partition
        states = np.array([partition.state(p) for p in set(sources)], partition.dtype)
        self.dist[self.shard.backend.to_device(states)] = 0
        self._gather_all()
        self.is_at_sources = True

    def resume(self, kept: Array) -> None:
        """Go on from the distances of the owned vertices."""
        first = self.comm.rank * self.shard.partition.stride
        self.dist[first : first + self.shard.num_owned] = kept
        self.comm.allreduce(self.dist, "min")
        self._gather_all()

    def settle(self) -> tuple[int, dict[str, int]]:
        """Sweep the light edges until they lower nothing, or some times, then the heavy ones; return what fell."""
        *lighter, heaviest = range(len(self.groups))
        order = [*lighter * MAX_LIGHT_SWEEPS, heaviest]
        if lighter and self.is_at_sources:
            # Few edges. With the sources no longer pending, heavy edges lead as far as the nearest of all others does.
            order.insert(0, heaviest)
        self.is_at_sources = False
        lowered = 0
        counts = {"arcs": 0, "edges": 0, "skipped_units": 0}
        for k in order:
            if self.least[k] < self.top:
                num_edges, skipped = self._sweep(k)
                lowered += self._gather()
                counts["edges"] += num_edges
                counts["skipped_units"] += skipped
        counts["arcs"] = counts["edges"] << self.flags.both_ways
        return lowered, counts

    def _sweep(self, k: int) -> tuple[int, int]:
        """Sweep the units of a group; return how many edges have been read, and how many units have not."""
        blocks = self.blocks
        units_of_group, least_weight = self.groups[k]
        self.flags.mark(self.pending[k], add(self.least[k], least_weight), self.dist, self.marks)
        self.pending[k] = 0
        units, num_edges = self.flags.units_of(blocks, units_of_group)
        sweep_active[self.shard.backend](
            0, len(units), units, *blocks.edges, blocks.weights, blocks.shape.segment_bits, self.flags.both_ways,
            self.marks, self.dist, self.lowered,
        )  # fmt: skip
        return num_edges, self.num_units[k] - len(units)

    def exchange(self) -> int:
        """Lower all distances to the minimum over the ranks; return the bytes exchanged."""
        if self.comm.size == 1:
            return 0
        changed = self.pending[-1, : len(self.dist) // 32]
        self.comm.allreduce(self.dist, "min")
        unite_bits(self.comm, self.shard.backend, changed)
        self.pending[:-1] |= self.pending[-1]
        self.pending[-1] = 0
        self._gather()
        return int(self.dist.nbytes + changed.nbytes)

    def owned(self) -> Array:
        """Return the distances of the owned vertices, those beyond the cutoff unreached."""
        first = self.comm.rank * self.shard.partition.stride
        own = self.dist[first : first + self.shard.num_owned]
        return own if self.has_no_limit else self.shard.backend.xp.where(own <= self.limit, own, self.top)

    def _gather_all(self) -> None:
        """Let every reached state be pending."""
        self.lowered[:] = ALL_BITS
        self._gather()

    def _gather(self) -> int:
        """Let the lowered states be pending; return how many there are."""
        backend = self.shard.backend
        least = backend.full(len(self.least), self.top, self.dist.dtype)
        self.counters[:] = 0
        for row, pending in enumerate(self.pending):
            gather_lowered[backend](
                0, len(pending), len(self.dist), self.limit, self.dist, self.lowered, pending, least[row : row + 1],
                self.counters[row : row + 1],
            )  # fmt: skip
        self.lowered[:] = 0
        self.least = backend.to_host(least)
        return int(self.counters[0])


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search: the distance of each state and its bits, and its parent."""
    gathered = sizes.state * sizes.states if sizes.partition.num_ranks > 1 else 0
    # Two marks, lowered and pending ones of both groups and of the exchange; of parents marks, and two active ones.
    bits = 10 * sizes.states // 8
    # Parents of all states, marks of reached vertices, and sums of degrees. A pool keeps freed memory: parts add up.
    return sizes.state * sizes.states + bits + gathered + sizes.vertex * sizes.states + 8 * sizes.owned


VARIANT = Variant(
    "sssp.sweep",
    when="on any ranks, if requested or the layout is compact",
    applies=lambda conditions: conditions.method == "sweep" or not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    wants=(LIGHT_UNITS,),
    bytes=_bytes,
    loop=sssp_sweep,
    keeps_checkpoints=True,
)
