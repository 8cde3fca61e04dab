"""Breadth-first search by frontiers on one rank, the whole of it in one launch.

The loop of bfs.py runs inside algorithms/bfs/persistent_kernels.cu, each level in the form that takes least on the device at hand
(costs.py), and nobody asks the host in between. On a sparse graph whose frontiers stay narrow it walks: each superstep
takes many levels, which every block of threads finds by itself from a part of the frontier, before all meet. When few
vertices are left, those that a level does not find are listed, and looked for alone: by all blocks, or by one if they
are very few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mgraph.algorithms.bfs.persistent_kernels import (
    COSTS,
    LAYOUT,
    METHODS,
    MOST_QUEUED,
    ROW,
    queue_capacity,
    search_levels,
    work_words,
)
from mgraph.algorithms.bfs.step import GROWTH
from mgraph.algorithms.common.control_block import Orders
from mgraph.algorithms.common.cost_model import bfs_costs
from mgraph.algorithms.common.dtype_ladder import levels_in_bytes_first, may_be_deep
from mgraph.algorithms.common.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.backends.base import Fresh, FusingBackend
from mgraph.backends.rates_file import require_rates
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.in_rows import require_firsts
from mgraph.shard.shard import Shard, once_a_shard
from mgraph.types import LEVEL, Array

# Rows are alike where none is so many times as long as they are in the mean.
ALIKE = 4


def bfs_fused(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    behind: Callable[[Shard, Communicator, Array, Array], list[Array]] | None = None,
) -> Traversal:
    """Find levels and parents from `sources`, which are positions; the same as bfs() does.

    `behind` launches the translation of both into user ids, before the search is waited for: the host has the time.
    """
    return levels_in_bytes_first(shard, partial(_search, shard, comm, sources, trace, behind), depth_limit)


def _search(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    behind: Callable[[Shard, Communicator, Array, Array], list[Array]] | None,
    dtype: np.dtype,
    depth_limit: int | None,
) -> Traversal:
    run, starts = shard.backend, sources if len(sources) == 1 else sorted(set(sources))
    search = _search_from_one(shard, dtype) if len(starts) == 1 else _Search(shard, len(starts), dtype)
    search.orders.give(
        starts, depth_limit=-1 if depth_limit is None else depth_limit, source=starts[0] if starts else 0
    )
    levels, parents, *_ = search.launch()
    wait = run.marked()
    try:
        in_user_ids = None if behind is None else behind(shard, comm, levels, parents)
    finally:
        wait()
    done, num_rows, reached, reached_arcs = search.orders.report()
    if not done:
        assert isinstance(run, FusingBackend), "who calls has asked"
        run.arrived[:] = 0
        raise CommAborted("the search was ended while its blocks waited for each other")
    trace.end_phase()
    trace.fused(partial(_steps, search.orders.rows(num_rows)))
    return Traversal(levels, parents, reached, reached_arcs, in_user_ids, num_rows=num_rows)


class _Search:
    """What searches of a shard from so many sources have in common: all but where they start and end.

    `launch` searches, and returns levels, parents and what is of no use when the search was waited for.
    """

    def __init__(self, shard: Shard, num_sources: int, dtype: np.dtype) -> None:
        run, rows, incoming, num = shard.backend, shard.rows, shard.incoming, shard.num_owned
        assert isinstance(run, FusingBackend), "who calls has asked"
        vertex, num_arcs, capacity = rows.targets.dtype, shard.info.num_arcs, queue_capacity(num, num_sources)
        # The arcs of a frontier that were not counted are counted where all of it is queued.
        alike = num < MOST_QUEUED and shard.info.max_degree * num <= ALIKE * num_arcs
        # Behind these all rows have one arc, where that is known.
        require_firsts(shard)
        longer = num - incoming.singles if shard.info.order == "degree" and not shard.info.directed else num
        parts, *costs = bfs_costs(require_rates(run), num, vertex.itemsize)
        shared = {
            "num_arcs": num_arcs,
            "num_sources": num_sources,
            "capacity": capacity,
            "trace_rows": TRACE_ROWS,
            "growth": GROWTH,
            "alike": alike,
            "longer": longer,
            "parts": parts,
            **dict(zip(COSTS, costs, strict=True)),
        }
        # Where there are no vertices nothing is launched.
        empty = {"done": num == 0, "num_rows": 0, "reached": 0, "reached_arcs": 0}
        # One source is a launch parameter.
        listed = num_sources if num_sources > 1 else 0
        self.orders = Orders(run, LAYOUT, shared, empty, TRACE_ROWS, listed)
        work = Fresh(work_words(num, capacity, vertex.itemsize, TRACE_ROWS), np.dtype(np.uint32))
        # To walk takes 8 bytes a vertex; a walk is one row of the trace, by which levels in bytes are counted.
        walks = dtype == LEVEL and may_be_deep(shard)
        self.launch = run.prepared(
            search_levels, 0, num, run.abort_word,
            rows.indptr, rows.targets, incoming.indptr, incoming.targets, require_firsts(shard),
            Fresh(num, dtype), Fresh(num, vertex), work, Fresh(num, np.dtype(np.int64)) if walks else None,
            run.arrived, self.orders.words,
        )  # fmt: skip


@once_a_shard
def _search_from_one(shard: Shard, dtype: np.dtype) -> _Search:
    return _Search(shard, 1, dtype)


def _steps(log: bytes) -> list[dict]:
    """Return what every superstep did."""
    return [
        {"method": METHODS[m], "frontier": f, "arcs": a, "microseconds": ns / 1000, "bytes": 0, "levels": num_levels}
        for m, f, a, ns, num_levels in np.frombuffer(log, np.int64).reshape(-1, len(ROW)).tolist()
    ]
