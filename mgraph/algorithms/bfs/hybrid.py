"""Breadth-first search on one CPU rank: narrow frontiers by one core in a compiled loop, wide ones by all cores.

    while the frontier is not empty:
        narrow: one core expands level after level, until the frontier is empty or wide (expand_levels)
        wide: all cores push or pull a level, as in step.py; a push by one core if there are few

A level of step.py takes some 20 us whatever is in it, and in the compiled loop some 10 ns: on deep graphs that is all
the time. Both leave the same levels, parents and visited bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.hybrid_kernels import END, NUM_COUNTERS, expand_levels
from mgraph.algorithms.bfs.step import VARIANT as STEP
from mgraph.algorithms.bfs.step import LevelSearch, pull_pays
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Setting, Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL

# A frontier of more arcs is wide.
MAX_ARCS = 1 << 15
# Pushed by several cores, candidates need atomics, and a level its bits and offsets: that takes 2.2 times the work of
# one core (random trees and sparse uniform graphs of 2^20 vertices on 2 cores of an EPYC).
FEW_CORES = 2


def bfs_hybrid(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal:
    """Find the levels and parents that step.py finds from `sources`, which are positions."""
    assert isinstance(shard.backend, CpuBackend), "the variant applies to no other"
    search = _Search(shard, comm, sources, until)
    last_level = int(np.iinfo(LEVEL).max) if depth_limit is None else depth_limit
    pulling = False
    while search.num_frontier and search.num_left and search.level < last_level and not search.is_done:
        frontier = search.num_frontier
        level = search.level
        is_wide = search.frontier_arcs > MAX_ARCS
        pulling = is_wide and pull_pays(search, pulling, search.arcs_before)
        if pulling or (is_wide and shard.backend.threads > FEW_CORES):
            search.arcs_before = search.frontier_arcs
            if pulling:
                search.pull()
            else:
                search.push()
            method = "pull" if pulling else "push"
        else:
            search.expand(last_level)
            method = "serial"
        trace.superstep(method, frontier, search.scanned, levels=search.level - level)
    num_reached = shard.partition.num_positions - search.num_left
    reached_arcs = shard.info.num_arcs - search.arcs_left
    return Traversal(search.levels, search.parents[: shard.num_owned], num_reached, reached_arcs)


class _Search(LevelSearch):
    """A search by levels, several of which one core may expand at once."""

    arcs_before = 0

    def expand(self, last_level: int) -> None:
        """Expand levels by one core, from this one until one is wide or the search ends."""
        if self.run.stopped is not None:
            raise CommAborted(self.run.stopped)
        size = len(self.frontier)
        counters = np.zeros(NUM_COUNTERS, np.int64)
        counters[END] = size
        self.found[:size] = self.frontier
        rows = self.shard.rows
        level = expand_levels(
            self.found, self.level, last_level, max(MAX_ARCS, self.frontier_arcs), self.num_left, rows.indptr,
            rows.targets, self.targets, self.visited, self.parents, self.levels, counters,
        )  # fmt: skip
        begin, end, self.scanned, self.arcs_before = counters.tolist()
        if end - size == self.num_left:
            self.level = level
            self.num_left = self.arcs_left = 0
            return
        self.frontier = self.found[begin:end].copy()
        # Without the last level, which settle() counts.
        self.num_left -= begin - size
        self.arcs_left -= self.scanned - self.frontier_arcs
        self.level = level - 1
        self.settle(np.array([0, 0, self.scanned], np.int64))


def is_one_cpu(setting: Setting) -> bool:
    """Return whether a graph's rows are on one CPU rank."""
    return setting.layout == "rows" and setting.num_ranks == 1 and not setting.has_persistent_kernels


VARIANT = Variant(
    "bfs.hybrid",
    when="on one CPU rank, narrow frontiers by one core in one loop, wide ones by all cores",
    applies=is_one_cpu,
    needs=(IN_ROWS,),
    bytes=STEP.bytes,
    run=bfs_hybrid,
    stops=True,
)
