"""Result routing in degree order: build the table by which values of owned vertices reach the ranks that serve them.

A rank serves a contiguous range of user ids; their owners are spread over all ranks. Values are sent in the order of
user ids, and no ids with them: the receiver knows by a bitmap over its range, with prefix counts, which of its user ids
each rank sends. So it merges the values of all ranks as it reads them, each once and one after another, and only the
owner accesses its values at random.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.shard import ResultRouting, Shard
from mgraph.shard.user_ids_kernels import GROUP, count_ones, mark_users, order_by_user
from mgraph.types import Array

# NCCL copies a part value by value if it does not begin at a multiple of 16 bytes, and a warp writes 32 values at once.
PART_ALIGNMENT = 32


def require_result_routing(shard: Shard, comm: Communicator) -> ResultRouting | None:
    """Return the shard's result routing, built on first use.

    It is None if every owner serves its own vertices.
    """
    if comm.size == 1 or not shard.partition.cyclic:
        return None
    if shard.result_routing is None:
        backend = shard.backend
        xp = backend.xp
        stride = bits_of_range(shard)
        # Not two rows of one array: only those received are kept.
        send_bits = xp.zeros(comm.size * stride // 32, np.uint32)
        recv_bits = xp.zeros(comm.size * stride // 32, np.uint32)
        mark_users[backend](0, shard.num_owned, shard.user_of_local, shard.user_stride, stride, send_bits)
        comm.alltoallv(list(send_bits.reshape(comm.size, -1)), list(recv_bits.reshape(comm.size, -1)))
        send_before, send_counts = _prefix(shard, send_bits)
        order = xp.zeros(aligned_starts(send_counts)[-1], shard.partition.dtype)
        order_by_user[backend](
            0, shard.num_owned, shard.user_of_local, shard.user_stride, stride, send_bits, send_before, order
        )
        recv_before, _ = _prefix(shard, recv_bits)
        counts = np.zeros((comm.size, comm.size), np.int64)
        comm.allgather(np.array(send_counts, np.int64), counts)
        max_received = max(aligned_starts(of_rank)[-1] for of_rank in counts.T.tolist())
        shard.result_routing = ResultRouting(order, recv_bits, recv_before, counts, max_received)
    return shard.result_routing


def bits_of_range(shard: Shard) -> int:
    """Return the bits of a bitmap over a rank's range of user ids, in whole groups."""
    return max(-(-shard.user_stride // GROUP), 1) * GROUP


def aligned_starts(counts: list[int]) -> list[int]:
    """Return the aligned starts of parts with these numbers of values, and the end of the last part."""
    return [0, *accumulate(-(-count // PART_ALIGNMENT) * PART_ALIGNMENT for count in counts)]


def _prefix(shard: Shard, bits: Array) -> tuple[Array, list[int]]:
    """Return for each word of a bitmap the index of its first value, and the number of values of each rank."""
    backend = shard.backend
    xp = shard.backend.xp
    partition = shard.partition
    counts = xp.empty(len(bits), partition.dtype)
    count_ones[backend](0, len(bits), bits, counts)
    ends = xp.cumsum(counts, dtype=np.int64)
    ends_of_ranks = backend.to_host(ends.reshape(partition.num_ranks, -1)[:, -1])
    of_ranks = np.diff(ends_of_ranks, prepend=0).tolist()
    # Alignment moves the values of each rank.
    gaps = np.array(aligned_starts(of_ranks)[:-1]) - (ends_of_ranks - of_ranks)
    before = (ends - counts).reshape(partition.num_ranks, -1) + backend.to_device(gaps)[:, None]
    return before.ravel().astype(partition.dtype), of_ranks
