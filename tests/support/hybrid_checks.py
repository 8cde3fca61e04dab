"""Compare shortest paths of one CPU rank with the oracle's."""

from __future__ import annotations

import numpy as np
import oracles
from naive_shard import predecessor_parts
from sweep_checks import of_users


def check_found(case, sources, order, cutoff, shards, found):
    """Compare distances, predecessors and counts."""
    dist = oracles.sssp(case, sources, cutoff)
    np.testing.assert_array_equal(of_users(shards, sources, [found.distances]), dist)
    chosen = oracles.predecessors(case, dist, sources, oracles.positions(case, order), weighted=True)
    np.testing.assert_array_equal(found.predecessors, predecessor_parts(shards, chosen)[0])
    if found.num_reached is not None:
        reached = found.predecessors != np.iinfo(found.predecessors.dtype).max
        assert found.num_reached == reached.sum()
        assert found.reached_arcs == shards[0].degrees[reached].sum()
