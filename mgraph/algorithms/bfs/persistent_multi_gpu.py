"""Breadth-first search by frontiers on ranks whose kernels reach each other's memory, one launch a rank.

The loop of bfs.py runs inside algorithms/bfs/persistent_multi_gpu_kernels.cu, and nobody asks the host in between. Pull needs a bitmap of who is
reached: every rank has two copies, one to read and one to write, into which each rank writes its slice. Push offers
parents to the owners, side by side in their windows, while there are few arcs: the first offer finds a vertex, and what
comes later waits for the next level, where the smallest wins. Whoever few offers find is queued; others are when the
next level asks for them, as after a pull. Of many arcs only bits travel, and whoever they find looks for its parent
itself, as in a pull. When few vertices are left they are listed, and look alone. The ranks meet once a level that is
pulled and twice a level that is pushed, once more where it must be queued first, an inbox is full or a list was given
up, and add up there what decides on the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mgraph.algorithms.bfs.persistent_kernels import queue_capacity
from mgraph.algorithms.bfs.persistent_multi_gpu_kernels import LAYOUT, METHODS, WORK, search_ranks
from mgraph.algorithms.bfs.step import BETA, GROWTH
from mgraph.algorithms.common.dtype_ladder import levels_in_bytes_first
from mgraph.algorithms.common.multi_gpu_search import SearchPeers
from mgraph.algorithms.common.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.backends.base import Fresh, FusingBackend
from mgraph.backends.kernel import for_ranks
from mgraph.comm.base import Communicator
from mgraph.comm.peers import require_windows
from mgraph.partition import ALIGNMENT, Partition
from mgraph.shard.in_rows import require_firsts
from mgraph.shard.shard import Shard, once_a_shard

# An inbox holds offers for this part of its vertices: so many as one arc for 8 vertices brings, if none gets twice
# its share. More arcs are pushed as bits.
INBOX_PART = 4
# Rows of more arcs are hubs': one of them may take a warp longer than all its others.
HUB_ARCS = 1 << 14


def require_bfs_windows(shard: Shard, comm: Communicator) -> bool:
    """Open what bfs_peers() needs, once for all graphs of a size; return whether the ranks reach each other."""
    if not isinstance(shard.backend, FusingBackend):
        return False
    return require_windows(comm, shard.backend, window_bytes(shard.partition)) is not None


def bfs_peers(
    shard: Shard, comm: Communicator, users: Sequence[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and parents from sources, different user ids; the same as bfs() does from their positions."""
    return levels_in_bytes_first(shard, partial(_search, shard, comm, users, trace), depth_limit)


def _search(
    shard: Shard, comm: Communicator, users: Sequence[int], trace: Trace, dtype: np.dtype, depth_limit: int | None
) -> Traversal:
    assert comm.size == shard.partition.num_ranks, "the kernel is compiled for so many"
    search = _search_from_one(shard, dtype) if len(users) == 1 else _search_from(shard, dtype, len(users))
    limit = -1 if depth_limit is None else depth_limit
    (levels, parents), (num_rows, reached, reached_arcs), sources = search(comm, {"depth_limit": limit}, users, trace)
    return Traversal(levels, parents, reached, reached_arcs, num_rows=num_rows, sources=sources)


def _search_from(shard: Shard, dtype: np.dtype, num_sources: int) -> SearchPeers:
    partition, rows, incoming, firsts = shard.partition, shard.rows, shard.incoming, require_firsts(shard)
    shared = {
        "num_starts": num_sources,
        "stride": partition.stride,
        "multiplier": partition.multiplier,
        "first": partition.offset(shard.rank),
        "num_owned": shard.num_owned,
        "num_positions": partition.num_positions,
        "num_arcs": shard.info.num_arcs,
        "last_arc": len(incoming.targets),
        "num_longer": shard.num_owned - incoming.singles,
        "num_hubs": _num_hubs(shard),
        "capacity": queue_capacity(partition.stride),
        "inbox": _inbox(partition),
        "beta": BETA,
        "growth": GROWTH,
    }
    args = (
        rows.indptr, rows.targets, incoming.indptr, incoming.targets, firsts,
        Fresh(shard.num_owned, dtype), Fresh(shard.num_owned, partition.dtype),
    )  # fmt: skip
    kernel = for_ranks(search_ranks, partition.num_ranks)
    return SearchPeers(shard, num_sources, kernel, METHODS, LAYOUT, shared, args)


@once_a_shard
def _search_from_one(shard: Shard, dtype: np.dtype) -> SearchPeers:
    return _search_from(shard, dtype, 1)


@once_a_shard
def _num_hubs(shard: Shard) -> int:
    """Return how many of the first in-rows are hubs': the first of them in degree order, and none in any other."""
    indptr = shard.incoming.indptr
    longest = indptr[: len(shard.incoming.targets) // HUB_ARCS + 2]
    return int((longest[1:] - longest[:-1] > HUB_ARCS).sum()) if shard.info.order == "degree" else 0


def window_bytes(partition: Partition) -> int:
    """Return the bytes of a rank's window behind its head."""
    sizes = {
        "words": partition.stride // 32,
        "num_ranks": partition.num_ranks,
        "inbox": _inbox(partition),
        "num_records": TRACE_ROWS,
        "capacity": queue_capacity(partition.stride),
    }
    itemsize = partition.dtype.itemsize
    return WORK.num_bytes(sizes, {"vertex_t": itemsize, "Candidate": 2 * itemsize})


def _inbox(partition: Partition) -> int:
    """Return how many offers a rank may have from each of the others."""
    return max(partition.stride // INBOX_PART, ALIGNMENT)
