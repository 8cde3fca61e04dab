"""Serve `networkx.algorithms.link_analysis`: PageRank."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.pagerank import pagerank as find_scores
from mgraph.errors import NotConverged, UsageError
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import refusals

__all__ = ["pagerank"]


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
    _refuse_summed_arcs(G)
    with _iteration(max_iter), refusals():
        built = G.built(weight, cluster=cluster)
        weighted = G.weights(weight) is not None
        found = find_scores(
            built, alpha, tolerance=tol, max_iterations=max_iter, personalization=values, weighted=weighted
        )
    with found:
        return dict(zip(G.nodes, found.scores.to_numpy().tolist(), strict=True))


def _refuse_summed_arcs(G: ConvertedGraph) -> None:
    """Refuse self-loops, which a build drops, and parallel edges, of which it keeps one: NetworkX adds up both.

    After a NotImplementedError NetworkX asks the next backend, or runs its own function.
    """
    sources = G.sources()
    if (sources == G.targets).any():
        raise NotImplementedError("self-loops count in a PageRank of NetworkX, and a build of mgraph drops them")
    if G.is_multigraph() and len(np.unique(sources * len(G) + G.targets)) < len(sources):
        raise NotImplementedError("parallel edges add up in a PageRank of NetworkX, and a build of mgraph keeps one")


@contextlib.contextmanager
def _iteration(max_iter: int) -> Iterator[None]:
    """Turn the errors of an iteration into those of NetworkX."""
    try:
        yield
    except NotConverged as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    except UsageError as error:
        raise NotImplementedError(str(error)) from error
