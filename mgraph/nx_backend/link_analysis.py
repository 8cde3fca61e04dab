"""Serve `networkx.algorithms.link_analysis`: PageRank, hubs and authorities."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.hits import hits as find_hubs
from mgraph.api.pagerank import pagerank as find_scores
from mgraph.errors import NotConverged, UsageError
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import LeftToNetworkX, refusals

__all__ = ["hits", "pagerank"]


def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: None = None,
    weight: Any = "weight",
    dangling: None = None,
    *,
    cluster: Any = None,
) -> dict[Any, float]:
    """Return the PageRank of each node."""
    if not len(G):
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    values = None
    if personalization is not None:
        values = np.array([personalization.get(node, 0) for node in G.nodes], np.float64)
        if not values.sum():
            raise ZeroDivisionError
    _refuse_summed_arcs(G, "PageRank")
    with refusals(UsageError):
        built = G.built(weight, cluster=cluster)
        weighted = G.weights(weight) is not None
        try:
            found = find_scores(
                built, alpha, tolerance=tol, max_iterations=max_iter, personalization=values, weighted=weighted
            )
        except NotConverged as error:
            raise nx.PowerIterationFailedConvergence(max_iter) from error
    with found:
        return dict(zip(G.nodes, found.scores.to_numpy().tolist(), strict=True))


def _refuse_summed_arcs(G: ConvertedGraph, what: str) -> None:
    """Leave self-loops, which a build drops, and parallel edges, of which it keeps one: NetworkX adds up both."""
    sources = G.sources()
    if (sources == G.targets).any():
        raise LeftToNetworkX(f"self-loops count in {what} of NetworkX, and a build of mgraph drops them")
    if G.is_multigraph() and len(np.unique(sources * len(G) + G.targets)) < len(sources):
        raise LeftToNetworkX(f"parallel edges add up in {what} of NetworkX, and a build of mgraph keeps one")


def hits(
    G: ConvertedGraph,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: None = None,
    normalized: bool = True,
    *,
    method: str = "power_iteration",
    cluster: Any = None,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the hub and authority scores of each node.

    NetworkX's iterations are restarts of a Lanczos method, each of about 20 products. One that changes scores little
    may be far from the end: it goes on until they change by a hundredth of `tol`. What takes longer is NetworkX's.
    """
    if not len(G):
        return {}, {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    _refuse_summed_arcs(G, "HITS")
    with refusals(NotConverged, UsageError):
        built = G.built("weight", cluster=cluster)
        weighted = G.weights("weight") is not None
        found = find_hubs(built, tolerance=tol / 100, max_iterations=20 * max_iter, weighted=weighted)
    with found:
        hubs, authorities = (
            dict(zip(G.nodes, column.to_numpy().tolist(), strict=True)) for column in (found.hubs, found.authorities)
        )
        return hubs, authorities
