"""Bring hub and authority scores to the ranks that serve their user ids, as floats."""

from __future__ import annotations

from collections.abc import Iterator

from mgraph.algorithms.common.exact_sum import exact_sum, sum_of_ranks
from mgraph.algorithms.hits.mutual_iteration import Hubs
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import translate_results
from mgraph.types import Array


def columns_of_users(shard: Shard, comm: Communicator, found: Hubs, normalized: bool) -> dict[str, Array]:
    """Return both scores of this rank's range of user ids: 1 in all if `normalized`, else at most 1."""
    return dict(_columns(shard, comm, found, normalized))


def _columns(shard: Shard, comm: Communicator, found: Hubs, normalized: bool) -> Iterator[tuple[str, Array]]:
    xp = shard.backend.xp
    for name, owned in (("hubs", found.hubs), ("authorities", found.authorities)):
        if normalized:
            whole = sum_of_ranks(comm, exact_sum(xp, owned))
        else:
            greatest = xp.zeros(1, int)
            if len(owned):
                greatest[0] = owned.max()
            whole = int(comm.allreduce(greatest, "max")[0])
        # On the way to the ranks that serve them, scores are like distances: -1 without a state.
        (units,) = translate_results(shard, comm, owned, None)
        yield name, xp.maximum(units, 0) / float(whole)
