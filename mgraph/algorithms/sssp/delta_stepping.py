"""Find shortest paths by frontiers on one rank, over rows with their lightest arcs.

    near = sources, below a first bound of delta
    repeat until nothing is near and nothing waits:
        while near is not empty:
            relax the light arcs out of near, which may end below the bound; near = the vertices lowered below it
        the bucket is settled; raise the bound by delta or, if it left no arcs, to delta above the lowest distance that
            waits
        relax the heavy arcs out of the bucket, each once
        or, from where fewer arcs lead to unsettled vertices: these pull over the arcs light enough for the bucket
        near = the vertices below the bound now
        or, if the vertices that have pulled have few arcs: raise the bound to infinity, let them pull from each other
            too; near = the vertices that this lowered

Delta-stepping with the border between light and heavy at the end of the bucket, vertex by vertex. No arc is scanned
twice but light ones, and after the largest bucket few of those that lead to it from the other side. Once the remaining
vertices have pulled, hardly any of them will fall again, and to scan all of them bucket by bucket costs more than to
push those that do. Label-correcting all the same: no choice here decides the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import LIGHTEST_ARCS
from mgraph.algorithms.sssp.delta_stepping_kernels import list_settled, pull_distances, relax_light
from mgraph.algorithms.sssp.near_far import (
    are_settled,
    default_delta,
    drop_unsettled,
    just_above,
    step_bytes,
    typical_weight,
)
from mgraph.algorithms.sssp.near_far_kernels import (
    clear_marks,
    measure_rows,
    relax_frontier,
    scan_distances,
    split_found,
)
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.partition import own_states
from mgraph.shard.lightest_arcs import class_scale
from mgraph.shard.shard import Shard
from mgraph.types import Array, unreached_of

# Buckets with less than this share of the arcs of the largest one are widened, once that one has more than PEAK_ARCS or
# than a PEAK_SHARE of all arcs, and vertices with less than this share of all arcs are the last bucket, as in
# frontiers.cuh.
TAIL_SHARE = 16
PEAK_ARCS = 1 << 16
PEAK_SHARE = 64
LAST_SHARE = 8


def sssp_delta_stepping(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    until: Sequence[int] = (),
) -> Traversal:
    """Find distances in `dtype` from positions `sources`; predecessors are found afterwards.

    With `until`, only up to the bucket of the farthest of these positions.
    """
    assert comm.size == 1, "a bucket is settled when this rank has nothing near"
    backend = shard.backend
    dist = backend.full(shard.num_owned, unreached_of(dtype), dtype)
    dist[backend.to_device(own_states(shard.partition, comm.rank, sources))] = 0
    delta = default_delta(shard, dtype, mean_weight=typical_weight(shard, comm))
    search = BucketSearch(shard, trace, dist, cutoff, delta, AtomicRelaxation(shard, dist))
    search.begin(0, 0)
    targets = backend.to_device(own_states(shard.partition, comm.rank, until).astype(np.int64))
    while True:
        while search.near_size:
            search.push()
        if search.has_settled(targets):
            drop_unsettled(search.dist, search.bound)
            return Traversal(search.dist, None)
        if not search.settle():
            return Traversal(search.dist, None)


class Relaxation(Protocol):
    """Relaxes arcs of one search. `marked` is a bitmap of vertices for its use."""

    def set_queued(self, near: Array) -> None:
        """Say that these vertices, and no others, are in near from here on."""

    def relax_light(self, near: Array, bounds: Array, marked: Array, found: Array) -> tuple[int, int, int]:
        """Relax the light arcs out of near, and list in `found` what this lowers below the bound.

        Return how many these are, the arcs, and the sum of the rows' lengths. `marked` is clear before and after.
        """

    def relax_rows(
        self, bucket: Array, bounds: Array, marked: Array, near: Array, num_near: int, found: Array, lowest: Array
    ) -> tuple[int, int]:
        """Relax all arcs of a bucket; append to near what this lowers below the bound.

        Return the length of near and the arcs. What is in near before is marked, and nothing else before or after.
        `lowest` falls to the least distance seen beyond the bound; it may have fallen since. `found` may be written.
        """


class AtomicRelaxation:
    """Relaxes arcs by atomic minima, on any backend."""

    def __init__(self, shard: Shard, dist: Array) -> None:
        assert shard.lightest_arcs is not None, "the caller has made them"
        self.backend = shard.backend
        self.rows = shard.rows
        self.lightest = shard.lightest_arcs
        self.scale = class_scale(shard.info)
        self.dist = dist
        self.counters = shard.backend.xp.zeros(3, np.int64)

    def set_queued(self, near: Array) -> None:
        pass

    def relax_light(self, near: Array, bounds: Array, marked: Array, found: Array) -> tuple[int, int, int]:
        backend = self.backend
        rows = self.rows
        self.counters[:] = 0
        relax_light[backend](
            0, len(near), near, rows.indptr, rows.targets, rows.weights, self.lightest.targets, self.lightest.weights,
            self.scale, bounds, self.dist, marked, found, self.counters,
        )  # fmt: skip
        num_found, arcs, lengths = backend.to_host(self.counters).tolist()
        clear_marks[backend](0, num_found, found, marked)
        return num_found, arcs, lengths

    def relax_rows(
        self, bucket: Array, bounds: Array, marked: Array, near: Array, num_near: int, found: Array, lowest: Array
    ) -> tuple[int, int]:
        backend = self.backend
        rows = self.rows
        size = len(bucket)
        begins = backend.xp.empty(size, np.int64)
        offsets = backend.xp.zeros(size + 1, np.int64)
        measure_rows[backend](0, size, bucket, rows.indptr, len(self.dist), begins, offsets[1:])
        backend.xp.cumsum(offsets[1:], out=offsets[1:])
        arcs = int(offsets[-1])
        self.counters[:] = 0
        relax_frontier[backend](
            0, arcs, bucket, size, offsets, begins, rows.targets, rows.weights, bounds, self.dist, marked, found,
            self.counters,
        )  # fmt: skip
        num_found = int(self.counters[0])
        clear_marks[backend](0, num_found, found, marked)
        self.counters[0] = num_near
        # Far is not kept: in_far and far are not read.
        split_found[backend](0, num_found, found, self.dist, bounds, 0, marked, near, bucket, lowest, self.counters)
        return int(self.counters[0]), arcs


class BucketSearch:
    """The arrays of one search, whose distances may have been found in part."""

    def __init__(
        self,
        shard: Shard,
        trace: Trace,
        dist: Array,
        cutoff: float | int | None,
        delta: float | int,
        relaxation: Relaxation,
    ) -> None:
        assert shard.lightest_arcs is not None, "the caller has made them"
        backend = shard.backend
        n = shard.num_owned
        partition = shard.partition
        xp = backend.xp
        self.backend = backend
        self.trace = trace
        self.relaxation = relaxation
        self.n = n
        self.first_delta = delta
        self.rows = shard.rows
        self.lightest = shard.lightest_arcs
        self.scale = class_scale(shard.info)
        self.pulls = not shard.info.directed
        self.top = unreached_of(dist.dtype)
        self.cutoff = self.top if cutoff is None else cutoff
        self.dist = dist
        self.marked = xp.zeros(-(-n // 32), np.uint32)
        self.near, self.found, self.bucket = (xp.empty(n, partition.dtype) for _ in range(3))
        self.counters = xp.zeros(3, np.int64)
        self.lowest = xp.full(1, self.top, dist.dtype)

    def begin(self, low: float | int, settled_row_arcs: int) -> None:
        """Open the first bucket: vertices nearer than `low`, of this many arcs, are settled and their arcs relaxed."""
        self.delta = self.first_delta
        self.has_pulled = False
        # Arcs relaxed in this bucket, and in the largest; of the rows of this bucket, and of all settled rows.
        self.bucket_arcs = self.max_bucket_arcs = self.bucket_row_arcs = 0
        self.settled_row_arcs = settled_row_arcs
        self.settled = self.bound = low
        self._raise_bound(low)
        self.lowest[:] = self.top
        self.near_size = self._list_from(self.bounds, self.near)
        self.relaxation.set_queued(self.near[: self.near_size])

    def waiting(self) -> Array:
        """Return the reached vertices that are not settled, between two buckets."""
        bounds = self.backend.to_device(np.array([self.settled, self.top], self.dist.dtype))
        return self.found[: self._list_from(bounds, self.found)]

    def has_settled(self, targets: Array) -> bool:
        """Return whether there are targets, and all are settled with this bucket."""
        return len(targets) > 0 and are_settled(self.backend, self.dist, targets, self.bound)

    def _list_from(self, bounds: Array, vertices: Array) -> int:
        """List the vertices between two bounds; return how many there are."""
        self.counters[:] = 0
        scan_distances[self.backend](0, self.n, self.dist, bounds, vertices, self.lowest, self.counters)
        return int(self.counters[0])

    def push(self) -> None:
        """Relax the light arcs out of near; near is then the vertices that this lowered below the bound."""
        size = self.near_size
        self.near_size, arcs, lengths = self.relaxation.relax_light(
            self.near[:size], self.bounds, self.marked, self.found
        )
        self.near, self.found = self.found, self.near
        self.bucket_row_arcs += lengths
        self.bucket_arcs += arcs
        self.trace.superstep("push", size, arcs)

    def settle(self) -> bool:
        """Raise the bound, relax the bucket's remainder, and find near vertices; False if none is left."""
        low = self.backend.to_host(self.lowest)[0].item()
        if self.bound == self.top or (low == self.top and not self.bucket_row_arcs):
            return False
        arcs = len(self.rows.targets)
        unsettled_arcs = arcs - self.settled_row_arcs - self.bucket_row_arcs
        is_last = self.has_pulled and unsettled_arcs * LAST_SHARE < arcs
        self.has_pulled = self.pulls and (self.has_pulled or unsettled_arcs < self.bucket_row_arcs)
        is_peak = self.max_bucket_arcs > PEAK_ARCS or self.max_bucket_arcs * PEAK_SHARE > arcs
        if is_peak and self.bucket_arcs * TAIL_SHARE < self.max_bucket_arcs:
            self.delta += self.delta
        self.max_bucket_arcs = max(self.max_bucket_arcs, self.bucket_arcs)
        self.bucket_arcs = 0
        self._raise_bound(self.bound if self.bucket_row_arcs else low, is_unbounded=is_last)
        self.counters[:] = 0
        self.lowest[:] = self.top
        self.bucket_row_arcs = 0
        if self.has_pulled:
            self._pull()
        else:
            self._push_heavy()
        return True

    def _pull(self) -> None:
        backend = self.backend
        rows = self.rows
        pull_distances[backend](
            0, self.n, rows.indptr, rows.targets, rows.weights, self.lightest.targets, self.lightest.weights,
            self.scale, self.bounds, self.dist, self.near, self.lowest, self.counters,
        )  # fmt: skip
        self.near_size, arcs, settled = backend.to_host(self.counters).tolist()
        self.settled_row_arcs += settled
        self.relaxation.set_queued(self.near[: self.near_size])
        self.trace.superstep("pull", self.near_size, arcs)

    def _push_heavy(self) -> None:
        backend = self.backend
        rows = self.rows
        list_settled[backend](
            0, self.n, rows.indptr, self.dist, self.bounds, self.marked, self.bucket, self.near, self.lowest,
            self.counters,
        )  # fmt: skip
        num_near, size, settled = backend.to_host(self.counters).tolist()
        self.settled_row_arcs += settled
        self.near_size, arcs = self.relaxation.relax_rows(
            self.bucket[:size], self.bounds, self.marked, self.near, num_near, self.found, self.lowest
        )
        clear_marks[backend](0, num_near, self.near, self.marked)
        self.bucket_arcs += arcs
        self.trace.superstep("heavy", size, arcs)

    def _raise_bound(self, low: float | int, *, is_unbounded: bool = False) -> None:
        """Raise the bound to delta above `low`, past it in any case, or to infinity, and write the kernels' bounds.

        All below `low` is settled: it is the bound or, if the bucket left no arcs to relax, the lowest distance that
        waits.
        """
        dtype = self.dist.dtype
        begin = self.settled
        bound = max(low + self.delta, just_above(low, dtype))
        is_past_all = is_unbounded or (dtype.kind == "f" and bound > float(np.finfo(dtype).max))
        self.settled = low
        self.bound = self.top if is_past_all else min(bound, self.top)
        pull_limit = self.top if is_unbounded else self.settled
        bounds = np.array([self.settled, self.bound, self.cutoff, begin, pull_limit], dtype)
        self.bounds = self.backend.to_device(bounds)
        # In the state's width, as in the kernels.
        self.bound = self.backend.to_host(self.bounds)[1].item()


VARIANT = Variant(
    "sssp.delta_stepping",
    when="on one rank, if many arcs are heavier than a bucket is wide, the host starting each step",
    applies=lambda conditions: conditions.has_rows and conditions.num_ranks == 1 and conditions.has_heavy_arcs,
    needs=(LIGHTEST_ARCS,),
    bytes=step_bytes,
    loop=sssp_delta_stepping,
    takes_until=True,
)
