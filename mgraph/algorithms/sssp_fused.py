"""Shortest paths by frontiers on one rank, near before far, in one launch.

The loop is that of sssp.py, and so are the distances: the fixed point is unique. It stands in
kernels/sssp_fused.cu, where the rounds of a deep graph cost microseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgraph.algorithms.sssp import default_delta
from mgraph.algorithms.traversal import Trace, Traversal
from mgraph.comm.base import Communicator
from mgraph.kernels.backend import FusingBackend
from mgraph.kernels.sssp_fused import BEGAN, HUB_BYTES, HUBS, KINDS, LINE, LINES, LOG, PART, ROUNDS, find_distances
from mgraph.shard import Shard
from mgraph.types import Array, unreached_of


def sssp_fused(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    delta: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from `sources`, which are positions; predecessors are found afterwards."""
    assert comm.size == 1, "one rank alone runs in one launch"
    run, rows, partition = shard.backend, shard.rows, shard.partition
    assert isinstance(run, FusingBackend), "who calls has asked"
    xp, n, top = run.xp, shard.num_owned, unreached_of(dtype)
    states = np.unique(np.array([partition.state(p) for p in sources], partition.dtype))
    dist = xp.empty(n, dtype)
    if not n:
        return Traversal(dist, None)
    bounds = np.array([top if cutoff is None else cutoff, delta or default_delta(shard, dtype), 0, 0, 0], dtype)
    more = len(rows.targets) // PART
    entries = 2 * (n + more)
    counters = xp.zeros(LOG + LINE * LINES, np.int64)
    counters[ROUNDS] = len(states)
    counters[HUBS] = min(n, HUB_BYTES // dtype.itemsize) if shard.info.order == "degree" else 0
    find_distances[run](
        0, n, run.abort_word, rows.indptr, rows.targets, rows.weights, run.to_device(states), run.to_device(bounds),
        dist, xp.empty(3 * -(-n // 32), np.uint32), xp.empty(entries + 2 * more, partition.dtype),
        xp.empty(entries, np.uint32),
        xp.empty(2 * n, partition.dtype), counters,
    )  # fmt: skip
    trace.form = "fused"
    _tell(trace, run.to_host(counters[:LOG]), lambda lines: run.to_host(counters[LOG : LOG + LINE * lines]))
    return Traversal(dist, None)


def _tell(trace: Trace, head: Array, log_of: Callable[[int], Array]) -> None:
    """Note every round; the last line of a full log stands for all further ones."""
    before = int(head[BEGAN])
    for kind, frontier, arcs, ended in log_of(min(int(head[ROUNDS]), LINES)).reshape(-1, LINE).tolist():
        trace.superstep(KINDS[kind], frontier, arcs, microseconds=round((ended - before) / 1000, 1))
        before = ended
