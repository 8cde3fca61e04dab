"""Breadth-first search on one CPU rank: narrow frontiers by one core in a compiled loop, wide ones by all cores.

    while the frontier is not empty:
        few arcs: one core pushes level after level, until the frontier is empty or wide (push_levels)
        many arcs: all cores push a level, or pull one where that scans fewer

A level by all cores takes some 50 us whatever is in it, and in the compiled loop some 5 ns: on deep graphs that is all
the time. The level and the parent of a vertex are one word (hybrid_kernels.py). The queue lists what is reached.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.hybrid_kernels import (
    ARCS,
    ARCS_LEFT,
    END,
    ENDED,
    NEXT,
    NUM_COUNTERS,
    PULL,
    PULLED,
    SCANNED,
    UNREACHED,
    WIDE_PUSH,
    begin_levels,
    push_levels,
)
from mgraph.algorithms.bfs.hybrid_kernels import LEVEL as LEVEL_COUNTER
from mgraph.algorithms.bfs.hybrid_wide_kernels import FOUND_SCANNED, mark, pull, push_arcs
from mgraph.algorithms.common.gpu_or_host import max_wide_arcs
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Conditions, Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.recycled import restore_later
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.partition import own_states
from mgraph.shard.narrow_indptr import NARROW_BYTES, narrow_indptr
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import SMALL_SHARE
from mgraph.types import LEVEL, SMALL_VERTEX, vertex_dtype

# A frontier of more arcs is wide.
MAX_ARCS = 1 << 15
# Pushed by several cores, candidates need atomics, and a level its bits and offsets: that takes 2.2 times the work of
# one core (random trees and sparse uniform graphs of 2^20 vertices on 2 cores of an EPYC).
MAX_SERIAL_CORES = 2
# A pull that scans more vertices is wide.
MAX_PULLED = 1 << 17
UNLIMITED = int(np.iinfo(np.int64).max)
LAST_LEVEL = int(np.iinfo(LEVEL).max)
WORD = np.dtype(np.int64)
NO_TARGETS = np.empty(0, np.int64)


def bfs_hybrid(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find the levels and parents that step.py finds from `sources`, which are positions.

    Return None if much of the search is wide, where the host was chosen for a GPU because levels are narrow.
    """
    search = _Search(shard, own_states(shard.partition, comm.rank, sources))
    targets = own_states(shard.partition, comm.rank, until).astype(np.int64) if until else NO_TARGETS
    last_level = LAST_LEVEL if depth_limit is None else min(depth_limit, LAST_LEVEL)
    wide_arcs_left = max_wide_arcs(shard, "bfs")
    while (following := search.push_levels(last_level, targets, trace)) != ENDED:
        is_wide = following == WIDE_PUSH or (following == PULL and shard.num_owned > MAX_PULLED)
        if is_wide:
            wide_arcs_left -= int(search.counters[ARCS])
            if wide_arcs_left < 0:
                return None
        if following == PULL:
            search.pull(is_wide, trace)
        elif following == WIDE_PUSH:
            search.push(trace)
    return search.result()


