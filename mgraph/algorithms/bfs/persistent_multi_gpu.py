"""Breadth-first search by frontiers on ranks that access each other's memory, one launch a rank.

The loop of step.py runs inside persistent_multi_gpu_kernels.cu without the host.

Pull: every rank has two copies of the bitmap of reached vertices, one to read and one to write; each rank writes its
slice into all copies.
Push of few arcs: candidate parents are sent into the owners' peer buffers. The first candidate finds a vertex; further
ones are deferred to the next level, where the smallest wins. After a small push the owner enqueues new vertices at
once; after a large push or a pull the queue is rebuilt from the bitmaps, and only if the next level pushes.
Push of many arcs: only target bits are exchanged, and marked vertices scan for their parents as in a pull.
When few vertices are unreached they are listed, and later levels scan the list only.

Barriers: one in a pulled level, two in a pushed one, and one more where the queue must be built first, an inbox
overflows or a list was given up. The counts that decide on the next level are summed there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs import persistent_multi_gpu_kernels as kernels
from mgraph.algorithms.bfs.persistent import level_dtypes
from mgraph.algorithms.bfs.persistent_kernels import MAX_ARCS_A_RANK, queue_capacity
from mgraph.algorithms.bfs.persistent_multi_gpu_kernels import LAYOUT, METHODS, WORK, search_ranks
from mgraph.algorithms.bfs.step import BETA, GROWTH
from mgraph.algorithms.common.multi_gpu_search import MultiGpuSearch, target_states
from mgraph.algorithms.common.traversal import TRACE_RECORDS, Trace, Traversal
from mgraph.algorithms.derived import FIRST_NEIGHBORS, IN_ROWS
from mgraph.algorithms.variant import Derived, GraphSizes, Variant
from mgraph.backends.base import Allocated, PersistentBackend
from mgraph.backends.kernel import for_ranks
from mgraph.comm.base import Communicator
from mgraph.comm.peer_memory import HEAD_BYTES, require_peer_buffers
from mgraph.partition import ALIGNMENT, Partition
from mgraph.shard.in_rows import require_first_neighbors
from mgraph.shard.persistent_delivery import delivery_bytes, planned_delivery_bytes
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.types import LEVEL

# An inbox holds candidates for 1 / INBOX_PART of its rank's vertices: enough for one arc per 8 vertices, if no rank
# receives more than twice its share. More arcs are pushed as bits.
INBOX_PART = 4
# Vertices of larger degree are hubs: one of their rows may take a warp longer than all its others.
HUB_ARCS = 1 << 14


def require_bfs_buffers(shard: Shard, comm: Communicator) -> bool:
    """Open the peer buffers that bfs_multi_gpu() needs; return whether all ranks have access."""
    assert isinstance(shard.backend, PersistentBackend), "the variant applies to no other"
    num_bytes = max(peer_buffer_bytes(shard.partition), delivery_bytes(shard, comm, LEVEL.itemsize))
    return require_peer_buffers(comm, shard.backend, num_bytes) is not None


def bfs_multi_gpu(
    shard: Shard,
    comm: Communicator,
    users: Sequence[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal:
    """Find the levels and parents that step.py finds, from distinct user ids.

    With positions `until`, only up to the level of the farthest.
    """
    assert comm.size == shard.partition.num_ranks, "the kernel is compiled for this number"
    target, targets = target_states(shard.partition, until)
    is_usual = len(users) == 1 and not targets
    for dtype, limit in level_dtypes(shard, depth_limit, shard.exceeds_uint8_levels):
        search = _search_from_one(shard, dtype) if is_usual else _search_from(shard, dtype, len(users), len(targets))
        own = {"depth_limit": -1 if limit is None else limit, "target": target}
        (levels, parents), (num_records, reached, reached_arcs), sources = search(comm, own, users, targets, trace)
        if limit is None or limit == depth_limit or num_records < limit:
            return Traversal(levels, parents, reached, reached_arcs, sources=sources)
        shard.exceeds_uint8_levels = True
        # Freed before the next search allocates its own.
        del levels, parents
    raise AssertionError("levels of 32 bits are never too narrow")


def _search_from(shard: Shard, dtype: np.dtype, num_sources: int, num_targets: int) -> MultiGpuSearch:
    partition = shard.partition
    rows = shard.rows
    incoming = shard.incoming
    first_neighbors = require_first_neighbors(shard)
    shared = {
        "num_sources": num_sources,
        "num_targets": num_targets,
        "stride": partition.stride,
        "multiplier": partition.multiplier,
        "first": partition.offset(shard.rank),
        "num_owned": shard.num_owned,
        "num_positions": partition.num_positions,
        "num_arcs": shard.info.num_arcs,
        "last_arc": len(incoming.targets),
        "degree_one_from": shard.num_owned - incoming.num_degree_at_most_one,
        "num_hubs": _num_hubs(shard),
        "capacity": queue_capacity(partition.stride),
        "inbox": _inbox(partition),
        "beta": BETA,
        "growth": GROWTH,
    }
    args = (
        rows.indptr, rows.targets, incoming.indptr, incoming.targets, first_neighbors,
        Allocated(shard.num_owned, dtype), Allocated(shard.num_owned, partition.dtype),
    )  # fmt: skip
    kernel = for_ranks(search_ranks, partition.num_ranks)
    return MultiGpuSearch(shard, kernel, METHODS, LAYOUT, shared, args)


@cached_on_shard
def _search_from_one(shard: Shard, dtype: np.dtype) -> MultiGpuSearch:
    return _search_from(shard, dtype, 1, 0)


@cached_on_shard
def _num_hubs(shard: Shard) -> int:
    """Return how many of the first in-rows are hubs'; 0 in any order but by degree."""
    indptr = shard.incoming.indptr
    longest = indptr[: len(shard.incoming.targets) // HUB_ARCS + 2]
    return int((longest[1:] - longest[:-1] > HUB_ARCS).sum()) if shard.info.order == "degree" else 0


def peer_buffer_bytes(partition: Partition) -> int:
    """Return the bytes of a rank's peer buffer after its head."""
    sizes = {
        "words": partition.stride // 32,
        "num_ranks": partition.num_ranks,
        "inbox": _inbox(partition),
        "record_capacity": TRACE_RECORDS,
        "capacity": queue_capacity(partition.stride),
    }
    itemsize = partition.dtype.itemsize
    return WORK.num_bytes(sizes, {"vertex_t": itemsize, "Candidate": 2 * itemsize})


def _inbox(partition: Partition) -> int:
    """Return how many candidates a rank may receive from each other rank."""
    return max(partition.stride // INBOX_PART, ALIGNMENT)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of levels in 8 and in 32 bits, parents and first neighbors; all else is in the peer buffers."""
    return (1 + 4 + 2 * sizes.vertex) * sizes.owned


def _planned_buffer_bytes(sizes: GraphSizes) -> int:
    delivered = planned_delivery_bytes(sizes.partition, sizes.id_bytes, LEVEL.itemsize)
    return max(peer_buffer_bytes(sizes.partition), delivered)


PEER_BUFFERS = Derived(
    "peer_buffers",
    lambda shard, comm, dtype: require_bfs_buffers(shard, comm),
    lambda sizes: HEAD_BYTES + _planned_buffer_bytes(sizes),
)
VARIANT = Variant(
    "bfs.persistent_multi_gpu",
    when=(
        "on 2 to 8 GPUs with access to each other's memory, fewer than "
        f"2^{kernels.MAX_ROWS.bit_length() - 1} vertices with arcs and 2^{MAX_ARCS_A_RANK.bit_length() - 1} "
        "arcs each, in one launch a GPU"
    ),
    applies=lambda conditions: (
        conditions.has_rows
        and conditions.has_persistent_kernels
        and conditions.has_peer_memory
        and conditions.stride < kernels.MAX_ROWS
        and conditions.num_arcs < conditions.num_ranks * MAX_ARCS_A_RANK
    ),
    needs=(IN_ROWS, PEER_BUFFERS, FIRST_NEIGHBORS),
    bytes=_bytes,
    loop=bfs_multi_gpu,
    takes_user_ids=True,
    takes_until=True,
)
