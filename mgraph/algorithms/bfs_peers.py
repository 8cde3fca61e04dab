"""Breadth-first search by frontiers on ranks whose kernels reach each other's memory, one launch a rank.

The loop of bfs.py runs inside kernels/bfs_peers.cu, and nobody asks the host in between. Pull needs a bitmap
of who is reached: every rank has a copy, into which each writes its slice. Push offers parents straight to
the owners while there are few arcs; of many only bits travel, and whoever they find looks for its parent itself.
The ranks meet once a level that is pulled and twice a level that is pushed, once more where it must be queued
first, and add up there what decides on the next one.
"""

from __future__ import annotations

from mgraph.algorithms.bfs import BETA, GROWTH
from mgraph.algorithms.traversal import Trace, Traversal
from mgraph.build.in_rows import require_firsts
from mgraph.comm.base import Communicator
from mgraph.comm.peers import Windows, require_windows, wait_for_ranks
from mgraph.errors import CommAborted
from mgraph.kernels.backend import FusingBackend
from mgraph.kernels.bfs_peers import FACTS, REPORT, ROW, search_ranks
from mgraph.partition import Partition
from mgraph.shard import Shard
from mgraph.types import LEVEL, none_of

# Levels that are told one by one; what comes after them is added up in the last.
TRACE_ROWS = 1 << 12
# Where the rows of the trace begin in the words that host and kernel share.
TRACE = len(FACTS) + len(REPORT)
# A rank's queue holds this part of its vertices, and this many at least; a larger frontier is pulled.
QUEUE_PART = 4
QUEUE_LEAST = 1024


def require_bfs_windows(shard: Shard, comm: Communicator) -> bool:
    """Open what bfs_peers() needs, once for all graphs of a size; return whether the ranks reach each other."""
    if not isinstance(shard.backend, FusingBackend):
        return False
    windows = require_windows(comm, shard.backend, window_bytes(shard.partition))
    if windows is not None:
        _make_clean(shard, comm, windows)
    return windows is not None


def bfs_peers(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and parents from `sources`, which are positions; the same as bfs() does."""
    run, partition, windows = shard.backend, shard.partition, comm.windows
    assert isinstance(run, FusingBackend) and windows is not None, "require_bfs_windows() comes first"
    stride, dtype = partition.stride, partition.dtype
    levels, parents = run.xp.empty(shard.num_owned, LEVEL), run.xp.empty(shard.num_owned, dtype)
    starts = sorted({int(partition.state(p)) for p in sources})
    words, on_host = run.host_words(TRACE + TRACE_ROWS * len(ROW) + len(starts))
    on_host[:TRACE] = (
        stride, partition.multiplier, partition.offset(comm.rank), shard.num_owned, partition.num_positions,
        shard.info.num_arcs, len(shard.incoming.targets), _capacity(partition), BETA, GROWTH,
        -1 if depth_limit is None else depth_limit, len(starts), TRACE_ROWS, 0, 0, 0, 0,
    )  # fmt: skip
    on_host[TRACE + TRACE_ROWS * len(ROW) :][: len(starts)] = starts
    search_ranks[run](
        0, stride, windows.abort_word, windows.table,
        shard.rows.indptr, shard.rows.targets, shard.incoming.indptr, shard.incoming.targets, require_firsts(shard),
        levels, parents, words,
    )  # fmt: skip
    wait_for_ranks(comm, run)
    done, num_rows, reached, reached_arcs = on_host[len(FACTS) : TRACE].tolist()
    if not done:
        comm.barrier()
        raise CommAborted("the search was ended while its ranks waited for each other")
    rows = on_host[TRACE:][: num_rows * len(ROW)].reshape(-1, len(ROW))
    trace.form = "windows"
    for pulled, frontier, arcs, nanoseconds, num_bytes in rows.tolist():
        comm.bytes_sent += num_bytes
        trace.superstep("pull" if pulled else "push", frontier, arcs, nanoseconds / 1000)
    return Traversal(levels, parents, reached, reached_arcs)


def _capacity(partition: Partition) -> int:
    return partition.stride // QUEUE_PART + QUEUE_LEAST


def window_bytes(partition: Partition) -> int:
    """Return how long a rank's window is behind its head."""
    return _window_parts(partition)[-1]


def _window_parts(partition: Partition) -> tuple[int, int, int, int]:
    """Return where in a window the marks begin, the offers, and what is a rank's own; and its end; all in bytes."""
    itemsize = partition.dtype.itemsize
    marks = 2 * partition.num_states // 8
    offers = marks + partition.stride // 8
    own = offers + partition.stride * itemsize
    return marks, offers, own, own + 8 * (2 + TRACE_ROWS * len(ROW)) + _capacity(partition) * (16 + itemsize)


def _make_clean(shard: Shard, comm: Communicator, windows: Windows) -> None:
    """See that no marks and no offers are in this rank's window; a search that ends leaves it so."""
    dtype = shard.partition.dtype
    marks, offers, own, _ = layout = _window_parts(shard.partition)
    if windows.layout != ("bfs", layout):
        windows.layout = "bfs", layout
        windows.own[marks:offers] = 0
        windows.own[offers:own].view(dtype)[:] = none_of(dtype)
        shard.backend.synchronize()
        comm.barrier()
