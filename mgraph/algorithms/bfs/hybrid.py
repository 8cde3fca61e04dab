"""Breadth-first search on one CPU rank: narrow frontiers by one core in a compiled loop, wide ones by all cores.

    while the frontier is not empty:
        few arcs: one core pushes level after level, until the frontier is empty or wide (push_levels)
        many arcs: all cores push level after level in another loop, until few are left (push_jointly)
        where that scans fewer: all cores pull a level

Starting all cores takes some 50 us, a level of all cores some microseconds whatever is in it, and one of one core some
5 ns: on deep graphs that is all the time. The level and the parent of a vertex are one word (hybrid_kernels.py). The
queue lists what is reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs import hybrid_joint_kernels as joint_kernels
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
    STEP_ARCS,
    UNREACHED,
    WIDE_PUSH,
    begin_levels,
    push_levels,
)
from mgraph.algorithms.bfs.hybrid_kernels import LEVEL as LEVEL_COUNTER
from mgraph.algorithms.bfs.hybrid_pull_kernels import FOUND_SCANNED, mark, pull
from mgraph.algorithms.common.gpu_or_host import max_wide_arcs
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Conditions, Variant
from mgraph.backends.all_cores import num_near_cores, on_all_cores
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.recycled import restore_later
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.partition import own_states
from mgraph.shard.narrow_indptr import NARROW_BYTES, narrow_indptr
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import SMALL_SHARE
from mgraph.types import LEVEL, SMALL_VERTEX, vertex_dtype

# A frontier of more arcs is wide, unless it is a run or leads to one: one core pushes that in half the time. A frontier
# of at most NARROW_ARCS is narrow again.
MAX_ARCS = 1 << 15
NARROW_ARCS = 1 << 12
# All cores together do some three times the work of one, for atomics and what is staged.
MAX_SERIAL_CORES = 2
MAX_JOINT_CORES = 16
# Where all cores have pushed fewer arcs before few were left, frontiers are wide only from GROWTH times as many on.
MIN_JOINT_ARCS = 1 << 18
GROWTH = 8
# A longer row is a hub's: all cores push its arcs together.
HUB_ARCS = 1 << 12
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
            arcs = int(search.counters[ARCS])
            if arcs > wide_arcs_left:
                return None
            wide_arcs_left -= arcs if following == PULL else 0
        if following == PULL:
            search.pull(is_wide, trace)
        elif following == WIDE_PUSH:
            # With targets, whether they are reached is tested after each level.
            last = int(search.counters[LEVEL_COUNTER]) + 1 if len(targets) else last_level
            wide_arcs_left -= search.push(last, wide_arcs_left, trace)
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
        # Known once there is a wide level.
        self.num_cores: int | None = None

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

    def push(self, last_level: int, max_scanned: float, trace: Trace) -> int:
        """Push levels by all cores, as push_jointly does; return how many arcs were scanned.

        Where barriers are slow, nothing is pushed here and one core goes on, unless arcs are limited and so counted.
        """
        if self.num_cores is None:
            self.num_cores = num_near_cores(self.backend, MAX_JOINT_CORES)
        is_limited = max_scanned < math.inf
        if self.num_cores == 1 and not is_limited:
            self.max_arcs = UNLIMITED
            return 0
        info = self.shard.info
        rows = self.shard.rows
        level, begin, end = self.counters[: END + 1].tolist()
        num_hubs = len(rows.targets) // HUB_ARCS if info.max_degree > HUB_ARCS else 0
        hubs = self.backend.empty(num_hubs, self.queue.dtype)
        counted = np.zeros((joint_kernels.NUM_ROWS, joint_kernels.NUM_WORDS), np.int64)
        limits = last_level, NARROW_ARCS, int(min(STEP_ARCS, max_scanned)), HUB_ARCS
        indptr = narrow_indptr(self.shard)

        def push_jointly(core: int, barrier: np.ndarray) -> None:
            joint_kernels.push_jointly(
                core, self.num_cores, barrier, counted, hubs, limits, indptr, rows.targets, self.queue, self.words,
                self.counters,
            )  # fmt: skip

        on_all_cores(self.backend, self.num_cores, push_jointly)
        scanned = int(self.counters[SCANNED])
        if self.counters[ARCS] <= NARROW_ARCS and scanned < MIN_JOINT_ARCS and not is_limited:
            self.max_arcs *= GROWTH
        trace.superstep("joint", end - begin, scanned, levels=int(self.counters[LEVEL_COUNTER]) - level)
        return scanned

    def pull(self, is_wide: bool, trace: Trace) -> None:
        """Pull one level, by all cores if it is wide."""
        rows = self.shard.rows
        incoming = self.shard.incoming
        level, begin, end, arcs = self.counters[: ARCS + 1].tolist()
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
        num_found, found_arcs, scanned = found.tolist()
        left = self.counters[ARCS_LEFT] - found_arcs
        self.counters[: PULLED + 1] = level + 1, end, end + num_found, found_arcs, arcs, left, True
        trace.superstep("pull", end - begin, scanned, levels=1)

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
    # Words, a queue, bits of a frontier, and hubs.
    bytes=lambda sizes: (
        (8 + sizes.vertex + NARROW_BYTES) * sizes.owned + sizes.owned // 8 + sizes.vertex * (sizes.row_arcs // HUB_ARCS)
    ),
    loop=bfs_hybrid,
    takes_until=True,
)
