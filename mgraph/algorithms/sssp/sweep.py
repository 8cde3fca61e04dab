"""Find shortest paths by sweeps over edge blocks (Kolganov; Bellman and Ford), on any number of ranks.

    distance of the sources = 0, of all others = infinity
    repeat until no state is pending for any edges:
        the next edges: the heavy ones of the sources; then light ones while they have pending states, a few times;
            then heavy ones (light_units.py)
        active = the states pending for these edges, which are those lowered since their last sweep
        open = the states farther than the nearest active one and the least weight
        sweep: for every edge (u, v, w) from an active state to an open one, or back, read once:
            distance[v] = min(distance[v], distance[u] + w)
            distance[u] = min(distance[u], distance[v] + w)     if the edge goes both ways
        distance = the minimum over the ranks, of the lowered states where these are few

Every rank holds an equal share of the edges, sorted in segments, and all distances. A sweep tests two bits of the ends
of an edge before it reads a distance, and does not read a unit of edges if its segment and its window of starts have no
active and open states to join. At the end every rank has the distances of all vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.step_kernels import mark_bits
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.common.unit_flags import ALL_BITS, UnitFlags
from mgraph.algorithms.common.unit_flags_kernels import gather_lowered
from mgraph.algorithms.common.unite_bits import unite_bits
from mgraph.algorithms.derived import EDGE_BLOCKS, LIGHT_UNITS
from mgraph.algorithms.sssp.sweep_kernels import sweep_active
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.light_units import groups_of, whole_group
from mgraph.shard.shard import Blocks, Shard
from mgraph.types import Array, saturating_sum, unreached_of

# Sweeps of the light edges before the heavy ones, at most. Of 4 to 12, with 8 sweeps of RMAT and uniform graphs read
# fewest edges.
MAX_LIGHT_SWEEPS = 8
# Lowered states are sent as a list where at most this share of all words of 32 has one, on all ranks together.
MAX_LISTED = 1 / 8


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
    while (group := search.next_group()) is not None:
        counts = search.sweep(group)
        reduced = search.exchange()
        frontier = search.gather()
        trace.superstep(method="sweep", frontier=frontier, reduced_bytes=reduced, **counts)
        if frontier and trace.checkpoints.are_due(comm):
            # Any arc may still lower a distance.
            trace.checkpoints.keep(KeptState(search.owned(), 0))
    return Traversal(search.owned(), None)


class DistanceSweeps:
    """The distances of all states, and which of them fell: the same on every rank.

    Attributes
    ----------
    lowered
        Bits of the states that the last sweep has lowered.
    pending
        For each group of units, bits of the states lowered since its last sweep.
    least
        The least distance of each of these.
    is_at_sources
        Whether only the sources are pending.
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
        # Every rank sweeps the same group.
        groups = groups_of(shard, blocks)
        self.groups = [whole_group(shard, blocks)] if comm.any(len(groups) == 1) else groups
        self.num_units = [blocks.num_units if units is None else int(units.sum()) for units, _ in self.groups]
        self.top = dtype.type(unreached_of(dtype))
        self.own = slice(comm.rank * partition.stride, comm.rank * partition.stride + shard.num_owned)
        self.has_no_limit = cutoff is None
        self.limit = backend.to_device(np.array([self.top if cutoff is None else cutoff], dtype))
        self.dist = backend.full(partition.num_states, self.top, dtype)
        self.flags = UnitFlags(shard, blocks.shape)
        num_words = self.flags.num_words
        self.marks = xp.empty(num_words, np.uint64)
        self.lowered = xp.zeros(num_words, np.uint32)
        self.pending = xp.zeros((len(self.groups), num_words), np.uint32)
        self.least = np.full(len(self.groups), self.top)
        self.counters = xp.zeros(len(self.groups), np.int64)
        self.is_at_sources = False
        self.num_light_sweeps = 0

    def begin(self, sources: list[int]) -> None:
        """Lower the distances of the sources."""
        partition = self.shard.partition
        states = np.array([partition.state(p) for p in set(sources)], partition.dtype)
        self.dist[self.shard.backend.to_device(states)] = 0
        self.is_at_sources = True
        self._gather_all()

    def resume(self, kept: Array) -> None:
        """Go on from the distances of the owned vertices."""
        self.dist[self.own] = kept
        self.comm.allreduce(self.dist, "min")
        self._gather_all()

    def next_group(self) -> int | None:
        """Return the group of units to sweep next, None at the end.

        The heavy edges of the sources come first, alone. All other vertices may be far from the sources: the bound of
        open states is then the distance of the nearest of these, and fewer states are open.
        """
        light = 0
        heavy = len(self.groups) - 1
        is_pending = self.least < self.top
        may_be_light = self.num_light_sweeps < MAX_LIGHT_SWEEPS or not is_pending[heavy]
        group = light if is_pending[light] and may_be_light and not self.is_at_sources else heavy
        self.is_at_sources = False
        self.num_light_sweeps = 0 if group == heavy else self.num_light_sweeps + 1
        return group if is_pending[group] else None

    def sweep(self, group: int) -> dict[str, int]:
        """Lower distances over the edges of a group of units from pending states; return what was read."""
        blocks = self.blocks
        units_of_group, least_weight = self.groups[group]
        self.flags.mark(self.pending[group], saturating_sum(self.least[group], least_weight), self.dist, self.marks)
        self.pending[group] = 0
        units, num_edges = self.flags.units_of(blocks, units_of_group)
        sweep_active[self.shard.backend](
            0, len(units), units, *blocks.edges, blocks.weights, blocks.shape.segment_bits, self.flags.both_ways,
            self.marks, self.dist, self.lowered,
        )  # fmt: skip
        return {
            "arcs": num_edges << self.flags.both_ways,
            "edges": num_edges,
            "skipped_units": self.num_units[group] - len(units),
        }

    def exchange(self) -> int:
        """Lower distances to the minimum over the ranks; return the bytes that each rank reduces or receives."""
        if self.comm.size == 1:
            return 0
        xp = self.shard.backend.xp
        bits = self.lowered[: len(self.dist) // 32]
        words = xp.flatnonzero(bits)
        (num_words,) = self.comm.sum(len(words))
        if num_words > MAX_LISTED * len(bits):
            self.comm.allreduce(self.dist, "min")
            unite_bits(self.comm, self.shard.backend, bits)
            return int(self.dist.nbytes + bits.nbytes)
        row, bit = xp.nonzero(xp.unpackbits(bits[words].view(np.uint8), bitorder="little").reshape(-1, 32))
        states = (words[row] << 5 | bit).astype(self.shard.partition.dtype)
        num_bytes = 0
        lists = (self.comm.alltoallv([column] * self.comm.size) for column in (states, self.dist[states]))
        for rank, (listed, values) in enumerate(zip(*lists, strict=True)):
            self.dist[listed] = xp.minimum(self.dist[listed], values)
            mark_bits[self.shard.backend](0, len(listed), listed, self.lowered)
            num_bytes += (listed.nbytes + values.nbytes) * (rank != self.comm.rank)
        return num_bytes

    def owned(self) -> Array:
        """Return the distances of the owned vertices, those beyond the cutoff unreached."""
        own = self.dist[self.own]
        return own if self.has_no_limit else self.shard.backend.xp.where(own <= self.limit, own, self.top)

    def _gather_all(self) -> None:
        """Let every reached state be pending."""
        self.lowered[:] = ALL_BITS
        self.gather()

    def gather(self) -> int:
        """Let the lowered states be pending for all groups; return how many there are."""
        backend = self.shard.backend
        least = backend.full(len(self.least), self.top, self.dist.dtype)
        self.counters[:] = 0
        for group, pending in enumerate(self.pending):
            gather_lowered[backend](
                0, len(pending), len(self.dist), self.limit, self.dist, self.lowered, pending,
                least[group : group + 1], self.counters[group : group + 1],
            )  # fmt: skip
        self.lowered[:] = 0
        self.least = backend.to_host(least)
        return int(self.counters[0])


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search: the distance of each state and its bits, and its parent."""
    gathered = sizes.state * sizes.states if sizes.partition.num_ranks > 1 else 0
    # Two marks, lowered and pending ones of both groups; of parents marks, and two active ones.
    bits = 9 * sizes.states // 8
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
