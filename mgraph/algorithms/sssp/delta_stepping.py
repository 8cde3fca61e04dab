"""Shortest paths by frontiers on one rank, over rows that have their light arcs first.

    near = sources, below a first bound of delta
    repeat until nothing is near and nothing waits:
        while near is not empty:
            relax the light arcs out of near, which may end below the bound; near = what that lowered below it
        the bucket is settled; raise the bound by delta
        relax the heavy arcs out of the bucket, each once
        or, from where fewer arcs lead to what is not settled: let those vertices pull over the arcs light enough for it
        near = what is below the bound now
        or, if those that have pulled have few arcs: raise the bound beyond all, let them pull from each other too;
            near = what that lowered

Delta-stepping with the border between light and heavy where the bucket ends, vertex by vertex; no arc is looked at
twice but light ones, and behind the peak only few of those that lead to it from the other side. Once what is left
has pulled, hardly any of it will fall again, and to look at all of it bucket by bucket costs more than to push what
does. Label-correcting all the same: no choice here decides what comes out.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import WEIGHT_SORTED_ROWS
from mgraph.algorithms.sssp.delta_stepping_kernels import list_settled, measure_heavy, pull_distances, relax_light
from mgraph.algorithms.sssp.near_far import default_delta, just_above, step_bytes
from mgraph.algorithms.sssp.near_far_kernels import clear_marks, relax_frontier, split_found
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.weight_sorted_rows import class_scale
from mgraph.types import unreached_of

# Buckets with less than this share of the arcs of the largest one are widened, and what has less than that of all arcs
# makes up the last one, as in frontiers.cuh.
TAIL_SHARE, LAST_SHARE = 16, 8


def sssp_by_weight(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    delta: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from `sources`, which are positions; predecessors are found afterwards."""
    assert comm.size == 1, "a bucket is settled when this rank has nothing near"
    search = _Search(shard, sources, trace, dtype, cutoff, delta or default_delta(shard, dtype))
    while True:
        while search.near_size:
            search.push()
        if not search.settle():
            return Traversal(search.dist, None)


