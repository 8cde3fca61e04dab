"""Multi-source BFS on one GPU: four words a vertex, so that one scan of an arc serves up to 256 roots.

    front = each root's bit at the root
    while any bit is in front:
        pull: a tile of threads takes an open vertex, and a block one of a long row: they gather its neighbors' words
            until they have all bits that the vertex can still get, and write its words of the next front
        push: a block of threads takes a vertex of the front, and adds its words to those of its targets; then all
            vertices are settled

A GPU loads 32 bytes at least: four words cost what one does. Of a row in degree order the first neighbors are hubs,
which most roots have reached: most scans end early. A root with an empty frontier reaches nothing more, and its bit is
not required: otherwise a root in a component of its own would keep all scans from ending.

A pull settles what it finds. The open vertices and those of a front are bitmaps, which it reads and writes: a level
with few open vertices costs little, and a small front saves the loads of all other neighbors' words. So most levels
pull; the second one of 256 roots of rmat22 gathers 24 of 128 million arcs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, levels_bytes
from mgraph.algorithms.bfs.multi_source_bitmaps_kernels import (
    SIZES,
    STATE,
    WORDS,
    assemble_levels,
    count_front,
    list_front,
    marks_bytes,
    pull_bitmaps,
    pull_bitmaps_long,
    push_front,
    settle_bitmaps,
)
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Conditions, GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.types import LEVEL, Array, signed

# An arc that is pushed is an atomic operation, and after a push the words of all vertices are read. (1,024 roots of
# rmat22 on one H200 take 18 % more if all levels are pulled, and 5 % more if the second one is pushed too.)
PUSH_COST = 8
SETTLE_COST = 4
# A pull tests whether neighbors are in the front if less than one arc in this many leads to it. (5 % more if it never
# does, 3 % if it always does.)
TEST_SHARE = 2
# Planes that a search allocates at once: for levels below 16.
FIRST_PLANES = 4


@dataclass
class BitmapLevels:
    """The result: the roots that have reached each vertex, and their levels in planes."""

    seen: Array
    planes: Array
    num_planes: int

    def levels(self, shard: Shard, root: int) -> Array:
        """Return one root's levels, as bfs() finds them."""
        n = len(self.seen) // WORDS
        levels = shard.backend.xp.empty(n, LEVEL)
        assemble_levels[shard.backend](0, n, self.seen, self.planes, self.num_planes, n, root, levels)
        return levels

    def of_vertices(self, chosen: Array) -> BitmapLevels:
        """Return the result of some vertices."""
        n = len(self.seen) // WORDS
        planes = self.planes.reshape(self.num_planes, n, WORDS)[:, chosen]
        return BitmapLevels(self.seen.reshape(n, WORDS)[chosen].reshape(-1), planes.reshape(-1), self.num_planes)


