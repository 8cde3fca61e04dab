"""Result routing in degree order: build the table that maps owned vertices to the ranks that serve their user ids.

A rank serves a contiguous range of user ids; their owners are spread over all ranks. Sender and receiver enumerate the
values of a transfer in the same order, by a bitmap over states with prefix counts: an eighth of the bytes of the user
ids themselves, and no ids are sent with the values.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.shard import ResultRouting, Shard
from mgraph.shard.user_ids_kernels import count_ones, mark_serving_ranks
from mgraph.types import Array

# NCCL copies a part value by value if it does not begin at a multiple of 16 bytes: every rank's part begins at a
# multiple of 16 values, of any width.
PART_ALIGNMENT = 16


def require_result_routing(shard: Shard, comm: Communicator) -> ResultRouting | None:
    """Return the shard's result routing, built on first use.

    It is None if every owner serves its own vertices.
    """
    if comm.size == 1 or not shard.partition.cyclic:
        return None
    if shard.result_routing is None:
        backend = shard.backend
        xp = shard.backend.xp
        partition = shard.partition
        send_bits, recv_bits = xp.zeros((2, partition.num_states // 32), np.uint32)
        mark_serving_ranks[backend](
            0, shard.num_owned, shard.user_of_local, shard.user_stride, partition.stride, send_bits
        )
        comm.alltoallv(list(send_bits.reshape(comm.size, -1)), list(recv_bits.reshape(comm.size, -1)))
        (send_before, send_counts) = _prefix(shard, send_bits)
        (recv_before, recv_counts) = _prefix(shard, recv_bits)
        shard.result_routing = ResultRouting(send_bits, send_before, recv_bits, recv_before, send_counts, recv_counts)
    return shard.result_routing


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
