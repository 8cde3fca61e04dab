"""Check the sides of a graph, or its odd cycle."""

from __future__ import annotations

import numpy as np
import oracles
from user_graphs import graph_of

import mgraph as mg


def check_sides(case, cluster, order):
    """Compare the sides of a graph with the oracle's, prove its odd cycle, and validate both; return the cycle."""
    wanted = oracles.sides(case)
    with graph_of(case, cluster, order) as g, mg.is_bipartite(g) as found:
        np.testing.assert_array_equal(found.sides.to_numpy(), wanted)
        assert bool(found) == (wanted >= 0).all()
        cycle = found.odd_cycle
        arcs = oracles.arcs_of(case)
        assert all(arc in arcs for arc in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        assert len(set(cycle)) == len(cycle)
        assert len(cycle) % 2 == (not found)
        mg.validate(found)
        return cycle
