"""Find shortest paths by frontiers, near before far.

    far = sources
    repeat until far is empty:
        bound = the smallest distance in far + delta
        near = the vertices of far below the bound
        while near is not empty on any rank:
            relax every arc out of near; found = the vertices it lowered
            send found vertices of other owners there as (vertex, distance) pairs; owners keep the smallest
            near = those found below the bound; the others wait in far, once each

Label-correcting: a vertex is relaxed again whenever its distance falls, so that delta decides how much work is done,
never the result. Far is a queue while it is short. Then it is every vertex at a distance of at least the bound, and a
scan of the distances finds those below the next bound. The smallest distance in far is the smallest that was seen to
wait; where that one fell since, near is empty. At the end the owner's distances are final; other copies are upper
bounds, good to drop candidates before they are sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.step_kernels import mark_bits
from mgraph.algorithms.common.checkpoints import Checkpoints, KeptState
from mgraph.algorithms.common.dtype_ladder import searched_bytes
from mgraph.algorithms.common.send_to_owners import send_to_owners
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.sssp.near_far_kernels import (
    clear_marks,
    measure_rows,
    merge_distances,
    relax_frontier,
    scan_distances,
    split_far,
    split_found,
)
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.partition import own_states
from mgraph.shard.lightest_arcs import DELTA_LIGHTEST, SPARSE_DEGREE
from mgraph.shard.shard import GraphInfo, Shard, cached_on_shard
from mgraph.types import Array, smallest_of, unreached_of

# Delta in mean weights per mean degree: few vertices are relaxed twice, and the rounds are long enough to wait for
# other ranks. One rank alone has cheap rounds, and does better with narrower buckets; but with lightest arcs wider ones
# cost little, and on meshes and road maps, of low degree, its rounds are so short that many mean weights are best
# (rmat20 to 24, uni24 and grid4k on one H200).
DELTA = 32.0
DELTA_ALONE = 4.0
DELTA_SPARSE = 16.0
# Far is a queue up to this share of the vertices: looking up its distances costs more than scanning all.
DENSE_SHARE = 16
# Weights of each rank from which the median is estimated.
SAMPLED_WEIGHTS = 1 << 10


def sssp(
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
    starts = own_states(shard.partition, comm.rank, sources)
    targets = own_states(shard.partition, comm.rank, until) if until else None
    search = NearFarSearch(ArcsOfRows(shard), comm, starts, dtype, cutoff, targets, trace.checkpoints)
    search.run(default_delta(shard, dtype, mean_weight=typical_weight(shard, comm)), trace)
    return Traversal(search.own_distances, None)


def are_settled(backend: Backend, distances: Array, targets: Array, bound: float | int) -> bool:
    """Return whether the distances of all targets are below a bound, below which all is settled."""
    return bool((backend.to_host(distances[targets]) < bound).all())


def drop_unsettled(distances: Array, bound: float | int) -> None:
    """Make vertices unreached if their distances are not below the bound, and may still fall."""
    distances[distances >= bound] = unreached_of(distances.dtype)


@cached_on_shard
def typical_weight(shard: Shard, comm: Communicator) -> float:
    """Return the mean weight, or twice the median of a sample if that is less; collective.

    A few very heavy arcs raise the mean without bound: buckets of that width would hold all other paths.
    """
    sample = sampled_weights(shard)
    own = np.full(SAMPLED_WEIGHTS, np.nan)
    own[: len(sample)] = shard.backend.to_host(sample)
    of_all = np.empty(SAMPLED_WEIGHTS * comm.size)
    comm.allgather(own, of_all)
    known = of_all[~np.isnan(of_all)]
    return min(shard.info.mean_weight, 2 * float(np.sort(known)[len(known) // 2])) if len(known) else 0.0


def sampled_weights(shard: Shard) -> Array:
    """Return at most SAMPLED_WEIGHTS weights of this rank, at equal steps."""
    weights = shard.rows.weights
    assert weights is not None, "shortest paths have weights"
    return weights[:: -(-len(weights) // SAMPLED_WEIGHTS) or 1]


def default_delta(
    shard: Shard,
    dtype: np.dtype,
    with_lightest: float = DELTA_LIGHTEST,
    mean_weight: float | None = None,
) -> float | int:
    """Return the width of a bucket for this graph's degrees and weights, or for another mean weight."""
    info = shard.info
    mean_weight = info.mean_weight if mean_weight is None else mean_weight
    num_ranks = shard.partition.num_ranks
    alone = DELTA_ALONE if shard.lightest_arcs is None else with_lightest
    widths = (DELTA if num_ranks > 1 else alone) / info.mean_degree
    if num_ranks == 1 and info.mean_degree < SPARSE_DEGREE:
        widths = DELTA_SPARSE
    return bucket_width(info, dtype, widths * mean_weight)