class _Search:
    """The words of all vertices, with that of none after them; `queue` has all frontiers, one after another."""

    def __init__(self, shard: Shard, starts: np.ndarray) -> None:
        assert isinstance(shard.backend, CpuBackend), "the variant applies to no other"
        n = shard.num_owned
        self.shard = shard
        self.backend = shard.backend
        self.words_and_none, self.is_filled = self.backend.restored(n + 1, WORD, UNREACHED)
        self.words = self.words_and_none[:n]
        self.queue = self.backend.empty(n + 1, shard.partition.dtype)
        self.counters = np.zeros(NUM_COUNTERS, np.int64)
        self.max_arcs = MAX_ARCS if self.backend.threads > MAX_SERIAL_CORES else UNLIMITED
        self.starts = starts

    def push_levels(self, last_level: int, until: np.ndarray, trace: Trace) -> int:
        """Push levels by one core, from this one on; return what is next."""
        if self.backend.stopped is not None:
            raise CommAborted(self.backend.stopped)
        counters = self.counters
        level, begin, end = counters[: END + 1].tolist()
        info = self.shard.info
        indptr = narrow_indptr(self.shard)
        targets = self.shard.rows.targets
        args = (
            last_level, self.max_arcs, info.max_degree, info.directed, until, indptr, targets, self.queue, self.words,
            counters,
        )  # fmt: skip
        if end:
            push_levels(*args)
        else:
            end = len(self.starts)
            begin_levels(self.starts, self.is_filled, self.words_and_none, *args)
        if levels := int(counters[LEVEL_COUNTER]) - level:
            trace.superstep("serial", end - begin, int(counters[SCANNED]), levels=levels)
        return int(counters[NEXT])

    def push(self, trace: Trace) -> None:
        """Push one level by all cores."""
        rows = self.shard.rows
        level, begin, end, arcs = self.counters[: ARCS + 1].tolist()
        frontier = self.queue[begin:end]
        offsets = np.zeros(len(frontier) + 1, np.int64)
        np.cumsum(self.shard.degrees[frontier], out=offsets[1:])
        found = np.zeros(FOUND_SCANNED + 1, np.int64)
        self.backend.run_ranges(
            push_arcs,
            arcs,
            level + 1,
            frontier,
            offsets,
            rows.indptr,
            rows.targets,
            self.words,
            self.queue[end:],
            found,
        )
        found[FOUND_SCANNED] = arcs
        self._settle("push", found, trace)

    def pull(self, is_wide: bool, trace: Trace) -> None:
        """Pull one level, by all cores if it is wide."""
        rows = self.shard.rows
        incoming = self.shard.incoming
        level, begin, end = self.counters[: END + 1].tolist()
        n = len(self.words)
        bits = np.zeros((n >> 5) + 1, np.uint32)
        mark(self.queue[begin:end], bits)
        found = np.zeros(FOUND_SCANNED + 1, np.int64)
        args = (
            level + 1, bits, rows.indptr, incoming.indptr, incoming.targets, self.words, self.queue[end:], found
        )  # fmt: skip
        if is_wide:
            self.backend.run_ranges(pull, n, *args)
        else:
            pull(0, n, *args)
        self._settle("pull", found, trace)

    def _settle(self, method: str, found: np.ndarray, trace: Trace) -> None:
        """Make what a level found the next frontier."""
        level, begin, end, arcs = self.counters[: ARCS + 1].tolist()
        num_found, found_arcs, scanned = found.tolist()
        left = self.counters[ARCS_LEFT] - found_arcs
        self.counters[: PULLED + 1] = level + 1, end, end + num_found, found_arcs, arcs, left, method == "pull"
        trace.superstep(method, end - begin, scanned, levels=1)

    def result(self) -> Traversal:
        """Return what is reached."""
        num_reached = int(self.counters[END])
        reached_arcs = self.shard.info.num_arcs - int(self.counters[ARCS_LEFT])
        parents = self.words.view(SMALL_VERTEX)[::2]
        levels = self.words.view(LEVEL)[1::2]
        reached = self.queue[:num_reached]
        if num_reached * SMALL_SHARE < len(self.words):
            # The result keeps no queue of all vertices.
            reached = reached.copy()
            restore_later(self.words_and_none, reached)
        return Traversal(
            levels, parents, num_reached, reached_arcs, reached=reached, words=self.words_and_none
        )  # fmt: skip


def fits_words(conditions: Conditions) -> bool:
    """Return whether a level and a position fit one word."""
    return vertex_dtype(conditions.stride * conditions.num_ranks) == SMALL_VERTEX


VARIANT = Variant(
    "bfs.hybrid",
    when="on one CPU rank, narrow frontiers by one core in one loop, wide ones by all cores",
    applies=lambda conditions: conditions.is_one_cpu and fits_words(conditions),
    needs=(IN_ROWS,),
    # Words, a queue, bits of a frontier; degrees, those of a frontier and its offsets, where all cores push.
    bytes=lambda sizes: (8 + sizes.vertex + 24 + NARROW_BYTES) * sizes.owned + sizes.owned // 8,
    loop=bfs_hybrid,
    takes_until=True,
)
