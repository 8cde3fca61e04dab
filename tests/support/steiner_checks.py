"""Check Steiner trees on a cluster."""

from __future__ import annotations

import numpy as np
import oracles
from user_graphs import graph_of

import mgraph as mg


def check_steiner_tree(case, cluster, order, num_terminals=5):
    """Compare a tree with the oracle's, and validate it; terminals are in the component of vertex 0."""
    component = np.flatnonzero(oracles.components(case) == 0)
    terminals = component[:: max(len(component) // num_terminals, 1)].tolist()
    with graph_of(case, cluster, order) as g, mg.steiner_tree(g, terminals) as tree:
        with (mg.sssp if case.weights is not None else mg.bfs)(g, terminals) as search:
            predecessors = search.predecessors.to_numpy()
        edges = zip(*(column.to_numpy().tolist() for column in tree), strict=True)
        assert list(edges) == oracles.steiner_tree(case, terminals, predecessors)
        mg.validate(tree)