def bucket_width(info: GraphInfo, dtype: np.dtype, wanted: float) -> float | int:
    """Return a width of a bucket in `dtype`: at least the lightest weight, since no arc stays in a narrower one."""
    delta = max(wanted, info.min_weight)
    if dtype.kind == "f":
        return min(max(delta or 1.0, smallest_of(dtype)), float(np.finfo(dtype).max))
    return min(max(1, round(delta)), unreached_of(dtype))


def just_above(distance: float | int, dtype: np.dtype) -> float | int:
    """Return the smallest distance beyond this one, infinity beyond the largest float."""
    if dtype.kind != "f":
        return distance + 1
    with np.errstate(over="ignore"):
        return np.nextafter(distance, np.inf, dtype=dtype).item()


class ArcsOfRows:
    """The arcs that a search relaxes, between states of vertices."""

    # States of each vertex. The slice of a rank has a first one of all its vertices, then a second one, and so on.
    copies = 1

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def relax(self, frontier: Array, offsets: Array, begins: Array, *lowered: Array) -> int:
        """Relax the arcs out of a frontier; return how many. `lowered` are the kernel's parameters from bounds on."""
        rows = self.shard.rows
        arcs = int(offsets[-1])
        relax_frontier[self.shard.backend](
            0, arcs, frontier, len(frontier), offsets, begins, rows.targets, rows.weights, *lowered
        )
        return arcs


