"""Breadth-first search by frontiers on ranks whose kernels reach each other's memory, one launch a rank.

The loop of bfs.py runs inside kernels/bfs_peers.cu, and nobody asks the host in between. Pull needs a bitmap of who is
reached: every rank has two copies, one to read and one to write, into which each rank writes its slice. Push offers
parents to the owners, side by side in their windows, while there are few arcs; of many only bits travel, and whoever
they find looks for its parent itself, as in a pull. When few vertices are left, those that a level does not find are
listed, and look on alone. The ranks meet once a level that is pulled and twice or three times a level that is pushed,
once more where it must be queued first, and add up there what decides on the next one.
"""

from __future__ import annotations

from mgraph.algorithms.bfs import BETA, GROWTH
from mgraph.algorithms.orders import Orders, wait_for_search
from mgraph.algorithms.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.build.in_rows import require_firsts
from mgraph.comm.base import Communicator
from mgraph.comm.peers import Windows, require_windows
from mgraph.kernels.backend import GIVEN_WINDOWS, Fresh, FusingBackend
from mgraph.kernels.bfs_fused import queue_capacity
from mgraph.kernels.bfs_peers import COUNTERS, METHODS, ROW, search_ranks
from mgraph.partition import ALIGNMENT, Partition
from mgraph.shard import Shard, once_a_shard
from mgraph.types import LEVEL, none_of

# How many orders are a search's own: the first of them.
OWN_ORDERS = 2
# An inbox holds offers for this part of its vertices: so many as one arc for 16 vertices brings, if none gets twice
# its share. More arcs are pushed as bits.
INBOX_PART = 8


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
    run, windows = shard.backend, comm.windows
    assert isinstance(run, FusingBackend) and windows is not None, "require_bfs_windows() comes first"
    starts = sorted({int(shard.partition.state(p)) for p in sources})
    search = _search_from_one(shard) if len(starts) == 1 else _Search(shard, len(starts))
    search.orders.give((-1 if depth_limit is None else depth_limit, starts[0] if starts else 0), starts)
    levels, parents = search.launch(*windows.given)
    reached, reached_arcs = wait_for_search(comm, search.orders, trace, METHODS)
    return Traversal(levels, parents, reached, reached_arcs)


class _Search:
    """What searches of a shard from so many sources have in common: all but where they start and end, and the windows.

    `launch` takes what windows give, searches, and returns levels and parents.
    """

    def __init__(self, shard: Shard, num_sources: int) -> None:
        run, partition, rows, incoming = shard.backend, shard.partition, shard.rows, shard.incoming
        assert isinstance(run, FusingBackend), "who calls has asked"
        shared = (
            num_sources, partition.stride, partition.multiplier, partition.offset(shard.rank), shard.num_owned,
            partition.num_positions, shard.info.num_arcs, len(incoming.targets), shard.num_owned - incoming.singles,
            queue_capacity(partition.stride), _inbox(partition), BETA, GROWTH, TRACE_ROWS,
        )  # fmt: skip
        # One source is among a search's own orders.
        listed = num_sources if num_sources > 1 else 0
        self.orders = Orders(run, OWN_ORDERS, shared, (0, 0, 0, 0), (TRACE_ROWS, len(ROW)), listed)
        self.launch = run.prepared(
            search_ranks, 0, partition.stride, *GIVEN_WINDOWS,
            rows.indptr, rows.targets, incoming.indptr, incoming.targets, require_firsts(shard),
            Fresh(shard.num_owned, LEVEL), Fresh(shard.num_owned, partition.dtype), self.orders.words,
        )  # fmt: skip


@once_a_shard
def _search_from_one(shard: Shard) -> _Search:
    return _Search(shard, 1)


def window_bytes(partition: Partition) -> int:
    """Return how long a rank's window is behind its head."""
    return _window_parts(partition)[-1]


def _inbox(partition: Partition) -> int:
    """Return how many offers a rank may have from each of the others."""
    return max(partition.stride // INBOX_PART, ALIGNMENT)


def _window_parts(partition: Partition) -> tuple[int, int, int]:
    """Return where in a window the offers begin, and the inboxes; and its end; all in bytes."""
    itemsize = partition.dtype.itemsize
    offers = 2 * partition.num_states // 8
    inboxes = offers + partition.stride * itemsize
    own = inboxes + partition.num_ranks * _inbox(partition) * 2 * itemsize
    queue = queue_capacity(partition.stride) * (16 + itemsize)
    return offers, inboxes, own + 8 * (COUNTERS + TRACE_ROWS * len(ROW)) + queue


def _make_clean(shard: Shard, comm: Communicator, windows: Windows) -> None:
    """See that no offers are in this rank's window; a search that ends leaves it so."""
    dtype = shard.partition.dtype
    offers, inboxes, _ = layout = _window_parts(shard.partition)
    if windows.layout != ("bfs", layout):
        windows.layout = "bfs", layout
        windows.own[offers:inboxes].view(dtype)[:] = none_of(dtype)
        shard.backend.synchronize()
        comm.barrier()
