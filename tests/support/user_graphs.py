"""Graphs, vertex orders, methods and searches for tests of the public functions."""

from __future__ import annotations

from zoo import CASES, GraphCase, random_case

import mgraph as mg

METHODS = ("frontier", "sweep")
ORDERS = ("degree", "natural")
GRAPHS = [*CASES, *map(random_case, range(6))]
# Graphs with a vertex to start from.
STARTABLE = [case for case in GRAPHS if case.num_vertices]
SEARCHES = {"bfs": mg.bfs, "sssp": mg.sssp}


def graph_of(case: GraphCase, cluster, order: str = "auto", **how) -> mg.Graph:
    """Return a graph of a case; `how` are other arguments of `from_edges`."""
    return mg.from_edges(
        case.sources,
        case.targets,
        case.weights,
        num_vertices=case.num_vertices,
        directed=case.directed,
        cluster=cluster,
        order=order,
        **how,
    )
