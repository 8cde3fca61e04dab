"""Shortest paths by frontiers on ranks whose kernels reach each other's memory, one launch a rank.

The loop of sssp_by_weight.py runs inside kernels/sssp_peers.cu, or that of sssp.py where no arc counts as heavy, and
nobody asks the host in between. Every rank relaxes its arcs in a copy of all distances and marks what fell; the owners
read what is marked from the others' copies. Before a pull they write there what is settled. The ranks meet twice a
round, and once where the bound is raised. The fixed point is unique, and so are distances.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.orders import Orders
from mgraph.algorithms.sssp import SPARSE_DEGREE, default_delta, wants_rows_by_weight
from mgraph.algorithms.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.build.by_weight import class_scale
from mgraph.comm.base import Communicator
from mgraph.comm.peers import require_windows, wait_for_ranks
from mgraph.errors import CommAborted
from mgraph.kernels.backend import FusingBackend
from mgraph.kernels.sssp_peers import METHODS, ROW, find_distances_on_ranks
from mgraph.partition import Partition
from mgraph.shard import Shard
from mgraph.types import unreached_of

# Rounds cost less than where the host starts them: buckets are narrower by this, except on graphs of low degree.
# Buckets twice as wide take a tenth to a quarter longer at rmat26 and 27 on two H200, at rmat26 and 28 on four.
NARROWER = 8


def require_sssp_windows(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Open what sssp_peers() needs, once for all graphs of a size; return whether the ranks reach each other."""
    if not isinstance(shard.backend, FusingBackend):
        return False
    windows = require_windows(comm, shard.backend, window_bytes(shard.partition, dtype.itemsize))
    if windows is not None:
        windows.layout = "sssp"
    return windows is not None


def sssp_peers(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    delta: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from `sources`, which are positions; predecessors are found afterwards."""
    run, partition, windows = shard.backend, shard.partition, comm.windows
    assert isinstance(run, FusingBackend) and windows is not None, "require_sssp_windows() comes first"
    stride, top = partition.stride, unreached_of(dtype)
    # A rank without room for rows by weight relaxes whole ones, in the turns of the others.
    heavies = wants_rows_by_weight(shard.info)
    by_weight = shard.by_weight if heavies else None
    rows, scale = (shard.rows, np.inf) if by_weight is None else (by_weight, class_scale(shard.info))
    bounds = np.array([top if cutoff is None else cutoff, delta or narrow_delta(shard, dtype)], dtype)
    starts = sorted({int(partition.state(p)) for p in sources})
    facts = (stride, shard.num_owned, len(starts), shard.info.num_arcs, heavies, not shard.info.directed, TRACE_ROWS)
    orders = Orders(run, 0, facts, (0, 0), (TRACE_ROWS, len(ROW)), len(starts))
    orders.give((), starts)
    dist = run.xp.empty(shard.num_owned, dtype)
    work = run.xp.empty(work_words(partition), np.uint32)
    find_distances_on_ranks[run](
        0, stride, windows.abort_word, windows.table, rows.indptr, rows.targets, rows.weights, scale,
        run.to_device(bounds), dist, work, orders.words,
    )  # fmt: skip
    wait_for_ranks(comm, run)
    done, num_rows = orders.report()
    if not done:
        comm.barrier()
        raise CommAborted("the search was ended while its ranks waited for each other")
    trace.form = "windows"
    rounds = np.frombuffer(orders.rows(num_rows), np.int64).reshape(-1, len(ROW))
    for method, near, arcs, nanoseconds, num_bytes in rounds.tolist():
        comm.bytes_sent += num_bytes
        trace.superstep(METHODS[method], near, arcs, nanoseconds / 1000)
    return Traversal(dist, None)


def narrow_delta(shard: Shard, dtype: np.dtype) -> float | int:
    """Return the width of a bucket for this graph's weights and degrees."""
    info, wide = shard.info, default_delta(shard, dtype)
    if info.num_arcs < SPARSE_DEGREE * (info.num_vertices - info.num_isolated):
        return wide
    return wide / NARROWER if dtype.kind == "f" else max(1, int(wide) // NARROWER)


def window_bytes(partition: Partition, itemsize: int) -> int:
    """Return how long a rank's window is behind its head: bits of all states, their distances, and three of buckets."""
    return partition.num_states // 8 + (partition.num_states + 3) * itemsize


def work_words(partition: Partition) -> int:
    """Return how many 32-bit words a rank's search works in: counters, trace, a queue with what its entries have."""
    return 4 + 2 * TRACE_ROWS * len(ROW) + partition.stride * (4 + partition.dtype.itemsize // 4)
