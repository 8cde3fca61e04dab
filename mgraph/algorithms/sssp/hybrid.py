"""Find shortest paths on one CPU rank: narrow searches by one core in a compiled loop, wide ones by all cores.

    while vertices wait:
        few wait: one core settles small buckets (hybrid_near_kernels.py)
            where it relaxes vertices again and again: the nearest, one after the other (Dijkstra; hybrid_kernels.py,
            radix_queue.py)
        many wait, and rows have lightest arcs: all cores settle buckets, until few arcs are relaxed in one and few
            vertices wait (delta_stepping.py, hybrid_wide.py)
        many wait, and rows have none: all cores settle wide buckets in one loop, until few wait (hybrid_joint.py)

A bucket of all cores takes some 100 us and a scan of all distances, whatever is in it, and in one loop some barriers;
one core takes some 30 ns a vertex of a road map, and several times as long in order of distance. Any loop begins where
another one ends: nearer vertices than a bound are settled, and all their arcs relaxed; all others that are reached
wait. Without lightest arcs one core searches to the end where weights may be 0 or are no integers, where distances have
more than 32 bits, and on small graphs; where a few weights are so heavy that classes sort no others, as without.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.common.dtype_ladder import searched_bytes
from mgraph.algorithms.common.gpu_or_host import max_wide_arcs
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import LIGHTEST_ARCS
from mgraph.algorithms.predecessors.as_far_kernels import explain_as_far
from mgraph.algorithms.sssp import hybrid_near_kernels as near_kernels
from mgraph.algorithms.sssp.delta_stepping import BucketSearch
from mgraph.algorithms.sssp.hybrid_joint import JOINT_BYTES, JointSearch, may_join
from mgraph.algorithms.sssp.hybrid_kernels import (
    AS_FAR,
    MAX_SCANNED,
    MAX_SIZE,
    MIN_DEGREE,
    NUM_SEARCH_WORDS,
    SCANNED,
    SIZE,
    begin_search,
    settle_nearest,
)
from mgraph.algorithms.sssp.hybrid_wide import PartwiseRelaxation, candidate_bytes
from mgraph.algorithms.sssp.near_far import (
    bucket_width,
    default_delta,
    drop_unsettled,
    sampled_weights,
    step_bytes,
    typical_weight,
)
from mgraph.algorithms.sssp.radix_queue import RadixQueue, begin_queue, queue_bytes, queue_capacity, queue_shapes
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.recycled import restore_later
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.partition import own_states
from mgraph.shard.lightest_arcs import class_scale
from mgraph.shard.narrow_indptr import NARROW_BYTES, narrow_indptr
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.shard.user_ids import SMALL_SHARE
from mgraph.types import Array, none_of, unreached_of

# The width of one core's first bucket, in typical weights per mean degree; the loop changes it. (Roads and meshes of
# 2^18 vertices take as long with a quarter and with four times this width; RMAT and uniform graphs of 2^16 vertices
# take a tenth to a quarter longer with four times.) The typical weight per degree is at most half the quantile of all
# weights at 1 / degree, about the lightest arc of a vertex: the same for uniform weights, far less for weights of all
# magnitudes, where paths follow light arcs.
FIRST_WIDTH = 1.5
# WASTE_LIMIT, beside the rows of the vertices from which it begins.
MAX_WASTED = 1 << 16
# A search is wide if more vertices wait, and narrow again if a bucket has fewer arcs than this share of the vertices.
MAX_WAITING = 1 << 13
NARROW_SHARE = 8
# A GPU is faster than one core if more than WIDE * MAX_WAITING vertices wait.
WIDE = 8
# The compiled loop returns after this many arcs, a second at most, so that an abort is noticed.
STEP_ARCS = 1 << 22
UNLIMITED = int(np.iinfo(np.int64).max)
NO_TARGETS = np.empty(0, np.int64)
NOTHING_WRITTEN = NO_TARGETS
BYTE = np.dtype(np.uint8)


def sssp_hybrid(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find distances in `dtype` from positions `sources`; predecessors too, if one core finds all of them.

    With `until`, only up to the distance of the farthest of these positions. Return None if many vertices wait, where
    the host was chosen for a GPU because few do, and the graph has more arcs than it may relax then.
    """
    only_narrow = max_wide_arcs(shard, "sssp") < shard.info.num_arcs
    search = _SerialSearch(shard, comm, sources, dtype, cutoff, until)
    joint: JointSearch | None = None
    if only_narrow:
        search.max_waiting = WIDE * MAX_WAITING
    elif not _may_be_wide(shard, comm):
        search.max_waiting = UNLIMITED
        if may_join(shard.info, search.backend, dtype, search.parents.dtype) and not until:
            joint = JointSearch(shard, search.backend, search.dist, search.parents, search.cutoff)
            search.max_waiting = joint.max_serial
            search.ends_alone = True
    waiting: Array | None = search.starts
    buckets: BucketSearch | None = None
    while waiting is not None and search.settle(waiting, trace):
        if only_narrow:
            return None
        if joint is not None:
            waiting = joint.settle(search.waiting, int(search.bounds[near_kernels.WIDTH]), trace)
            search.go_on_from(joint)
            continue
        if buckets is None:
            delta = default_delta(shard, dtype, mean_weight=typical_weight(shard, comm))
            relaxation = PartwiseRelaxation(shard, search.dist)
            buckets = BucketSearch(shard, trace, search.dist, cutoff, delta, relaxation)
        # An estimate: arcs that are relaxed again count again.
        buckets.begin(search.bound, min(search.settled_arcs, shard.info.num_arcs))
        waiting = _settle_buckets(buckets, search.targets)
    if buckets is None:
        return search.result()
    if waiting is not None and search.size:
        # One core has settled the targets, and not all that is farther.
        drop_unsettled(search.dist, search.bound)
    return Traversal(search.dist, None)


