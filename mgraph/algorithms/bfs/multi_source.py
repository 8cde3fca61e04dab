"""Multi-source breadth-first search (MS-BFS): one bit per root, so that one scan of an arc serves up to 64 roots.

    front = each root's bit at the root
    while any bit is in front:
        push: each arc out of the front adds its source's word to its target; words of remote targets go to their owners
        pull: each vertex that some root has not reached gathers the words of all its neighbors
        front = incoming bits that are new

Roots of a small world share most of their frontiers, so that a level costs little more for 64 than for one (Then et
al., 2014). Levels are kept in binary, a plane of words for each bit of the deepest: 3 planes for depths up to 7. Valid
at the end: each owner's words and planes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.bfs.multi_source_kernels import (
    count_roots,
    levels_of_root,
    merge_words,
    pull_words,
    push_words,
    settle_words,
)
from mgraph.algorithms.common.send_to_owners import send_to_owners
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Rows, Shard
from mgraph.types import LEVEL, Array, signed

# Roots of one word.
MAX_ROOTS = 64
# Roots of one call of a loop, which makes one or more searches of them.
BATCH_ROOTS = 256
# An arc that is pushed is an atomic operation, and one that is pulled a read.
PUSH_COST = 2


@dataclass
class WordLevels:
    """One rank's result of a search: the roots that have reached each owned vertex, and their levels in planes."""

    seen: Array
    planes: Array
    num_planes: int

    def levels(self, shard: Shard, root: int) -> Array:
        """Return one root's levels, as bfs() finds them."""
        n = len(self.seen)
        levels = shard.backend.xp.empty(n, LEVEL)
        levels_of_root[shard.backend](0, n, self.seen, self.planes, self.num_planes, n, root, levels)
        return levels

    def of_vertices(self, chosen: Array) -> WordLevels:
        """Return the result of some owned vertices."""
        planes = self.planes.reshape(self.num_planes, len(self.seen))[:, chosen]
        return WordLevels(self.seen[chosen], planes.reshape(-1), self.num_planes)


