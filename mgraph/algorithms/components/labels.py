"""Translate the roots of components to labels by user id."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.components.kernels import find_smallest, label_users, list_roots
from mgraph.algorithms.components.union_find import Roots
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array, none_of, vertex_dtype

# Roots are exchanged one by one where no rank has more than one for this many of its vertices.
ROOT_SHARE = 8


def labels_of_users(shard: Shard, comm: Communicator, found: Roots) -> Array:
    """Return the labels of this rank's range of user ids, as int64.

    A label is the smallest user id of a component.
    """
    backend = shard.backend
    xp = shard.backend.xp
    partition = shard.partition
    roots = found.parents
    (lo, hi) = shard.user_range
    ids = vertex_dtype(shard.info.num_vertices)
    labels = xp.empty(hi - lo, np.int64)
    shape = (partition.stride, partition.multiplier)
    of_states = (found.marked, found.giant, roots)
    # In natural order a position is a user id, and a root the smallest.
    smallest = None
    if partition.cyclic:
        smallest = backend.full(len(roots), none_of(ids), ids)
        base = shard.rank * partition.stride
        find_smallest[backend](0, shard.num_owned, shard.user_of_local, base, *shape, *of_states, smallest)
        if comm.size > 1:
            _agree(shard, comm, found, smallest)
    label_users[backend](
        0, hi - lo, shard.position_of_user, lo, partition.num_positions, *shape, *of_states, smallest, labels
    )  # fmt: skip
    return labels


def _agree(shard: Shard, comm: Communicator, found: Roots, smallest: Array) -> None:
    """Reduce the smallest user ids at the roots over all ranks."""
    backend = shard.backend
    xp = shard.backend.xp
    partition = shard.partition
    num = shard.num_owned
    capacity = num // ROOT_SHARE
    base = shard.rank * partition.stride
    counters = xp.zeros(1, np.int64)
    own = xp.empty(capacity, found.parents.dtype)
    of_states = (partition.stride, partition.multiplier, capacity, found.marked, found.giant, found.parents)
    list_roots[backend](0, -(-num // 32), num, base, *of_states, counters, own)
    ends = np.cumsum(comm.allgather(backend.to_host(counters), np.empty(comm.size, np.int64)))
    counts = np.diff(ends, prepend=0)
    # Where there are few components, a list of their roots is shorter than a value for every position.
    if any(count > partition.num_owned(r) // ROOT_SHARE for r, count in enumerate(counts)):
        comm.allreduce(smallest, "min")
        return
    all_roots = xp.empty(ends[-1], own.dtype)
    comm.alltoallv([own[: counts[comm.rank]]] * comm.size, xp.split(all_roots, ends[:-1].tolist()))
    smallest[all_roots] = comm.allreduce(smallest[all_roots], "min")