@cached_on_shard
def first_width(shard: Shard, comm: Communicator, dtype: np.dtype) -> float | int:
    """Return the width of one core's first bucket."""
    degree = max(shard.info.mean_degree, 1.0)
    sample = sampled_weights(shard)
    light = float(np.quantile(sample, 1 / degree)) / 2 if len(sample) else 0.0
    typical = typical_weight(shard, comm) / degree
    return bucket_width(shard.info, dtype, FIRST_WIDTH * min(typical, light or typical))


def min_degree(shard: Shard) -> int:
    """Return the least degree of a vertex over which a search goes on: an arc of an undirected one leads back."""
    return 1 if shard.info.directed else 2


def near_shapes(num_vertices: int, vertex: np.dtype, num_listed: int) -> tuple[tuple[int, np.dtype], ...]:
    """Return lengths and dtypes of near, which is circular, of far, and of a list of the first vertices reached."""
    return (1 << num_vertices.bit_length(), vertex), (num_vertices + 1, vertex), (num_listed, vertex)


def _may_be_wide(shard: Shard, comm: Communicator) -> bool:
    """Return whether there are lightest arcs, and their classes are not so wide that most are of the first."""
    return shard.lightest_arcs is not None and typical_weight(shard, comm) * class_scale(shard.info) >= 1


def _settle_buckets(buckets: BucketSearch, targets: Array) -> Array | None:
    """Settle buckets until the search is narrow; return the vertices that wait, None where it has ended."""
    while True:
        while buckets.near_size:
            buckets.push()
            # In the last bucket no arc is heavy: of all vertices only those near have arcs to be relaxed.
            if buckets.bound == buckets.top and 0 < buckets.near_size <= MAX_WAITING // 2:
                return buckets.near[: buckets.near_size]
        if buckets.has_settled(targets):
            drop_unsettled(buckets.dist, buckets.bound)
            return None
        is_small = buckets.bucket_arcs * NARROW_SHARE < buckets.n
        if not buckets.settle():
            return None
        if is_small:
            waiting = buckets.waiting()
            if len(waiting) <= MAX_WAITING // 2:
                return waiting