class _Search:
    """The arrays of one search."""

    def __init__(
        self,
        shard: Shard,
        sources: list[int],
        trace: Trace,
        dtype: np.dtype,
        cutoff: float | int | None,
        delta: float | int,
    ) -> None:
        assert shard.by_weight is not None, "who calls has had them built"
        run, n, partition = shard.backend, shard.num_owned, shard.partition
        xp = run.xp
        self.run, self.trace, self.n, self.delta, self.rows = run, trace, n, delta, shard.by_weight
        self.scale, self.pulls = class_scale(shard.info), not shard.info.directed
        self.top = unreached_of(dtype)
        self.settled: float | int = 0
        self.bound: float | int = 0
        self.pulled = False
        self.cutoff = self.top if cutoff is None else cutoff
        self.dist = run.full(n, self.top, dtype)
        self.marked = xp.zeros(-(-n // 32), np.uint32)
        self.near, self.found, self.members = (xp.empty(n, partition.dtype) for _ in range(3))
        states = np.array(sorted({int(partition.state(p)) for p in sources}), partition.dtype)
        self.near_size = len(states)
        self.near[: len(states)] = run.to_device(states)
        self.dist[self.near[: len(states)]] = 0
        self.counters, self.lowest = xp.zeros(3, np.int64), xp.full(1, self.top, dtype)
        # Arcs relaxed in this bucket, and in the largest; of the rows that it took, and of all that are settled.
        self.done = self.most = self.near_arcs = self.settled_arcs = 0
        self._raise_bound(0)

    def push(self) -> None:
        """Relax the light arcs out of near; near is then what that lowered below the bound."""
        run, rows, size = self.run, self.rows, self.near_size
        self.counters[:] = 0
        relax_light[run](
            0, size, self.near, rows.indptr, rows.targets, rows.weights, self.scale, self.bounds, self.dist,
            self.marked, self.found, self.counters,
        )  # fmt: skip
        self.near, self.found = self.found, self.near
        self.near_size, arcs, lengths = run.to_host(self.counters).tolist()
        clear_marks[run](0, self.near_size, self.near, self.marked)
        self.near_arcs += lengths
        self.done += arcs
        self.trace.superstep("push", size, arcs)

    def settle(self) -> bool:
        """Raise the bound, relax what the bucket below has left, and find who is near; False if nothing is left."""
        low = self.run.to_host(self.lowest)[0].item()
        if self.bound == self.top or (low == self.top and not self.near_arcs):
            return False
        arcs = len(self.rows.targets)
        others = arcs - self.settled_arcs - self.near_arcs
        is_last = self.pulled and others * LAST_SHARE < arcs
        self.pulled = self.pulls and (self.pulled or others < self.near_arcs)
        if self.done * TAIL_SHARE < self.most:
            self.delta += self.delta
        self.most, self.done = max(self.most, self.done), 0
        self._raise_bound(self.bound if self.near_arcs else low, beyond_all=is_last)
        self.counters[:], self.lowest[:], self.near_arcs = 0, self.top, 0
        if self.pulled:
            self._pull()
        else:
            self._push_heavy()
        return True

    def _pull(self) -> None:
        run, rows = self.run, self.rows
        pull_distances[run](
            0, self.n, rows.indptr, rows.targets, rows.weights, self.scale, self.bounds, self.dist, self.near,
            self.lowest, self.counters,
        )  # fmt: skip
        self.near_size, arcs, settled = run.to_host(self.counters).tolist()
        self.settled_arcs += settled
        self.trace.superstep("pull", self.near_size, arcs)

    def _push_heavy(self) -> None:
        run, rows = self.run, self.rows
        list_settled[run](
            0, self.n, rows.indptr, self.dist, self.bounds, self.marked, self.members, self.near, self.lowest,
            self.counters,
        )  # fmt: skip
        num_near, size, settled = run.to_host(self.counters).tolist()
        self.settled_arcs += settled
        begins, offsets = run.xp.empty(size, np.int64), run.xp.zeros(size + 1, np.int64)
        measure_heavy[run](
            0, size, self.members, rows.indptr, rows.weights, self.dist, self.bounds, self.scale, begins, offsets[1:]
        )
        run.xp.cumsum(offsets[1:], out=offsets[1:])
        arcs = int(offsets[-1])
        self.counters[:] = 0
        relax_frontier[run](
            0, arcs, self.members, size, offsets, begins, rows.targets, rows.weights, self.bounds, self.dist,
            self.marked, self.found, self.counters,
        )  # fmt: skip
        num_found = int(self.counters[0])
        clear_marks[run](0, num_near, self.near, self.marked)
        clear_marks[run](0, num_found, self.found, self.marked)
        self.counters[0] = num_near
        # Nothing is kept in far: in_far and far are not looked at.
        split_found[run](
            0, num_found, self.found, self.dist, self.bounds, 0, self.marked, self.near, self.members, self.lowest,
            self.counters,
        )  # fmt: skip
        self.near_size = int(self.counters[0])
        self.done += arcs
        self.trace.superstep("heavy", size, arcs)

    def _raise_bound(self, low: float | int, *, beyond_all: bool = False) -> None:
        """Raise the bound to delta above `low`, past it in any case, or beyond all, and tell the kernels."""
        dtype, begin = self.dist.dtype, self.settled
        bound = max(low + self.delta, just_above(low, dtype))
        past_all = beyond_all or (dtype.kind == "f" and bound > float(np.finfo(dtype).max))
        self.settled, self.bound = self.bound, self.top if past_all else min(bound, self.top)
        giving = self.top if beyond_all else self.settled
        self.bounds = self.run.to_device(np.array([self.settled, self.bound, self.cutoff, begin, giving], dtype))
        # In the state's width, as the kernels have it.
        self.bound = self.run.to_host(self.bounds)[1].item()


VARIANT = Variant(
    "sssp.delta_stepping",
    when="on one rank, if many arcs are heavier than a bucket is wide, the host starting each step",
    applies=lambda setting: setting.layout == "rows" and setting.num_ranks == 1 and setting.has_heavy_arcs,
    needs=(WEIGHT_SORTED_ROWS,),
    bytes=step_bytes,
    run=sssp_by_weight,
)
