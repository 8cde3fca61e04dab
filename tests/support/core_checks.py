"""Check core numbers, and the components of forests that are cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
from user_graphs import graph_of

import mgraph as mg


def check_core_numbers(case, cluster, order):
    """Compare the core numbers of a graph with the oracle's, and validate them."""
    wanted = oracles.core_numbers(case)
    with graph_of(case, cluster, order) as g, mg.core_numbers(g) as found:
        np.testing.assert_array_equal(found.cores.to_numpy(), wanted, strict=True)
        assert found.degeneracy == wanted.max(initial=0)
        mg.validate(found)


def check_cuts(case, cluster, *, maximum=False):
    """Compare cuts of a graph's forest with the components of the arcs that are kept, and validate them."""
    weights = sorted(set(oracles.arcs_of(case).values()))
    with graph_of(case, cluster) as g, mg.minimum_spanning_forest(g, maximum=maximum) as forest:
        for weight in {*weights[:: max(len(weights) // 3, 1)], float("inf"), float("-inf")}:
            wanted = _components_of_kept(case, lambda w, at=weight: w >= at if maximum else w <= at)
            with forest.cut(weight) as found:
                np.testing.assert_array_equal(found.labels.to_numpy(), wanted, strict=True)
                assert found.num_components == len(set(wanted.tolist()))
                mg.validate(found)


def _components_of_kept(case, keeps):
    """Return the smallest vertex that each is connected with by arcs of weights that are kept."""
    arcs = [arc for arc, weight in oracles.arcs_of(case).items() if keeps(weight)]
    ends = np.array(arcs, np.uint32).reshape(-1, 2)
    return oracles.components(replace(case, sources=ends[:, 0], targets=ends[:, 1], weights=None))
