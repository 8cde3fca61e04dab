"""Breadth-first search by frontiers: each level pushed or pulled, whichever scans fewer arcs.

    frontier = sources
    while the frontier is not empty:
        push: each arc out of the frontier proposes its source as a parent; targets without one are found
              found remote vertices are sent to their owners as (vertex, parent); the smallest parent wins
        pull: each unreached vertex scans its row for one on the frontier
              the frontier is gathered as a bitmap, or as a list of ids where that is shorter
        frontier = the vertices found

Pull scans few arcs when the frontier is large, because most rows hit at once (Beamer, Asanovic
and Patterson, 2012). Parents are positions and only decrease, so both directions find the same one: the
smallest. Valid at the end: the owner's levels, parents and visited bits; other copies may lag.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.step_kernels import mark_bits, merge_parents, pull_level, push_level, settle_level
from mgraph.algorithms.common.checkpoints import Checkpoints, KeptState
from mgraph.algorithms.common.send_to_owners import send_to_owners
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.partition import own_states
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, Array, none_of, unreached_of

# Push again when the frontier has fewer than 1/BETA of the vertices: the GAP benchmark's value, good to a
# factor of two.
BETA = 18
# Pull only when the frontier grows by this factor, as it does in graphs of small diameter. On a grid it never does;
# near its end any frontier is large compared with the unreached rest, and each level would scan all of that.
GROWTH = 2


def bfs(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal:
    """Find levels and parents from `sources`, which are positions; only up to the level of the last of `until`."""
    search = LevelSearch(shard, comm, sources, until, trace.checkpoints)
    pulling = False
    arcs_before = 0
    while search.num_frontier and search.level != depth_limit and not search.is_done:
        if search.is_due:
            trace.checkpoints.keep(KeptState(search.levels, search.level))
        frontier = search.num_frontier
        arcs = search.frontier_arcs
        num_positions = shard.partition.num_positions
        pulling = pull_pays(pulling, frontier, arcs, arcs_before, search.num_left, search.arcs_left, num_positions)
        arcs_before = arcs
        if pulling:
            search.pull()
        else:
            search.push()
        trace.superstep(method="pull" if pulling else "push", frontier=frontier, arcs=search.scanned)
    own = slice(search.base, search.base + shard.num_owned)
    # Of the levels before a checkpoint the parents are not known.
    parents = None if trace.checkpoints.found else search.parents[own]
    return Traversal(search.levels, parents, search.num_reached, search.reached_arcs)


def pull_pays(
    pulled: bool, frontier: int, arcs: int, arcs_before: int, num_left: int, arcs_left: int, num_vertices: int
) -> bool:
    """Return whether to pull the next level; `arcs` are the frontier's, `arcs_before` those of the one before.

    `pulled` is whether that one was pulled; `left` is what is not reached.
    """
    if pulled:
        return frontier * BETA > num_vertices
    # Of the unscanned arcs, arcs / arcs_left start at the frontier: a vertex scans the inverse until it hits.
    # Pulling pays when all unreached vertices together scan fewer arcs than the frontier has.
    return arcs > GROWTH * arcs_before and float(arcs) * arcs > float(num_left) * arcs_left


class LevelSearch:
    """The arrays of one search on one rank; counts are over all ranks, but for those of reached vertices."""

    def __init__(
        self,
        shard: Shard,
        comm: Communicator,
        sources: list[int],
        until: Sequence[int],
        checkpoints: Checkpoints,
    ) -> None:
        xp = shard.backend.xp
        partition = shard.partition
        self.shard = shard
        self.comm = comm
        self.checkpoints = checkpoints
        self.backend = shard.backend
        self.base = comm.rank * partition.stride
        self.level = -1
        self.levels = self.backend.full(shard.num_owned, unreached_of(LEVEL), LEVEL)
        self.parents = self.backend.full(partition.num_states, none_of(partition.dtype), partition.dtype)
        self.visited = xp.zeros(partition.num_states // 32, np.uint32)
        self.num_left = partition.num_positions
        self.arcs_left = shard.info.num_arcs
        # This rank's reached vertices, and their arcs.
        self.num_reached = self.reached_arcs = 0
        self.found = xp.empty(partition.num_states, partition.dtype)
        self.num_targets = len({*until})
        targets = own_states(partition, comm.rank, until)
        self.targets = shard.backend.to_device((targets - self.base).astype(np.int64))
        if checkpoints.found is not None:
            _go_on_from(self, checkpoints.found)
            return
        own = own_states(partition, comm.rank, sources)
        self.frontier = shard.backend.to_device(own)
        positions = np.array([partition.position(s) for s in own.tolist()], partition.dtype)
        self.parents[self.frontier] = shard.backend.to_device(positions)
        self.settle(xp.zeros(3, np.int64))

    def push(self) -> None:
        """Extend the search by one level along the frontier's arcs."""
        shard = self.shard
        partition = self.shard.partition
        arcs = int(self.offsets[-1])
        counters = self.backend.xp.zeros(3, np.int64)
        push_level[self.backend](
            0, arcs, self.frontier, len(self.frontier), self.offsets, shard.rows.indptr, shard.rows.targets,
            self.visited, self.base, partition.offset(self.comm.rank), partition.multiplier,
            self.parents, self.found, counters,
        )  # fmt: skip
        found = self.found[: int(counters[0])]
        self.frontier = self._send_found(found, counters) if self.comm.size > 1 else found.copy()
        self.settle(counters)
        self.scanned = arcs

    def pull(self) -> None:
        """Extend the search by one level from the rows of unreached vertices."""
        shard = self.shard
        partition = self.shard.partition
        rows = self.shard.incoming
        counters = self.backend.xp.zeros(3, np.int64)
        pull_level[self.backend](
            0, shard.num_owned, rows.indptr, rows.targets, self._gather_frontier(), self.visited,
            self.base, partition.stride, partition.multiplier, self.parents, self.found, counters,
        )  # fmt: skip
        self.frontier = self.found[: int(counters[0])].copy()
        self.settle(counters)

    def _send_found(self, found: Array, counters: Array) -> Array:
        """Send found remote vertices to their owners; return the owned ones, found here or remotely."""
        own, (states, positions) = send_to_owners(self.shard, self.comm, found, self.parents)
        merge_parents[self.backend](0, len(states), states, positions, self.visited, self.parents, self.found, counters)
        # Only after the merge: an owned vertex must not be visited yet when received candidates are merged.
        mark_bits[self.backend](0, len(found), found, self.visited)
        return self.backend.xp.concatenate([own, self.found[len(found) : int(counters[0])]])

    def settle(self, counters: Array) -> None:
        """Give the new frontier its level, and count it and its arcs over all ranks."""
        self.level += 1
        xp = self.backend.xp
        size = len(self.frontier)
        self.offsets = xp.zeros(size + 1, np.int64)
        settle_level[self.backend](
            0, size, self.frontier, self.shard.rows.indptr, self.base, self.level,
            self.visited, self.levels, self.offsets[1:], counters,
        )  # fmt: skip
        xp.cumsum(self.offsets[1:], out=self.offsets[1:])
        arcs, self.scanned = self.backend.to_host(counters)[1:].tolist()
        self.num_reached += size
        self.reached_arcs += arcs
        targets_reached = 0
        if len(self.targets):
            targets_reached = int((self.levels[self.targets] != unreached_of(LEVEL)).sum())
        is_due = self.checkpoints.is_due()
        totals = self.comm.sum(size, arcs, targets_reached, is_due)
        self.num_frontier, self.frontier_arcs, targets_reached, self.is_due = totals
        self.is_done = 0 < self.num_targets == targets_reached
        self.num_left -= self.num_frontier
        self.arcs_left -= self.frontier_arcs

    def _gather_frontier(self) -> Array:
        """Return the frontier of all ranks as a bitmap, sent as bits or as ids, whichever is shorter."""
        xp = self.backend.xp
        partition = self.shard.partition
        size = self.comm.size
        bits = xp.zeros(partition.num_states // 32, np.uint32)
        states = self.frontier
        if size > 1 and self.num_frontier * partition.dtype.itemsize < bits.nbytes:
            states = xp.concatenate(self.comm.alltoallv([self.frontier] * size))
        mark_bits[self.backend](0, len(states), states, bits)
        if size > 1 and states is self.frontier:
            words = partition.stride // 32
            self.comm.allgather(bits[self.comm.rank * words :][:words], bits)
        return bits


def _go_on_from(search: LevelSearch, state: KeptState) -> None:
    """Begin a search with the frontier of a checkpoint."""
    dtype = search.shard.partition.dtype
    search.levels = levels = state.values
    search.level = int(state.bound) - 1
    before = levels < state.bound
    reached = (before.nonzero()[0] + search.base).astype(dtype)
    mark_bits[search.backend](0, len(reached), reached, search.visited)
    search.num_reached = len(reached)
    search.reached_arcs = total(search.backend, search.shard.degrees * before)
    num_reached, reached_arcs = search.comm.sum(search.num_reached, search.reached_arcs)
    search.num_left -= num_reached
    search.arcs_left -= reached_arcs
    search.frontier = ((levels == state.bound).nonzero()[0] + search.base).astype(dtype)
    search.settle(search.backend.xp.zeros(3, np.int64))


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of levels, parents, a queue, bitmaps and offsets of a frontier, and of adding up degrees."""
    return 4 * sizes.owned + 2 * sizes.vertex * sizes.states + 3 * sizes.states // 8 + (16 + 8 + 12) * sizes.owned


VARIANT = Variant(
    "bfs.step",
    when="on any ranks, the host starting each level",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=bfs,
    takes_until=True,
    keeps_checkpoints=True,
)
