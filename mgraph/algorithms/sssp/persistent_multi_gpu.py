"""Find shortest paths in one launch per rank, on ranks with kernels that access each other's memory.

The loop of delta_stepping.py, or that of near_far.py where no arc counts as heavy, runs inside
persistent_multi_gpu_kernels.cu, with no host in between. Every rank relaxes its arcs in a copy of all distances and
marks those that fell; the owners read the marked ones from all copies. Before a pull owners write settled distances
into the other copies, before the last pull all that are reached, and afterwards those that fall. There are two barriers
over all ranks a round, and one where the bound is raised. The fixed point is unique, and so are distances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.persistent_kernels import MAX_ARCS_A_RANK
from mgraph.algorithms.common.control_block import word_of
from mgraph.algorithms.common.dtype_ladder import first_dtypes, nearest_beyond, searched_bytes
from mgraph.algorithms.common.multi_gpu_search import MultiGpuSearch, target_states
from mgraph.algorithms.common.traversal import TRACE_RECORDS, Trace, Traversal
from mgraph.algorithms.derived import LIGHTEST_ARCS
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as kernel
from mgraph.algorithms.sssp.near_far import bucket_width, default_delta
from mgraph.algorithms.sssp.persistent_multi_gpu_kernels import (
    ALL_WARPS_ROW,
    LAYOUT,
    METHODS,
    WORK,
    find_distances_on_ranks,
)
from mgraph.algorithms.variant import Derived, GraphSizes, Variant
from mgraph.backends.base import Allocated, PersistentBackend
from mgraph.comm.base import Communicator
from mgraph.comm.peer_memory import HEAD_BYTES, require_peer_buffers
from mgraph.partition import Partition
from mgraph.shard.lightest_arcs import SPARSE_DEGREE, class_scale, wants_lightest_arcs
from mgraph.shard.persistent_delivery import delivery_bytes, planned_delivery_bytes
from mgraph.shard.shard import Shard, cached_on_shard, long_rows
from mgraph.types import unreached_of

# What a warp writes into other copies is aligned to cache lines (else rmat28 on four H200 takes 5 % longer).
CACHE_LINE_BYTES = 128
# The narrowest atomic between GPUs.
MIN_ATOMIC_BYTES = 4
# Widths of a bucket in mean weights per mean degree, narrower than where the host starts the rounds, which then cost
# more; but on graphs of low degree. Where there are hubs and pulls, rmat28 and rmat30 on four H200 take 7.3 and 26.7 ms
# with 2.3, 7.7 and 31.8 with 4.
DELTA_PULLED = 2.3
DELTA_PUSHED = 4.0


def require_sssp_buffers(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Open the peer buffers of sssp_multi_gpu(), once for all graphs of a size; return whether they exist."""
    assert isinstance(shard.backend, PersistentBackend), "the variant applies to no other"
    itemsize = dtype.itemsize
    num_bytes = max(peer_buffer_bytes(shard.partition, itemsize), delivery_bytes(shard, comm, itemsize))
    return require_peer_buffers(comm, shard.backend, num_bytes) is not None


