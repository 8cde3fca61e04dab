"""Breadth-first search by frontiers on one rank, the whole of it in one launch.

The loop of bfs.py runs inside kernels/bfs_fused.cu, each level in the form that takes least on the device at hand
(costs.py), and nobody asks the host in between. On a sparse graph whose frontiers stay narrow it walks: each superstep
takes many levels, which every block of threads finds by itself from a part of the frontier, before all meet. When few
vertices are left, those that a level does not find are listed, and one block looks on for them alone.
"""

from __future__ import annotations

import struct

import numpy as np

from mgraph.algorithms.bfs import GROWTH
from mgraph.algorithms.costs import bfs_costs
from mgraph.algorithms.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.build.in_rows import require_firsts
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.kernels.backend import FusingBackend
from mgraph.kernels.bfs_fused import (
    COSTS,
    METHODS,
    MOST_QUEUED,
    ORDERS,
    REPORT,
    ROW,
    queue_capacity,
    search_levels,
    work_words,
)
from mgraph.rates import require_rates
from mgraph.shard import Shard
from mgraph.types import LEVEL

# Graphs with no more arcs a vertex than this may be deep: they get the memory to walk, 8 bytes a vertex.
DEEP_DEGREE = 8
# Rows are alike where none is so many times as long as they are in the mean.
ALIKE = 4
# Where in the words that host and kernel share stands what is told, and where the rows of the trace begin.
TOLD = len(ORDERS) + len(COSTS)
TRACE = TOLD + len(REPORT)
# Packed in half the time of an assignment to a slice.
WORDS = struct.Struct(f"{TRACE}q")


def bfs_fused(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and parents from `sources`, which are positions; the same as bfs() does."""
    run, rows, incoming, num = shard.backend, shard.rows, shard.incoming, shard.num_owned
    assert isinstance(run, FusingBackend), "who calls has asked"
    vertex = rows.targets.dtype
    levels, parents = run.xp.empty(num, LEVEL), run.xp.empty(num, vertex)
    starts = sorted(set(sources))
    capacity = queue_capacity(num, len(starts))
    costs = bfs_costs(require_rates(run), num, vertex.itemsize)
    words, on_host = run.host_words(TRACE + TRACE_ROWS * len(ROW) + len(starts))
    limit = -1 if depth_limit is None else depth_limit
    # The arcs of a frontier that were not counted are counted where all of it is queued.
    alike = num < MOST_QUEUED and shard.info.max_degree * num <= ALIKE * shard.info.num_arcs
    first = min(starts, default=0)
    orders = (limit, shard.info.num_arcs, len(starts), first, capacity, TRACE_ROWS, GROWTH, alike, *costs)
    WORDS.pack_into(on_host.data, 0, *orders, num == 0, 0, 0, 0)
    if len(starts) > 1:
        on_host[TRACE + TRACE_ROWS * len(ROW) :][: len(starts)] = starts
    deep = shard.info.num_arcs <= DEEP_DEGREE * num
    search_levels[run](
        0, num, run.abort_word,
        rows.indptr, rows.targets, incoming.indptr, incoming.targets, require_firsts(shard),
        levels, parents, run.xp.empty(work_words(num, capacity, vertex.itemsize, TRACE_ROWS), np.uint32),
        run.xp.empty(num, np.int64) if deep else None, run.arrived, words,
    )  # fmt: skip
    run.synchronize()
    done, num_rows, reached, reached_arcs = on_host[TOLD:TRACE].tolist()
    if not done:
        run.arrived[:] = 0
        raise CommAborted("the search was ended while its blocks waited for each other")
    log = on_host[TRACE : TRACE + num_rows * len(ROW)].copy()
    trace.fused(lambda: _steps(log))
    return Traversal(levels, parents, reached, reached_arcs)


def _steps(log: np.ndarray) -> list[dict]:
    """Return what every superstep did."""
    return [
        {"method": METHODS[m], "frontier": f, "arcs": a, "microseconds": ns / 1000, "bytes": 0, "levels": num_levels}
        for m, f, a, ns, num_levels in log.reshape(-1, len(ROW)).tolist()
    ]
