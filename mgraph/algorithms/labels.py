"""From the roots of components to labels by user id."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.union import Roots
from mgraph.comm.base import Communicator
from mgraph.kernels.components import find_smallest, label_users, list_roots
from mgraph.shard import Shard
from mgraph.types import Array, none_of, vertex_dtype

# Roots are told one by one where no rank has more than one for so many of its vertices.
ROOM = 8


def labels_of_users(shard: Shard, comm: Communicator, found: Roots) -> Array:
    """Return, for this rank's range of user ids, the smallest user id of each one's component, as int64."""
    run, xp, partition, roots = shard.backend, shard.backend.xp, shard.partition, found.parents
    (lo, hi), ids = shard.user_range, vertex_dtype(shard.info.num_vertices)
    labels = xp.empty(hi - lo, np.int64)
    # In natural order a position is a user id, and a root the smallest.
    shape = (shard.position_of_user, lo, partition.num_positions, partition.stride, partition.multiplier)
    of_users, smallest = (*shape, found.told, found.giant, roots), None
    if partition.cyclic:
        smallest = xp.full(len(roots), none_of(ids), ids)
        find_smallest[run](0, hi - lo, *of_users, smallest)
        if comm.size > 1:
            _agree(shard, comm, roots, smallest)
    label_users[run](0, hi - lo, *of_users, smallest, labels)
    return labels


def _agree(shard: Shard, comm: Communicator, roots: Array, smallest: Array) -> None:
    """Make the smallest user ids at the roots those of all ranks."""
    run, xp, partition = shard.backend, shard.backend.xp, shard.partition
    own, room = (partition.offset(shard.rank), partition.multiplier), shard.num_owned // ROOM
    counters, found = xp.zeros(1, np.int64), xp.empty(room, roots.dtype)
    list_roots[run](0, shard.num_owned, *own, room, roots, counters, found)
    count = int(counters[0])
    # Where there are few components, to tell which they are takes less than all that there could be.
    if comm.any(count > room):
        comm.allreduce(smallest, "min")
        return
    everywhere = xp.concatenate(comm.alltoallv([found[:count]] * comm.size))
    smallest[everywhere] = comm.allreduce(smallest[everywhere], "min")
