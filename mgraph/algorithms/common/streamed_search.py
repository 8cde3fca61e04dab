"""Search over blocks of which some are in host memory, with few passes over the host link.

    state of the sources = 0, of all others = unreached; no other has a parent
    repeat:
        settle: sweep the parts on the device that are in reach, until none is or resident_sweeps times
                let parents fall over the parts swept
        state = the minimum over the ranks
        for each host part in reach, all of them or those that a smaller state than others' reaches:
            sweep the part once or twice, the second time reading what the first has lowered
            let parents fall to the smallest position from which an edge of it explains a state
    until nothing is in reach on any rank

A state that falls loses its parent. Parts read what earlier ones have lowered in the same pass. An edge is done once
it has been processed with the final state of its nearer end, so that parents need no pass of their own. Which
parts are in reach is found in reach.py.

Results do not depend on the order in which states fall: they are the least sums, and of all edges that explain one the
smallest position. Levels are sums of ones. In the end every rank has all states, and the parents of its own edges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.reach import STAMP, Reach
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.predecessors.sweep import ParentSweeps
from mgraph.algorithms.sssp.sweep_kernels import sweep_distances, sweep_distances_by_warp
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.host_blocks import HostBlocks, Part, parts_on_device
from mgraph.shard.shard import Blocks, Shard, cached_on_shard
from mgraph.shard.unit_runs import UnitRun
from mgraph.types import LEVEL, unreached_of

# At most this many sweeps of the parts on the device before host parts are streamed. Of RMAT graphs more save no pass:
# with half of the edges on the device (bench/host_layout.py rmat:22 --memory 440MiB --call sssp --roots 6) it takes 4.7
# passes with 3 to 16 sweeps, 4.9 with 2 and 6.6 with one. A grid of 300 x 300, half of it on the device, has 31 % more
# bytes over the link with 3 than with 16, and 4 % more with 4.
RESIDENT_SWEEPS = 4
# The same where no rank has host parts: fewer would only make ranks exchange what they have lowered more often.
SWEEPS_WITHOUT_STREAM = 16
# Sweeps of a host part while it is on the device, for levels and for sums of weights: another one takes longer than the
# passes that it saves (rmat26 on one H100: BFS 149, 158 and 172 ms with one to three, shortest paths 490, 486 and 571).
LEVEL_SWEEPS = 1
WEIGHT_SWEEPS = 2


def sssp_streamed(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    limit: float | int | None = None,
) -> Traversal:
    """Find states in `dtype` and predecessors from positions `sources`; every edge of levels counts 1."""
    search = StreamedSearch(shard, comm, sources, trace, dtype, limit)
    while True:
        search.settle()
        reach = search.exchange()
        least = comm.allreduce(reach.min(initial=search.top)[None], "min")[0]
        if least == search.top:
            return Traversal(search.states[search.own], search.parents.finish())
        if trace.checkpoints.are_due(comm):
            trace.checkpoints.keep(search.state(least))
        search.stream(search.reach.choose(reach[len(search.on_device) :]))


def bfs_streamed(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and predecessors from positions `sources`."""
    return sssp_streamed(shard, comm, sources, trace, LEVEL, depth_limit)


@cached_on_shard
def resident_parts(shard: Shard) -> list[Part]:
    """Return the parts of the blocks on the device."""
    (blocks,) = shard.blocks.values()
    assert isinstance(blocks, HostBlocks), "the layout is host"
    return parts_on_device(shard.backend, blocks.resident)


