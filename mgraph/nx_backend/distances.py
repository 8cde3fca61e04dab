"""Serve `networkx.algorithms.distance_measures` as far as it asks for eccentricities."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.eccentricity import NotConnectedError
from mgraph.api.eccentricity import diameter as find_diameter
from mgraph.api.eccentricity import eccentricity as find_eccentricities
from mgraph.api.eccentricity import radius as find_radius
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import refusals

__all__ = ["center", "diameter", "eccentricity", "periphery", "radius"]


def eccentricity(G: ConvertedGraph, v: Any = None, sp: None = None, weight: Any = None, *, cluster: Any = None) -> Any:
    """Return the greatest distance from a node, or by node from several or all."""
    if v in G:
        return _eccentricities(G, [v], weight, cluster)[v]
    return _eccentricities(G, None if v is None else _known(G, v), weight, cluster)


def diameter(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> Any:
    """Return the greatest eccentricity."""
    return _extreme(find_diameter, G, weight, cluster) if len(G) else max(eccentricity(G).values())


def radius(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: Any = None, *, cluster: Any = None
) -> Any:
    """Return the least eccentricity."""
    return _extreme(find_radius, G, weight, cluster) if len(G) else min(eccentricity(G).values())


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


def _eccentricities(G: ConvertedGraph, nodes: list[Any] | None, weight: Any, cluster: Any) -> dict[Any, Any]:
    """Return the eccentricity of some nodes, or of all."""
    if not G.nodes:
        # Nothing, or an error from NetworkX 3.7 on.
        return nx.eccentricity(nx.Graph(), backend="networkx")
    wanted = G.nodes if nodes is None else nodes
    if not wanted:
        return {}
    numbers = None if nodes is None else [G.index[node] for node in nodes]
    weighted = G.weights(weight) is not None
    with refusals(), _named_infinite(G):
        found = np.asarray(find_eccentricities(G.built(weight, cluster=cluster), numbers, weighted=weighted))
    # NetworkX begins with the integer 0, whatever the weights are.
    return {node: value or 0 for node, value in zip(wanted, found.tolist(), strict=True)}


def _extreme(find: Any, G: ConvertedGraph, weight: Any, cluster: Any) -> Any:
    weighted = G.weights(weight) is not None
    with refusals(), _named_infinite(G):
        return find(G.built(weight, cluster=cluster), weighted=weighted) or 0


@contextlib.contextmanager
def _named_infinite(G: ConvertedGraph) -> Iterator[None]:
    """Turn the error of a graph that is not connected into that of NetworkX."""
    try:
        yield
    except NotConnectedError as error:
        kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {kind}") from error


def _known(G: ConvertedGraph, nodes: Any) -> list[Any]:
    """Return those of some nodes that are in the graph, as NetworkX does."""
    try:
        return [node for node in nodes if node in G.index]
    except TypeError as error:
        raise nx.NetworkXError(f"{nodes!r:.80} is neither a node of the graph nor a sequence of nodes") from error
