"""Breadth-first search on one CPU rank: narrow frontiers by one core in a compiled loop, wide ones by all cores.

    while the frontier is not empty:
        narrow: one core pushes or pulls level after level, until the frontier is empty or wide (search_levels)
        wide: all cores push or pull a level, as in step.py

A level of step.py takes some 20 us whatever is in it, and in the compiled loop some 10 ns: on deep graphs that is all
the time. Both leave the same levels and parents. The queue of all frontiers lists what is reached.
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
    PULLING,
    SCANNED,
    WIDE_PULL,
    WIDE_PUSH,
    begin_search,
    search_levels,
)
from mgraph.algorithms.bfs.hybrid_kernels import LEVEL as LEVEL_COUNTER
from mgraph.algorithms.bfs.step import VARIANT as STEP
from mgraph.algorithms.bfs.step_kernels import mark_bits, pull_level, push_level, settle_level
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.partition import own_states
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL

# A frontier of more arcs is wide.
MAX_ARCS = 1 << 15
# Pushed by several cores, candidates need atomics, and a level its bits and offsets: that takes 2.2 times the work of
# one core (random trees and sparse uniform graphs of 2^20 vertices on 2 cores of an EPYC).
FEW_CORES = 2
# A pull that scans more vertices is wide.
MAX_PULLED = 1 << 17
# After so many arcs, a fraction of a second, the loop pauses: the call may have been ended.
STEP_ARCS = 1 << 24


def bfs_hybrid(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find the levels and parents that step.py finds from `sources`, which are positions.

    Return None if a level is wide, where the host was chosen for a GPU because levels are narrow.
    """
    search = _Search(shard, own_states(shard.partition, comm.rank, sources))
    targets = own_states(shard.partition, comm.rank, until).astype(np.int64)
    last_level = int(np.iinfo(LEVEL).max) if depth_limit is None else depth_limit
    while (following := search.search_levels(last_level, targets, trace)) != ENDED:
        if following in (WIDE_PUSH, WIDE_PULL):
            if shard.faster_on_host.get("bfs"):
                return None
            search.search_level(following == WIDE_PULL, trace)
    return search.result()


class _Search:
    """The arrays of a search; `queue` has all frontiers, one after another."""

    def __init__(self, shard: Shard, starts: np.ndarray) -> None:
        assert isinstance(shard.backend, CpuBackend), "the variant applies to no other"
        n = shard.num_owned
        self.shard = shard
        self.backend = shard.backend
        self.levels = np.empty(n, LEVEL)
        self.parents = np.empty(n, shard.partition.dtype)
        self.queue = np.empty(n, shard.partition.dtype)
        self.counters = np.zeros(NUM_COUNTERS, np.int64)
        self.visited: np.ndarray | None = None
        self.num_visited = 0
        max_arcs = MAX_ARCS if self.backend.threads > FEW_CORES else np.iinfo(np.int64).max
        self.bounds = np.array([max_arcs, MAX_PULLED, STEP_ARCS])
        begin_search(starts, shard.rows.indptr, self.queue, self.parents, self.levels, self.counters)

    def search_levels(self, last_level: int, until: np.ndarray, trace: Trace) -> int:
        """Search levels by one core, from this one until one is wide or the search ends; return what is next."""
        if self.backend.stopped is not None:
            raise CommAborted(self.backend.stopped)
        counters = self.counters
        level, begin, end = counters[: END + 1].tolist()
        rows = self.shard.rows
        incoming = self.shard.incoming
        search_levels(
            last_level, self.bounds, rows.indptr, rows.targets, incoming.indptr, incoming.targets, until,
            self.queue, self.parents, self.levels, counters,
        )  # fmt: skip
        if levels := int(counters[LEVEL_COUNTER]) - level:
            trace.superstep("serial", end - begin, int(counters[SCANNED]), levels=levels)
        return int(counters[NEXT])

    def search_level(self, pulling: bool, trace: Trace) -> None:
        """Push or pull one level by all cores."""
        backend = self.backend
        rows = self.shard.rows
        level, begin, end, arcs = self.counters[: ARCS + 1].tolist()
        frontier = self.queue[begin:end]
        found = self.queue[end:]
        if self.visited is None:
            self.visited = np.zeros(self.shard.partition.num_states // 32, np.uint32)
        mark_bits[backend](0, end - self.num_visited, self.queue[self.num_visited : end], self.visited)
        counters = np.zeros(3, np.int64)
        if pulling:
            incoming = self.shard.incoming
            bits = np.zeros_like(self.visited)
            mark_bits[backend](0, len(frontier), frontier, bits)
            pull_level[backend](
                0, len(self.levels), incoming.indptr, incoming.targets, bits, self.visited, 0,
                self.shard.partition.stride, 1, self.parents, found, counters,
            )  # fmt: skip
        else:
            offsets = np.zeros(len(frontier) + 1, np.int64)
            np.cumsum(self.shard.degrees[frontier], out=offsets[1:])
            push_level[backend](
                0, arcs, frontier, len(frontier), offsets, rows.indptr, rows.targets, self.visited, 0, 0, 1,
                self.parents, found, counters,
            )  # fmt: skip
            counters[2] = arcs
        found = found[: counters[0]]
        lengths = np.empty(len(found), np.int64)
        settle_level[backend](
            0, len(found), found, rows.indptr, 0, level + 1, self.visited, self.levels, lengths, counters
        )  # fmt: skip
        _, found_arcs, scanned = counters.tolist()
        self.num_visited = end + len(found)
        left = self.counters[ARCS_LEFT] - found_arcs
        self.counters[: PULLING + 1] = level + 1, end, self.num_visited, found_arcs, arcs, left, pulling
        trace.superstep("pull" if pulling else "push", end - begin, scanned, levels=1)

    def result(self) -> Traversal:
        """Return what is reached."""
        num_reached = int(self.counters[END])
        reached_arcs = self.shard.info.num_arcs - int(self.counters[ARCS_LEFT])
        return Traversal(self.levels, self.parents, num_reached, reached_arcs, reached=self.queue[:num_reached])


VARIANT = Variant(
    "bfs.hybrid",
    when="on one CPU rank, narrow frontiers by one core in one loop, wide ones by all cores",
    applies=lambda conditions: conditions.is_one_cpu,
    needs=(IN_ROWS,),
    bytes=STEP.bytes,
    loop=bfs_hybrid,
    stops=True,
)