@dataclass
class MultiSourceLevels:
    """One rank's result of a call: that of one search after another."""

    parts: list[WordLevels]

    def levels(self, shard: Shard, root: int) -> Array:
        """Return one root's levels, as bfs() finds them."""
        return self.parts[root // MAX_ROOTS].levels(shard, root % MAX_ROOTS)

    def of_vertices(self, chosen: Array) -> MultiSourceLevels:
        """Return the result of some owned vertices."""
        return MultiSourceLevels([part.of_vertices(chosen) for part in self.parts])


def bfs_together(
    shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace, depth_limit: int | None = None
) -> MultiSourceLevels:
    """Find the levels from each of `roots`, which are positions; None is a root without arcs."""
    parts = []
    for first in range(0, len(roots), MAX_ROOTS):
        search = MultiSourceSearch(shard, comm, roots[first : first + MAX_ROOTS])
        while search.num_front and search.level != depth_limit:
            search.advance(trace)
        parts.append(WordLevels(search.seen, search.planes, search.num_planes))
    return MultiSourceLevels(parts)


class MultiSourceSearch:
    """The arrays of one search on one rank; counts are over all ranks. Levels are recorded, or not."""

    def __init__(
        self, shard: Shard, comm: Communicator, roots: list[int | None], *, records_levels: bool = True
    ) -> None:
        xp = shard.backend.xp
        partition = shard.partition
        self.shard = shard
        self.comm = comm
        self.backend = shard.backend
        self.xp = xp
        self.base = comm.rank * partition.stride
        self.level = -1
        self.num_planes = 0
        self.records_levels = records_levels
        self.incoming = xp.zeros(partition.num_states, np.int64)
        self.seen = xp.zeros(shard.num_owned, np.int64)
        # The owned slice of all fronts, as long as all ranks' slices are.
        self.front = xp.zeros(partition.stride, np.int64)
        self.fronts = self.front if comm.size == 1 else xp.empty(partition.num_states, np.int64)
        self.frontier, self.open = (xp.empty(shard.num_owned, partition.dtype) for _ in range(2))
        self.planes = xp.empty(0, np.int64)
        words: dict[int, int] = {}
        for bit, position in enumerate(roots):
            if position is not None:
                state = int(partition.state(position))
                words[state] = words.get(state, 0) | 1 << bit
        # All bits, in the 64-bit integers that arrays hold.
        self.all_roots_mask = signed(sum(words.values()))
        own = [state for state in words if self.base <= state < self.base + shard.num_owned]
        brought = np.array([signed(words[state]) for state in own], np.int64)
        if own:
            self.incoming[self.backend.to_device(np.array(own, np.int64))] = self.backend.to_device(brought)
        self.settle()

    def advance(self, trace: Trace) -> None:
        """Search one level more."""
        num_front = self.num_front
        pulls = self.leaving_arcs * PUSH_COST > self.open_arcs
        arcs = self.pull() if pulls else self.push()
        self.settle()
        trace.superstep(method="pull" if pulls else "push", frontier=num_front, arcs=arcs)

    def push(self) -> int:
        """Push the front's words along its arcs; return the arcs that this rank scanned."""
        shard = self.shard
        xp = self.xp
        rows = self.shard.rows
        frontier = self.frontier[: self.num_own_front]
        offsets = self._offsets(frontier, rows)
        arcs = int(offsets[-1])
        found = xp.empty(len(self.incoming), shard.partition.dtype)
        count = xp.zeros(1, np.int64)
        push_words[self.backend](
            0,
            arcs,
            frontier,
            len(frontier),
            offsets,
            rows.indptr,
            rows.targets,
            self.front,
            self.incoming,
            found,
            count,
        )
        if self.comm.size > 1:
            _, (states, words) = send_to_owners(shard, self.comm, found[: int(count[0])], self.incoming)
            merge_words[self.backend](0, len(states), states, words, self.incoming)
            # Words of remote vertices were sent.
            self.incoming[: self.base] = 0
            self.incoming[self.base + shard.partition.stride :] = 0
        return arcs

    def pull(self) -> int:
        """Gather neighbors' words at open vertices; return the arcs that this rank scanned."""
        rows = self.shard.incoming
        opened = self.open[: self.num_own_open]
        if self.comm.size > 1:
            self.comm.allgather(self.front, self.fronts)
        offsets = self._offsets(opened, rows)
        arcs = int(offsets[-1])
        pull_words[self.backend](
            0, arcs, opened, len(opened), offsets, rows.indptr, rows.targets, self.fronts, self.seen,
            self.all_roots_mask, self._own(self.incoming),
        )  # fmt: skip
        return arcs

    def settle(self) -> None:
        """Make the new bits the front of the next level, and count it over all ranks."""
        xp = self.xp
        shard = self.shard
        owned = self.shard.num_owned
        self.level += 1
        # A level of 0 has no bit to record.
        recorded = self.level if self.records_levels else 0
        if recorded.bit_length() > self.num_planes:
            self.num_planes += 1
            self.planes = xp.concatenate([self.planes, xp.zeros(owned, np.int64)])
        counters = xp.zeros(4, np.int64)
        settle_words[self.backend](
            0, owned, shard.rows.indptr, shard.incoming.indptr, recorded, owned, self.all_roots_mask,
            self._own(self.incoming), self.seen, self.front, self.planes, self.frontier, self.open, counters,
        )  # fmt: skip
        self.num_own_front, leaving, self.num_own_open, entering = self.backend.to_host(counters).tolist()
        self.num_front, self.leaving_arcs, self.open_arcs = self.comm.sum(self.num_own_front, leaving, entering)

    def count_front(self) -> Array:
        """Return how many of this rank's vertices of the front each root has."""
        counts = self.xp.zeros(MAX_ROOTS, np.int64)
        count_roots[self.backend](0, self.num_own_front, self.frontier, self.front, counts)
        return counts

    def _own(self, states: Array) -> Array:
        return states[self.base : self.base + self.shard.num_owned]

    def _offsets(self, vertices: Array, rows: Rows) -> Array:
        """Return the row offsets of these vertices' arcs, with their number at the end."""
        offsets = self.xp.zeros(len(vertices) + 1, np.int64)
        first = vertices.astype(np.int64)
        self.xp.cumsum(rows.indptr[first + 1] - rows.indptr[first], out=offsets[1:])
        return offsets


def search_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the words of states and of owned vertices, and of queues."""
    several = sizes.partition.num_ranks > 1
    return (16 if several else 8) * sizes.states + (16 + 2 * sizes.vertex + 16) * sizes.owned


def levels_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the result of a call, with four planes of levels."""
    return BATCH_ROOTS // 8 * (1 + 4) * sizes.owned


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search, and of all levels of a call."""
    return search_bytes(sizes) + levels_bytes(sizes)


VARIANT = Variant(
    "bfs.multi_source",
    when=f"for bfs_together, {MAX_ROOTS} roots in one search, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=bfs_together,
)
