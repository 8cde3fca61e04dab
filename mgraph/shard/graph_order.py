"""Give the results of a search in the graph's own order: each rank those of the vertices that it owns, as user ids.

Nothing is exchanged: a value stays with its vertex, and the user id of the vertex is beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgraph.backends.base import Allocated, Bound
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.shard.user_ids import user_dtype, users_of_states
from mgraph.shard.user_ids_kernels import translate_parents, translate_tree
from mgraph.types import Array


def owned_users(shard: Shard) -> Array:
    """Return the user id of each owned vertex, as int64."""
    if shard.user_of_local is not None:
        return shard.user_of_local.astype(np.int64)
    first = shard.partition.offset(shard.rank)
    return shard.backend.xp.arange(first, first + shard.num_owned, dtype=np.int64)


def owned_distances(shard: Shard, distances: Array) -> Array:
    """Return the distances of owned vertices in the dtype of results, with -1 (inf for floats) if unreached."""
    (out,) = _conversion(shard, distances.dtype)(distances)
    return out


def owned_predecessors(shard: Shard, comm: Communicator, predecessors: Array) -> Array:
    """Return the predecessors of owned vertices as user ids: int64, -1 for none."""
    users = users_of_states(shard, comm)
    if users is None:
        (out,) = _lookup(shard, predecessors.dtype, None)(predecessors)
    else:
        (out,) = _lookup(shard, predecessors.dtype, users.dtype)(predecessors, users)
    return out


@cached_on_shard
def _conversion(shard: Shard, distance: np.dtype) -> Callable[..., list[Array]]:
    """Return a prepared launch that converts the distances of owned vertices."""
    num = shard.num_owned
    return shard.backend.prepared(
        translate_tree, 0, num, None, num, Bound(distance), None, None, Allocated(num, user_dtype(distance)), None
    )


@cached_on_shard
def _lookup(shard: Shard, vertex: np.dtype, user: np.dtype | None) -> Callable[..., list[Array]]:
    """Return a prepared launch that looks up the user ids of predecessors."""
    partition = shard.partition
    return shard.backend.prepared(
        translate_parents, 0, shard.num_owned, Bound(vertex), partition.stride, partition.multiplier,
        None if user is None else Bound(user), Allocated(shard.num_owned, np.dtype(np.int64)),
    )  # fmt: skip
