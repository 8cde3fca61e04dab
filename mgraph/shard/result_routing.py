"""Whose answers go to which rank, the home of their user ids, and where they stand; built when a method wants them.

In order of degree neighbouring user ids have owners all over the ranks. A bit for every state and a place for every
word of them, an eighth of the user ids themselves, tell both ends of what travels what stands where.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.shard import Homes, Shard
from mgraph.shard.user_ids_kernels import count_ones, mark_homes
from mgraph.types import Array

# NCCL copies value by value what does not begin at a multiple of 16 bytes: every rank's part begins at one of so many
# values, of any width.
PART_ALIGNMENT = 16


def require_homes(shard: Shard, comm: Communicator) -> Homes | None:
    """Return the shard's homes, once they are found; None where every vertex' owner is its home."""
    if comm.size == 1 or not shard.partition.cyclic:
        return None
    if shard.homes is None:
        run, xp, partition = shard.backend, shard.backend.xp, shard.partition
        going, coming = xp.zeros((2, partition.num_states // 32), np.uint32)
        mark_homes[run](0, shard.num_owned, shard.user_of_local, shard.user_stride, partition.stride, going)
        comm.alltoallv(list(going.reshape(comm.size, -1)), list(coming.reshape(comm.size, -1)))
        (before_going, num_going), (before_coming, num_coming) = _counted(shard, going), _counted(shard, coming)
        shard.homes = Homes(going, before_going, coming, before_coming, num_going, num_coming)
    return shard.homes


def starts_of(nums: list[int]) -> list[int]:
    """Return where the parts of so many values of each rank begin, and where another would."""
    return [0, *accumulate(-(-num // PART_ALIGNMENT) * PART_ALIGNMENT for num in nums)]


def _counted(shard: Shard, bits: Array) -> tuple[Array, list[int]]:
    """Return where values of bits that are set stand, for each word that of its first, and how many each rank has."""
    run, xp, partition = shard.backend, shard.backend.xp, shard.partition
    counts = xp.empty(len(bits), partition.dtype)
    count_ones[run](0, len(bits), bits, counts)
    ends = xp.cumsum(counts, dtype=np.int64)
    ends_of_ranks = run.to_host(ends.reshape(partition.num_ranks, -1)[:, -1])
    nums = np.diff(ends_of_ranks, prepend=0).tolist()
    gaps = np.array(starts_of(nums)[:-1]) - (ends_of_ranks - nums)
    before = (ends - counts).reshape(partition.num_ranks, -1) + run.to_device(gaps)[:, None]
    return before.ravel().astype(partition.dtype), nums
