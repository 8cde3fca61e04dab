"""Bring scores to the ranks that serve their user ids, as floats."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.pagerank.kernels import finish_scores
from mgraph.algorithms.pagerank.power_iteration import Scored
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import translate_results
from mgraph.types import Array


def scores_of_users(shard: Shard, comm: Communicator, found: Scored) -> Array:
    """Return the scores of this rank's range of user ids, each rounded once."""
    backend = shard.backend
    lo, hi = shard.user_range
    # On the way to the ranks that serve them, scores are like distances.
    (units,) = translate_results(shard, comm, found.owned, None)
    if len(found.named):
        is_served = (found.named >= lo) & (found.named < hi)
        units[backend.to_device(found.named[is_served] - lo)] = backend.to_device(found.of_named[is_served])
    scores = backend.xp.empty(hi - lo, np.float64)
    finish_scores[backend](0, hi - lo, units, found.isolated, scores)
    return scores