class _SerialSearch:
    """The distances of a search, and a queue of the vertices that wait."""

    def __init__(
        self,
        shard: Shard,
        comm: Communicator,
        sources: list[int],
        dtype: np.dtype,
        cutoff: float | int | None,
        until: Sequence[int],
    ) -> None:
        n = shard.num_owned
        vertex = shard.partition.dtype
        self.shard = shard
        self.top = unreached_of(dtype)
        self.cutoff = dtype.type(self.top if cutoff is None else cutoff)
        self.max_waiting = MAX_WAITING
        # Whether all cores take over from buckets alone: in order of distance one core goes on to the end.
        self.ends_alone = False
        self.targets = own_states(shard.partition, comm.rank, until).astype(np.int64) if until else NO_TARGETS
        backend = shard.backend
        assert isinstance(backend, CpuBackend), "the variant applies to no other"
        self.backend = backend
        self.dist, has_distances = backend.restored(n, dtype, self.top)
        self.parents, has_parents = backend.restored(n, vertex, none_of(vertex))
        self.starts = starts = own_states(shard.partition, comm.rank, sources)
        self.num_reached = len(starts)
        # Listed are the first vertices reached: all of them where they are few.
        self.near, self.far, self.listed = backend.empty_arrays(*near_shapes(n, vertex, len(starts) + n // SMALL_SHARE))
        self.where = backend.filled(n, BYTE, near_kernels.NOWHERE)
        self.bounds = np.array([0, 0, first_width(shard, comm, dtype)], dtype)
        self.reached_arcs = begin_search(
            starts, has_distances, has_parents, shard.rows.indptr, self.dist, self.parents, self.listed
        )
        self.settled_arcs = self.num_as_far = 0
        # How many vertices wait, and the distance of the nearest, where one core has returned.
        self.size = 0
        self.bound: float | int = 0
        self.waiting = self.starts
        self.is_listed = True

    def settle(self, waiting: Array, trace: Trace) -> bool:
        """Settle the nearest vertices by one core; return whether so many wait that all cores are faster."""
        scanned = self.settled_arcs
        reason, left = self._settle_near(waiting)
        is_wide = reason == near_kernels.TOO_WIDE
        self.size = 0
        self.waiting = left
        if reason == near_kernels.WASTEFUL:
            self.max_waiting = UNLIMITED if self.ends_alone else self.max_waiting
            self._settle_nearest(left)
            is_wide = self.size > self.max_waiting
        elif len(left):
            self.size = len(left)
            self.bound = self.dist[left].min().item()
        trace.superstep("serial", len(waiting), self.settled_arcs - scanned)
        return is_wide

    def go_on_from(self, joint: JointSearch) -> None:
        """Go on, or end, with what all cores have found."""
        self.max_waiting = joint.max_serial
        self.size = 0
        if joint.found is not None:
            self.num_reached, self.reached_arcs = joint.found.tolist()
            self.is_listed = False

    def _settle_near(self, waiting: Array) -> tuple[int, Array]:
        """Settle buckets by one core; return why it stopped, and the vertices that wait."""
        rows = self.shard.rows
        state = np.zeros(near_kernels.NUM_WORDS, np.int64)
        indptr = narrow_indptr(self.shard)
        queue = self.near, self.far, self.where, state, self.bounds
        near_kernels.begin_near(waiting, *queue, self.dist)
        state[near_kernels.WAITING_LIMIT] = self.max_waiting
        state[near_kernels.MIN_WAITING_DEGREE] = min_degree(self.shard)
        # FOUND_ARCS lacks the rows of these, which were found before.
        state[near_kernels.WASTE_LIMIT] = MAX_WASTED + 2 * int((rows.indptr[waiting + 1] - rows.indptr[waiting]).sum())
        state[near_kernels.REASON] = near_kernels.PAUSED
        while state[near_kernels.REASON] == near_kernels.PAUSED:
            self._require_running()
            state[near_kernels.PAUSE_LIMIT] = state[near_kernels.SCANNED] + state[near_kernels.FAR_SCANNED] + STEP_ARCS
            near_kernels.settle_near(
                *queue, indptr, rows.targets, rows.weights, self.cutoff, self.targets, self.dist, self.parents,
                self.listed[self.num_reached :],
            )  # fmt: skip
        self._count(*state[near_kernels.FOUND : near_kernels.AS_FAR + 1].tolist())
        num_waiting = near_kernels.take_waiting(self.near, self.far, self.where, state)
        return int(state[near_kernels.REASON]), self.far[:num_waiting]

    def _settle_nearest(self, waiting: Array) -> None:
        """Settle the nearest vertices one after the other."""
        rows = self.shard.rows
        vertex = self.parents.dtype
        shapes = queue_shapes(queue_capacity(len(self.dist)), self.dist.dtype, vertex)
        keys, vertices, far_keys, far_vertices, nexts = self.backend.empty_arrays(*shapes)
        state = np.empty(NUM_SEARCH_WORDS, np.int64)
        queue = RadixQueue(keys, vertices, far_keys, far_vertices, nexts, state)
        indptr = narrow_indptr(self.shard)
        begin_queue(*queue[2:], waiting, self.dist)
        state[MAX_SIZE] = min(self.max_waiting, len(queue.keys))
        state[MIN_DEGREE] = min_degree(self.shard)
        state[MAX_SCANNED] = -1
        while state[SCANNED] > state[MAX_SCANNED]:
            self._require_running()
            state[MAX_SCANNED] = state[SCANNED] + STEP_ARCS
            settle_nearest(
                *queue, indptr, rows.targets, rows.weights, self.cutoff, self.targets, self.dist, self.parents,
                self.listed[self.num_reached :],
            )  # fmt: skip
        self.size, *counts = state[SIZE : AS_FAR + 1].tolist()
        self.bound = queue.keys[0].item()
        self._count(*counts)

    def _require_running(self) -> None:
        if self.backend.stopped is not None:
            raise CommAborted(self.backend.stopped)

    def _count(self, found: int, found_arcs: int, scanned: int, num_as_far: int) -> None:
        self.num_reached += found
        self.reached_arcs += found_arcs
        self.settled_arcs += scanned
        self.num_as_far += num_as_far

    def result(self) -> Traversal:
        """Return what one core found."""
        is_whole = not self.size
        if not is_whole:
            # All targets are settled: vertices beyond them are not, and not all of their predecessors are known.
            drop_unsettled(self.dist, self.bound)
            self.parents[self.dist == self.top] = none_of(self.parents.dtype)
        if self.num_as_far:
            rows = self.shard.rows
            hops = np.zeros(len(self.dist), np.int32)
            explain_as_far(self.far, hops, rows.indptr, rows.targets, rows.weights, self.dist, self.parents)
        if not is_whole:
            return Traversal(self.dist, self.parents)
        reached = None
        if self.is_listed and self.num_reached * SMALL_SHARE < len(self.dist):
            reached = self.listed[: self.num_reached].copy()
            restore_later(self.dist, reached)
            restore_later(self.parents, reached)
        restore_later(self.where, NOTHING_WRITTEN)
        return Traversal(self.dist, self.parents, self.num_reached, self.reached_arcs, reached=reached)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search by buckets, and of predecessors, hops, lists, queues and narrow starts of rows."""
    state = searched_bytes(sizes, has_peer_buffers=False)
    return (
        step_bytes(sizes)
        + (4 * sizes.vertex + 2 + 4 + NARROW_BYTES) * sizes.owned
        + sizes.vertex * sizes.owned // SMALL_SHARE
        + queue_bytes(queue_capacity(sizes.owned), state, sizes.vertex)
        + candidate_bytes(sizes.row_arcs, sizes.vertex, state)
        + JOINT_BYTES * sizes.owned
    )


VARIANT = Variant(
    "sssp.hybrid",
    when="on one CPU rank, narrow searches by one core in one loop, wide ones by all cores",
    applies=lambda conditions: conditions.is_one_cpu,
    wants=(LIGHTEST_ARCS,),
    bytes=_bytes,
    loop=sssp_hybrid,
    takes_until=True,
)