class StreamedSearch:
    """The states of a search, and their parents.

    Attributes
    ----------
    states
        Of all vertices, padded to whole segments.
    on_device
        The parts of the blocks on the device.
    resident_sweeps
        At most how often the parts on the device are swept before the others.
    streamed
        How many states had been lowered at the end of the last stream since the exchange before it, by all ranks, each
        as often as it was.
    counts
        What has been read since then.
    """

    def __init__(
        self,
        shard: Shard,
        comm: Communicator,
        sources: list[int],
        trace: Trace,
        dtype: np.dtype,
        limit: float | int | None,
    ) -> None:
        backend = shard.backend
        partition = shard.partition
        blocks = require_blocks(shard, comm, dtype)
        assert isinstance(blocks, HostBlocks), "the layout is host"
        self.backend = backend
        self.comm = comm
        self.trace = trace
        self.blocks = blocks
        self.is_weighted = dtype != LEVEL
        self.both_ways = 0 if shard.info.directed else 1
        self.top = dtype.type(unreached_of(dtype))
        self.own = slice(comm.rank * partition.stride, comm.rank * partition.stride + shard.num_owned)
        length = blocks.shape.padded(partition.num_states)
        self.states = backend.full(length, self.top, dtype)
        self.exchanged = self.states[: partition.num_states]
        self.parents = ParentSweeps(shard, comm, sources, self.states)
        limit = self.top if limit is None else limit
        least_weight = max(shard.info.min_weight, 0) if self.is_weighted else 1
        self.limit = backend.to_device(np.array([limit], dtype))
        bounds = least_weight, limit, self.top
        self.on_device = resident_parts(shard)
        self.resident_sweeps = RESIDENT_SWEEPS if comm.any(len(blocks.parts) > 0) else SWEEPS_WITHOUT_STREAM
        self.reach = Reach(shard, blocks, self.on_device, self.states, self.parents.parents, bounds)
        self.shape = backend.to_device(np.array([self.both_ways, self.reach.grain_bits], np.int64))
        self.streamed = 0
        self.counts = self._no_counts()
        self._begin(shard, sources)

    def _begin(self, shard: Shard, sources: list[int]) -> None:
        """Lower the states of the sources, or those that were kept."""
        kept = self.trace.checkpoints.found
        if kept is None:
            positions = np.array(sorted(set(sources)), shard.partition.dtype)
            self.states[self.backend.to_device(shard.partition.state(positions))] = 0
        else:
            self.states[self.own] = kept.values
            self.comm.allreduce(self.exchanged, "min")
        self.reach.note_all()
        self.reach.counters[:] = 0
        self.parents.set_sources(sources)

    def _no_counts(self) -> dict[str, int]:
        return {"edges": 0, "link_bytes": 0, "host_parts": 0, "skipped_parts": len(self.blocks.parts)}

    def settle(self) -> None:
        """Sweep the parts on the device that are in reach, a few times; lower parents over those swept."""
        if not self.on_device:
            return
        resident = self.blocks.resident
        is_swept = np.zeros(len(self.on_device), bool)
        for _ in range(self.resident_sweeps):
            chosen = self.reach.find()[: len(is_swept)] < self.top
            if not chosen.any():
                break
            for k in np.flatnonzero(chosen).tolist():
                # What this sweep lowers is stamped later.
                self.reach.begin_visit(k)
                self._sweep(resident, self.on_device[k].units)
            self.reach.note()
            is_swept |= chosen
        for k in np.flatnonzero(is_swept).tolist():
            self.parents.lower_to_nearer(resident, self.on_device[k].units)

    def exchange(self) -> np.ndarray:
        """Lower states to the minimum over the ranks; return what is in reach, and record a superstep."""
        (lowered,) = self.comm.sum(self.reach.num_lowered)
        if lowered:
            self.comm.allreduce(self.exchanged, "min")
            if self.comm.size > 1:
                self.reach.note_all()
        reach = self.reach.find()
        self._record("sweep", lowered - self.streamed, reduced_bytes=self.exchanged.nbytes if lowered else 0)
        self.reach.counters[:] = 0
        self.streamed = 0
        return reach

    def _record(self, method: str, lowered: int, **more: int) -> None:
        """Record a superstep, with what has been read since the one before."""
        self.trace.superstep(method, lowered, self.counts["edges"] << self.both_ways, **more, **self.counts)
        self.counts = self._no_counts()

    def stream(self, chosen: np.ndarray) -> None:
        """Visit host parts, in order: each reads what earlier ones have lowered; record a superstep."""
        parts = self.blocks.stream(chosen, weighted=self.is_weighted)
        for k, part in zip(chosen.tolist(), parts, strict=True):
            self._visit(len(self.on_device) + k, part, self.blocks.parts[k].units)
        self.counts |= self.blocks.counts | {"edges": self.counts["edges"]}
        (self.streamed,) = self.comm.sum(self.reach.num_lowered)
        self._record("stream", self.streamed)

    def _visit(self, index: int, part: Blocks, units: UnitRun) -> None:
        for _ in range(WEIGHT_SWEEPS if self.is_weighted else LEVEL_SWEEPS):
            # What the last sweep lowers is stamped later.
            self.reach.begin_visit(index)
            self._sweep(part, units)
            self.reach.note()
        self.parents.lower_to_nearer(part, units)

    def _sweep(self, part: Blocks, units: UnitRun) -> None:
        """Sweep units of a part."""
        self.counts["edges"] += units.num_edges
        args = (
            *part.edges, part.weights if self.is_weighted else None, part.shape.segment_bits, self.shape, self.limit,
            self.reach.before, self.states, self.reach.lowered,
        )  # fmt: skip
        sweep_distances[self.backend](units.first, units.first_of_few, *args)
        sweep_distances_by_warp[self.backend](units.first_of_few, units.last, *args)

    def state(self, least: float | int) -> KeptState:
        """Return the state from which another call can go on; `least` is the least state in reach on any rank."""
        states = self.states[self.own]
        if self.is_weighted:
            # Any arc may still lower a distance.
            return KeptState(states, 0)
        # Levels up to that one are final, and only its vertices have neighbors of which the levels are not.
        return KeptState(self.backend.xp.where(states <= least, states, self.top), int(least))


def _bytes(sizes: GraphSizes, state: int) -> int:
    """Return the bytes of a search with states of this size: two of each vertex, its parent and its stamp."""
    # Marks of reached vertices, and sums of degrees. A pool keeps freed memory: parts add up.
    return (2 * state + sizes.vertex + STAMP.itemsize) * sizes.states + 8 * sizes.owned


BFS = Variant(
    "bfs.streamed",
    when="on any ranks, if the layout is host",
    applies=lambda conditions: conditions.layout == "host",
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: _bytes(sizes, LEVEL.itemsize),
    loop=bfs_streamed,
    keeps_checkpoints=True,
)
SSSP = replace(BFS, name="sssp.streamed", bytes=lambda sizes: _bytes(sizes, sizes.state), loop=sssp_streamed)
