"""Multi-source BFS on one GPU: four words a vertex, so that one scan of an arc serves up to 256 roots.

    front = each root's bit at the root
    while any bit is in front:
        push: a block of threads takes a vertex of the front, and adds its words to those of its targets
        pull: eight threads take an open vertex, and a block one of a long row: they gather its neighbors' words until
            they have all bits that the vertex can still get
        front = incoming bits that are new

A GPU loads 32 bytes at least: four words cost what one does. Of a row in degree order the first neighbors are hubs,
which most roots have reached: most scans end early. A root with an empty frontier reaches nothing more, and its bit is
not required: otherwise a root in a component of its own would keep all scans from ending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, PUSH_COST, levels_bytes
from mgraph.algorithms.bfs.multi_source_wide_kernels import (
    WORDS,
    count_wide,
    levels_wide,
    pull_wide,
    pull_wide_long,
    push_wide,
    settle_wide,
)
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Conditions, GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, Array, signed

# Planes that a search allocates at once: for levels below 16.
FIRST_PLANES = 4


@dataclass
class WideLevels:
    """The result: the roots that have reached each vertex, and their levels in planes."""

    seen: Array
    planes: Array
    num_planes: int

    def levels(self, shard: Shard, root: int) -> Array:
        """Return one root's levels, as bfs() finds them."""
        n = len(self.seen) // WORDS
        levels = shard.backend.xp.empty(n, LEVEL)
        levels_wide[shard.backend](0, n, self.seen, self.planes, self.num_planes, n, root, levels)
        return levels

    def of_vertices(self, chosen: Array) -> WideLevels:
        """Return the result of some vertices."""
        n = len(self.seen) // WORDS
        planes = self.planes.reshape(self.num_planes, n, WORDS)[:, chosen]
        return WideLevels(self.seen.reshape(n, WORDS)[chosen].reshape(-1), planes.reshape(-1), self.num_planes)


class WideSearch:
    """The arrays of one search. Levels are recorded, or not."""

    def __init__(self, shard: Shard, roots: list[int | None], *, records_levels: bool = True) -> None:
        xp = shard.backend.xp
        n = shard.num_owned
        self.shard = shard
        self.backend = shard.backend
        self.level = -1
        self.num_planes = 0
        self.records_levels = records_levels
        self.incoming = xp.zeros(WORDS * n, np.int64)
        self.seen = xp.zeros(WORDS * n, np.int64)
        self.front = xp.empty(WORDS * n, np.int64)
        self.frontier, self.open = (xp.empty(n, shard.partition.dtype) for _ in range(2))
        # Without values until a level begins a plane.
        self.planes = xp.empty(FIRST_PLANES * WORDS * n if records_levels else 0, np.int64)
        words: dict[int, int] = {}
        mask = [0] * WORDS
        for root, position in enumerate(roots):
            if position is not None:
                word, bit = divmod(root, 64)
                at = position * WORDS + word
                words[at] = words.get(at, 0) | 1 << bit
                mask[word] |= 1 << bit
        # The roots that had a front before, and those that have one now.
        self.alive = self.backend.to_device(np.array([*map(signed, mask), *([0] * WORDS)], np.int64))
        if words:
            places = self.backend.to_device(np.array(list(words), np.int64))
            self.incoming[places] = self.backend.to_device(np.array([*map(signed, words.values())], np.int64))
        self.settle()

    def advance(self, trace: Trace) -> None:
        """Search one level more."""
        num_front = self.num_front
        pulls = self.leaving_arcs * PUSH_COST > self.open_arcs
        arcs = self.open_arcs if pulls else self.leaving_arcs
        if pulls:
            self.pull()
        else:
            rows = self.shard.rows
            push_wide[self.backend](0, num_front, self.frontier, rows.indptr, rows.targets, self.front, self.incoming)
        self.settle()
        trace.superstep(method="pull" if pulls else "push", frontier=num_front, arcs=arcs)

    def pull(self) -> None:
        """Gather neighbors' words at open vertices."""
        rows = self.shard.incoming
        given = rows.indptr, rows.targets, self.front, self.seen, self.alive, self.incoming
        pull_wide_long[self.backend](0, self.num_long, self.open[self.shard.num_owned - self.num_long :], *given)
        pull_wide[self.backend](0, self.num_short, self.open, *given)

    def settle(self) -> None:
        """Make the new bits the front of the next level, and count it."""
        xp = self.backend.xp
        shard = self.shard
        owned = shard.num_owned
        self.level += 1
        # A level of 0 has no bit to record.
        recorded = self.level if self.records_levels else 0
        if recorded.bit_length() > self.num_planes:
            self.num_planes += 1
            if self.num_planes * WORDS * owned > len(self.planes):
                self.planes = xp.concatenate([self.planes, xp.empty_like(self.planes)])
        counters = xp.zeros(5, np.int64)
        settle_wide[self.backend](
            0, owned, shard.rows.indptr, shard.incoming.indptr, recorded, owned, self.incoming, self.seen, self.front,
            self.planes, self.frontier, self.open, self.alive, counters,
        )  # fmt: skip
        self.alive[:WORDS] = self.alive[WORDS:]
        self.alive[WORDS:] = 0
        counted = self.backend.to_host(counters).tolist()
        self.num_front, self.leaving_arcs, self.num_short, self.num_long, self.open_arcs = counted

    def count_front(self) -> Array:
        """Return how many vertices of the front each root has."""
        counts = self.backend.xp.zeros(BATCH_ROOTS, np.int64)
        count_wide[self.backend](0, self.num_front, self.frontier, self.front, counts)
        return counts


def bfs_wide(
    shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace, depth_limit: int | None = None
) -> WideLevels:
    """Find the levels from each of `roots`, which are positions; None is a root without arcs."""
    search = WideSearch(shard, roots)
    while search.num_front and search.level != depth_limit:
        search.advance(trace)
    return WideLevels(search.seen, search.planes[: search.num_planes * len(search.seen)], search.num_planes)


def wide_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the words that a search has beside those of its result, and of its lists."""
    return (2 * 8 * WORDS + 2 * sizes.vertex) * sizes.owned


def is_one_gpu(conditions: Conditions) -> bool:
    """Return whether a graph's rows are on one GPU."""
    return conditions.has_rows and conditions.has_persistent_kernels and conditions.num_ranks == 1


VARIANT = Variant(
    "bfs.multi_source_wide",
    when=f"for bfs_together, {BATCH_ROOTS} roots in one search, on one GPU",
    applies=is_one_gpu,
    needs=(IN_ROWS,),
    bytes=lambda sizes: wide_bytes(sizes) + levels_bytes(sizes),
    loop=bfs_wide,
)