class BitmapSearch:
    """The arrays of one search. Without `records_levels` the vertices of each front can only be counted."""

    def __init__(self, shard: Shard, roots: list[int | None], *, records_levels: bool = True) -> None:
        xp = shard.backend.xp
        n = shard.num_owned
        self.shard = shard
        self.backend = shard.backend
        self.level = -1
        self.num_planes = 0
        self.records_levels = records_levels
        self.seen = xp.zeros(WORDS * n, np.int64)
        self.front, self.next_front = (xp.zeros(WORDS * n, np.int64) for _ in range(2))
        self.marks, self.next_marks = (xp.zeros(2 * marks_bytes(n), np.uint8) for _ in range(2))
        self.frontier = xp.empty(n, shard.partition.dtype)
        self.planes = xp.empty(FIRST_PLANES * WORDS * n if records_levels else 0, np.int64)
        words: dict[int, int] = {}
        alive = [0] * WORDS
        for root, position in enumerate(roots):
            if position is not None:
                word, bit = divmod(root, 64)
                at = position * WORDS + word
                words[at] = words.get(at, 0) | 1 << bit
                alive[word] |= 1 << bit
        self.state = self.state_of([*map(signed, alive)], tests_front=False)
        if words:
            places = self.backend.to_device(np.array(list(words), np.int64))
            self.next_front[places] = self.backend.to_device(np.array([*map(signed, words.values())], np.int64))
        self.begin_level()
        self.settle()
        self.end_level()

    def advance(self, trace: Trace) -> None:
        """Search one level more."""
        num_front = self.num_front
        pulls = PUSH_COST * self.front_arcs + SETTLE_COST * self.shard.num_owned > self.open_arcs
        arcs = self.open_arcs
        if not pulls:
            arcs = self.list_front()
        self.begin_level()
        if pulls:
            self.pull()
        else:
            self.push()
        self.end_level()
        trace.superstep(method="pull" if pulls else "push", frontier=num_front, arcs=arcs)

    def begin_level(self) -> None:
        """Go on to the next level; clear the plane that it is the first to need, if it is."""
        self.level += 1
        if self.records_levels and self.level.bit_length() > self.num_planes:
            begin = self.num_planes * len(self.seen)
            if begin == len(self.planes):
                self.planes = self.backend.xp.concatenate([self.planes, self.backend.xp.empty_like(self.planes)])
            self.planes[begin : begin + len(self.seen)].fill(0)
            self.num_planes += 1

    def end_level(self) -> None:
        """Make the next front the front, and read its counts."""
        found = self.backend.to_host(self.state)[STATE["reached"] :].tolist()
        self.num_front, self.front_arcs, self.num_long, self.open_arcs = found[WORDS:]
        self.front, self.next_front = self.next_front, self.front
        self.marks, self.next_marks = self.next_marks, self.marks
        tests_front = self.front_arcs * TEST_SHARE < len(self.shard.incoming.targets)
        self.state = self.state_of(found[:WORDS], tests_front)

    def state_of(self, alive: list[int], tests_front: bool) -> Array:
        """Return the state in which a level begins."""
        state = np.zeros(STATE.total, np.int64)
        state[STATE["alive"] : STATE["alive"] + WORDS] = alive
        state[STATE["tests_front"]] = tests_front
        return self.backend.to_device(state)

    def pull(self) -> None:
        """Gather neighbors' words at open vertices, and settle these."""
        n = self.shard.num_owned
        rows = self.shard.incoming
        given = (
            rows.indptr, rows.targets, self.front, self.marks, self._recorded, n, self.seen, self.next_front,
            self.next_marks, self.planes, self.state,
        )  # fmt: skip
        pull_bitmaps[self.backend](0, -(-n // 8), *given)
        if self.num_long:
            long = block_rows(self.shard, SIZES.block_row)
            pull_bitmaps_long[self.backend](0, len(long), long, *given)

    def push(self) -> None:
        """Push the front's words, and settle all vertices."""
        rows = self.shard.rows
        self.next_front.fill(0)
        given = rows.indptr, rows.targets, self.front, self.next_front
        push_front[self.backend](0, self.num_front, self.frontier, *given)
        self.settle()

    def settle(self) -> None:
        """Settle the bits that are in the next front."""
        n = self.shard.num_owned
        settle_bitmaps[self.backend](
            0, -(-n // 32), self.shard.incoming.indptr, self._recorded, n, self.seen, self.next_front, self.next_marks,
            self.planes, self.state,
        )  # fmt: skip

    @property
    def _recorded(self) -> int:
        """The level that kernels write to the planes; 0, which sets no bit there, if levels are not recorded."""
        return self.level if self.records_levels else 0

    def list_front(self) -> int:
        """List the front's vertices; return how many arcs leave them."""
        n = self.shard.num_owned
        counters = self.backend.xp.zeros(2, np.int64)
        list_front[self.backend](0, n, self.shard.rows.indptr, self.marks, self.frontier, counters)
        return int(self.backend.to_host(counters)[1])

    def count_front(self) -> Array:
        """Return how many vertices of the front each root has."""
        counts = self.backend.xp.zeros(BATCH_ROOTS, np.int64)
        self.list_front()
        count_front[self.backend](0, self.num_front, self.frontier, self.front, counts)
        return counts


@cached_on_shard
def block_rows(shard: Shard, length: int) -> Array:
    """Return the vertices with at least `length` arcs into them, longest rows first."""
    lengths = shard.incoming.indptr[1:] - shard.incoming.indptr[:-1]
    long = shard.backend.xp.nonzero(lengths >= length)[0]
    return long[shard.backend.xp.argsort(-lengths[long])].astype(shard.partition.dtype)


def bfs_bitmaps(
    shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace, depth_limit: int | None = None
) -> BitmapLevels:
    """Find the levels from each of `roots`, which are positions; None is a root without arcs."""
    search = BitmapSearch(shard, roots)
    while search.num_front and search.level != depth_limit:
        search.advance(trace)
    return BitmapLevels(search.seen, search.planes[: search.num_planes * len(search.seen)], search.num_planes)


def bitmaps_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of two fronts, their bitmaps, the list of one, and the lengths of rows once."""
    return (2 * 8 * WORDS + sizes.vertex + 9) * sizes.owned + 4 * marks_bytes(sizes.owned)


def is_one_gpu(conditions: Conditions) -> bool:
    """Return whether a graph's rows are on one GPU."""
    return conditions.has_rows and conditions.has_persistent_kernels and conditions.num_ranks == 1


VARIANT = Variant(
    "bfs.multi_source_bitmaps",
    when=f"for bfs_together, {BATCH_ROOTS} roots in one search, on one GPU",
    applies=is_one_gpu,
    needs=(IN_ROWS,),
    bytes=lambda sizes: bitmaps_bytes(sizes) + levels_bytes(sizes),
    loop=bfs_bitmaps,
)