class NearFarSearch:
    """The arrays of one search on one rank; `num_near` is over all ranks.

    It begins at the states `starts`, and ends once the states `targets` are settled, in both those of this rank; with
    None, which all ranks give, it goes on to the end.
    """

    def __init__(
        self,
        arcs: ArcsOfRows,
        comm: Communicator,
        starts: np.ndarray,
        dtype: np.dtype,
        cutoff: float | int | None,
        targets: np.ndarray | None,
        checkpoints: Checkpoints,
    ) -> None:
        shard = arcs.shard
        partition = shard.partition
        xp = shard.backend.xp
        num_states = arcs.copies * partition.num_states
        stride = arcs.copies * partition.stride
        self.arcs = arcs
        self.comm = comm
        self.checkpoints = checkpoints
        self.backend = shard.backend
        self.base = comm.rank * stride
        self.num_own = stride - partition.stride + shard.num_owned
        self.top = unreached_of(dtype)
        self.cutoff = self.top if cutoff is None else cutoff
        self.dist = self.backend.full(num_states, self.top, dtype)
        self._set_bounds(0, 0)
        self.num_near = 0
        self.marked = xp.zeros(num_states // 32, np.uint32)
        self.in_far = xp.zeros(num_states // 32, np.uint32)
        self.found = xp.empty(num_states, partition.dtype)
        self.near, self.far, self.next_far = (xp.empty(stride, partition.dtype) for _ in range(3))
        # The sources wait in far, from which the first bound moves them to near.
        self.far_size = len(starts)
        self.far[: len(starts)] = self.backend.to_device(starts)
        self.dist[self.far[: len(starts)]] = 0
        self.lowest = xp.full(1, 0 if len(starts) else self.top, dtype)
        self.keeps_far = True
        if checkpoints.found is not None:
            self._go_on_from(checkpoints.found)
        self.counters = xp.zeros(2, np.int64)
        self.is_done = False
        self.targets = None if targets is None else self.backend.to_device(targets.astype(np.int64))

    def _go_on_from(self, state: KeptState) -> None:
        """Begin with the distances of a checkpoint: far is what is reached, and not below its bound."""
        self.own_distances[:] = state.values
        self._set_bounds(state.bound, state.bound)
        far = ((state.values >= state.bound) & (state.values < self.top)).nonzero()[0]
        self.far_size = len(far)
        self.far[: len(far)] = far + self.base
        mark_bits[self.backend](0, len(far), self.far, self.in_far)
        self.lowest[:] = state.values[far].min() if len(far) else self.top

    @property
    def own_distances(self) -> Array:
        """The distances of the owned states, a view."""
        return self.dist[self.base : self.base + self.num_own]

    def run(self, delta: float | int, trace: Trace) -> None:
        """Search to the end, in buckets of this width."""
        while self.advance(delta):
            while self.num_near:
                near = self.num_near
                arcs = self.relax()
                trace.superstep(method="push", frontier=near, arcs=arcs)
                if self.is_due:
                    trace.checkpoints.keep(KeptState(self.own_distances, self.settled))
        if self.is_done:
            drop_unsettled(self.own_distances, self.bound)

    def relax(self) -> int:
        """Relax every arc out of near, queue the lowered states; return this rank's arcs."""
        backend = self.backend
        near = self.near[: self.near_size]
        offsets = backend.xp.zeros(len(near) + 1, np.int64)
        begins = backend.xp.empty(len(near), np.int64)
        shard = self.arcs.shard
        measure_rows[backend](0, len(near), near, shard.rows.indptr, shard.partition.stride, begins, offsets[1:])
        backend.xp.cumsum(offsets[1:], out=offsets[1:])
        counters = backend.xp.zeros(1, np.int64)
        arcs = self.arcs.relax(near, offsets, begins, self.bounds, self.dist, self.marked, self.found, counters)
        found = self.found[: int(counters[0])]
        own = self._send_to_owners(found, counters) if self.comm.size > 1 else found
        clear_marks[backend](0, int(counters[0]), self.found, self.marked)
        self.counters[0] = 0
        split_found[backend](
            0, len(own), own, self.dist, self.bounds, int(self.keeps_far), self.in_far, self.near, self.far,
            self.lowest, self.counters,
        )  # fmt: skip
        self._count()
        return arcs

    def advance(self, delta: float | int) -> bool:
        """Raise the bound to delta above the smallest distance in far, and move what is below it to near.

        Return whether any rank had a state in far, and not all targets are below the bound, where all is settled.
        """
        backend = self.backend
        own = (self.base, self.base + self.num_own)
        settled = self.targets is not None and are_settled(backend, self.dist, self.targets, self.bound)
        words = np.array([backend.to_host(self.lowest)[0], settled], self.dist.dtype)
        lowest, is_done = self.comm.allreduce(words, "min").tolist()
        self.is_done = bool(is_done)
        if lowest == self.top or self.is_done:
            return False
        # Beyond 2^24 a float32 may absorb delta: the bound must pass the smallest distance all the same.
        dtype = self.dist.dtype
        bound = max(lowest + delta, just_above(lowest, dtype))
        # Beyond the largest float of its width there are unreached vertices alone.
        is_past_all = dtype.kind == "f" and bound > float(np.finfo(dtype).max)
        self._set_bounds(self.bound, self.top if is_past_all else min(bound, self.top))
        self.keeps_far = self.keeps_far and self.far_size * DENSE_SHARE <= self.num_own
        self.counters[:] = 0
        self.lowest[:] = self.top
        if self.keeps_far:
            split_far[backend](
                0, self.far_size, self.far, self.dist, self.bounds, self.in_far, self.near, self.next_far, self.lowest,
                self.counters,
            )  # fmt: skip
            self.far, self.next_far = self.next_far, self.far
        else:
            scan_distances[backend](*own, self.dist, self.bounds, self.near, self.lowest, self.counters)
        self._count()
        return True

    def _send_to_owners(self, found: Array, counters: Array) -> Array:
        """Send lowered distances to their owners; return the own states, lowered here or received."""
        own, (states, values) = send_to_owners(self.arcs.shard, self.comm, found, self.dist)
        merge_distances[self.backend](0, len(states), states, values, self.dist, self.marked, self.found, counters)
        return self.backend.xp.concatenate([own, self.found[len(found) : int(counters[0])]])

    def _count(self) -> None:
        """Read the lengths of the queues."""
        self.near_size, self.far_size = self.backend.to_host(self.counters).tolist()
        self.num_near, self.is_due = self.comm.sum(self.near_size, self.checkpoints.is_due())

    def _set_bounds(self, settled: float | int, bound: float | int) -> None:
        """Write new bounds for the kernels: below what all is settled, and below what is near."""
        dtype = self.dist.dtype
        self.bounds = self.backend.to_device(np.array([settled, bound, self.cutoff], dtype))
        self.settled = settled
        # In the state's width, as in the kernels.
        self.bound = dtype.type(bound).item()


def step_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search by steps: distances, queues of all states and of owned ones, offsets, marks."""
    states = sizes.states
    owned = sizes.owned
    vertex = sizes.vertex
    queues = vertex * states + 3 * vertex * sizes.partition.stride
    search = searched_bytes(sizes, has_peer_buffers=False) * states + queues + 8 * owned + states // 4
    # Predecessors, and sums of degrees. A pool keeps freed memory: parts add up.
    return search + (8 + 12) * owned


VARIANT = Variant(
    "sssp.near_far",
    when="on any ranks, the host starting each round",
    applies=lambda conditions: conditions.has_rows,
    bytes=step_bytes,
    loop=sssp,
    takes_until=True,
    keeps_checkpoints=True,
)
