"""From the roots of components to labels by user id."""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.kernels.components import find_smallest, label_users
from mgraph.shard import Shard
from mgraph.types import Array, none_of, vertex_dtype


def labels_of_users(shard: Shard, comm: Communicator, roots: Array) -> Array:
    """Return, for this rank's range of user ids, the smallest user id of each one's component, as int64."""
    run, partition = shard.backend, shard.partition
    if not partition.cyclic:
        # In natural order a position is a user id.
        own = shard.rank * partition.stride
        return roots[own : own + shard.num_owned].astype(np.int64)
    (lo, hi), ids = shard.user_range, vertex_dtype(shard.info.num_vertices)
    shape = (shard.position_of_user, lo, partition.num_positions)
    smallest = run.xp.full(len(roots), none_of(ids), ids)
    find_smallest[run](0, hi - lo, *shape, roots, smallest)
    if comm.size > 1:
        comm.allreduce(smallest, "min")
    labels = run.xp.empty(hi - lo, np.int64)
    label_users[run](0, hi - lo, *shape, roots, smallest, labels)
    return labels