def sssp_multi_gpu(
    shard: Shard,
    comm: Communicator,
    users: Sequence[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    until: Sequence[int] = (),
) -> Traversal:
    """Find distances in `dtype` from sources, distinct user ids; predecessors are found afterwards.

    With positions `until`, only up to the bucket of the farthest.
    """
    target, targets = target_states(shard.partition, until)
    search = (
        _prepare_search_from_one(shard, dtype, shard.lightest_arcs is not None)
        if len(users) == 1 and not targets
        else _prepare_search(shard, dtype, len(users), len(targets))
    )
    farthest = unreached_of(dtype) if cutoff is None else cutoff
    parameters = {
        "cutoff": word_of(farthest, dtype),
        "delta": word_of(narrow_delta(shard, dtype), dtype),
        "target": target,
    }
    (dist, _), (_, num_beyond, has_all), sources = search(comm, parameters, users, targets, trace)
    _, first, last = _parts(shard.partition, dtype.itemsize)
    assert comm.peer_buffers is not None, "require_sssp_buffers() comes first"
    all_distances = comm.peer_buffers.own[first:last].view(dtype) if has_all else None
    return Traversal(dist, None, num_beyond=num_beyond, all_distances=all_distances, sources=sources)


def _prepare_search(shard: Shard, dtype: np.dtype, num_sources: int, num_targets: int) -> MultiGpuSearch:
    """Return the prepared search, and its work area behind the distances."""
    partition = shard.partition
    info = shard.info
    has_heavy = wants_lightest_arcs(info)
    rows = shard.rows
    # A rank without memory for them reads whole rows, in the rounds of the others.
    lightest = shard.lightest_arcs if has_heavy else None
    lightest_args = (None, None) if lightest is None else (lightest.targets, lightest.weights)
    summary, distances, _ = _parts(partition, dtype.itemsize)
    num_arcs = len(rows.targets)
    shared = {
        "beyond": word_of(nearest_beyond(info, dtype), dtype),
        "stride": partition.stride,
        "multiplier": partition.multiplier,
        "num_positions": partition.num_positions,
        "num_owned": shard.num_owned,
        "num_sources": num_sources,
        "num_targets": num_targets,
        "num_arcs": info.num_arcs,
        "capacity": queue_capacity(partition, num_arcs),
        "long_rows": long_rows(shard, ALL_WARPS_ROW),
        "has_heavy": has_heavy,
        "can_pull": not info.directed,
        "scale": word_of(class_scale(info), np.dtype(np.float64)),
        "summary": HEAD_BYTES + summary,
        "distances": HEAD_BYTES + distances,
    }
    args = (
        rows.indptr, rows.targets, rows.weights, *lightest_args,
        Allocated(shard.num_owned, dtype), Allocated(work_words(partition, num_arcs), np.dtype(np.uint32)),
    )  # fmt: skip
    return MultiGpuSearch(shard, find_distances_on_ranks, METHODS, LAYOUT, shared, args)


@cached_on_shard
def _prepare_search_from_one(shard: Shard, dtype: np.dtype, has_lightest: bool) -> MultiGpuSearch:
    """Return the prepared search from one source.

    `has_lightest` is part of the key: lightest arcs may be added later.
    """
    return _prepare_search(shard, dtype, 1, 0)


def narrow_delta(shard: Shard, dtype: np.dtype) -> float | int:
    """Return the width of a bucket for this graph's weights and degrees."""
    info = shard.info
    if info.mean_degree < SPARSE_DEGREE:
        return default_delta(shard, dtype)
    pulls = info.order == "degree" and not info.directed
    return bucket_width(info, dtype, (DELTA_PULLED if pulls else DELTA_PUSHED) / info.mean_degree * info.mean_weight)


def peer_buffer_bytes(partition: Partition, itemsize: int) -> int:
    """Return the bytes of a peer buffer behind its header: its parts, and the lowest distances of three buckets."""
    return _parts(partition, itemsize)[-1] + 3 * max(itemsize, MIN_ATOMIC_BYTES)


def _parts(partition: Partition, itemsize: int) -> tuple[int, int, int]:
    """Return where the marks' summary and the distances begin in a peer buffer, and where they end; in bytes."""
    words_each = partition.stride // 32
    summary = 4 * partition.num_ranks * words_each
    distances = -(-(summary + 4 * partition.num_ranks * -(-words_each // 32)) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
    return summary, distances, distances + partition.num_states * itemsize


def queue_capacity(partition: Partition, num_arcs: int) -> int:
    """Return the queue's capacity on a rank with this many arcs: all vertices, and the long rows again."""
    return partition.stride + num_arcs // ALL_WARPS_ROW


def work_words(partition: Partition, num_arcs: int) -> int:
    """Return the 32-bit words of a rank's work area: counters, trace records, and a queue with its entries' rows."""
    sizes = {"record_capacity": TRACE_RECORDS, "capacity": queue_capacity(partition, num_arcs)}
    return -(-WORK.num_bytes(sizes, {"vertex_t": partition.dtype.itemsize}) // 4)


def _require_first_buffers(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Open peer buffers for the dtype that a search tries first."""
    return require_sssp_buffers(shard, comm, (*first_dtypes(shard, dtype, has_peer_buffers=True), dtype)[0])


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of distances and of queues, of predecessors and of sums of degrees."""
    state = searched_bytes(sizes, has_peer_buffers=True)
    return state * sizes.owned + 4 * work_words(sizes.partition, sizes.row_arcs) + (8 + 12) * sizes.owned


def _planned_buffer_bytes(sizes: GraphSizes, itemsize: int) -> int:
    return max(
        peer_buffer_bytes(sizes.partition, itemsize), planned_delivery_bytes(sizes.partition, sizes.id_bytes, itemsize)
    )


PEER_BUFFERS = Derived(
    "peer_buffers",
    _require_first_buffers,
    lambda sizes: HEAD_BYTES + _planned_buffer_bytes(sizes, searched_bytes(sizes, has_peer_buffers=True)),
)
VARIANT = Variant(
    "sssp.persistent_multi_gpu",
    when=(
        "on 2 to 8 GPUs with access to each other's memory, fewer than "
        f"2^{kernel.MAX_ROWS.bit_length() - 1} vertices with arcs and 2^{MAX_ARCS_A_RANK.bit_length() - 1} "
        "arcs each, in one launch a GPU"
    ),
    applies=lambda conditions: (
        conditions.has_rows
        and conditions.has_persistent_kernels
        and conditions.has_peer_memory
        and conditions.stride < kernel.MAX_ROWS
        and conditions.num_arcs < conditions.num_ranks * MAX_ARCS_A_RANK
    ),
    needs=(PEER_BUFFERS,),
    wants=(LIGHTEST_ARCS,),
    bytes=_bytes,
    loop=sssp_multi_gpu,
    takes_user_ids=True,
    takes_until=True,
)
