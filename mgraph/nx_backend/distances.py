"""Serve `networkx.algorithms.distance_measures` as far as it asks for eccentricities, by a search from each node."""

from __future__ import annotations

from typing import Any

import networkx as nx

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Search, distances_from
from mgraph.nx_backend.weights import as_python

__all__ = ["center", "diameter", "eccentricity", "periphery", "radius"]


def eccentricity(G: ConvertedGraph, v: Any = None, sp: None = None, weight: Any = None, *, cluster: Any = None) -> Any:
    """Return the greatest distance from a node, or by node from several or all."""
    search = Search(weight, cluster=cluster)
    if v in G:
        return _farthest(G, G.index[v], search)
    nodes = G.nodes if v is None else _known(G, v)
    return {node: _farthest(G, G.index[node], search) for node in nodes}


def diameter(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> Any:
    """Return the greatest eccentricity."""
    return max(eccentricity(G, weight=weight, cluster=cluster).values())


def radius(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> Any:
    """Return the least eccentricity."""
    return min(eccentricity(G, weight=weight, cluster=cluster).values())


def periphery(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> list[Any]:
    """Return the nodes of the greatest eccentricity."""
    found = eccentricity(G, weight=weight, cluster=cluster)
    greatest = max(found.values())
    return [node for node, value in found.items() if value == greatest]


def center(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> list[Any]:
    """Return the nodes of the least eccentricity."""
    found = eccentricity(G, weight=weight, cluster=cluster)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


def _farthest(G: ConvertedGraph, number: int, search: Search) -> Any:
    distances, reached = distances_from(G, [number], search)
    if not reached.all():
        if G.is_directed():
            raise nx.NetworkXError("Found infinite path length because the digraph is not strongly connected")
        raise nx.NetworkXError("Found infinite path length because the graph is not connected")
    # NetworkX begins with the integer 0, whatever the weights are.
    return as_python(distances.max()) or 0


def _known(G: ConvertedGraph, nodes: Any) -> list[Any]:
    """Return those of some nodes that are in the graph, as NetworkX does."""
    try:
        return [node for node in nodes if node in G.index]
    except TypeError as error:
        raise nx.NetworkXError(f"{nodes!r:.80} is neither a node of the graph nor a sequence of nodes") from error
