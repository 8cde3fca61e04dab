"""Serve `networkx.algorithms.centrality` as far as it sums distances."""

from __future__ import annotations

from typing import Any

import networkx as nx

from mgraph.api.centrality import closeness, harmonic
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import refusals

__all__ = ["closeness_centrality", "harmonic_centrality"]


def closeness_centrality(
    G: ConvertedGraph,
    u: Any = None,
    distance: Any = None,
    wf_improved: bool = True,
    *,
    sp: None = None,
    cluster: Any = None,
) -> Any:
    """Return the closeness of a node, or by node of all."""
    if u is None:
        return _centralities(closeness, G, None, distance, cluster)
    if u not in G:
        raise nx.NodeNotFound(f"Node {u} not found in graph" if distance else f"Source {u} is not in G")
    return _centralities(closeness, G, [u], distance, cluster)[u]


def harmonic_centrality(
    G: ConvertedGraph, nbunch: Any = None, distance: Any = None, sources: None = None, *, cluster: Any = None
) -> dict[Any, Any]:
    """Return by node the sum of the inverse distances of all others."""
    nodes = None if nbunch is None else _bunch(G, nbunch)
    # NetworkX begins with the integer 0.
    return {node: value or 0 for node, value in _centralities(harmonic, G, nodes, distance, cluster).items()}


def _centralities(find: Any, G: ConvertedGraph, nodes: list[Any] | None, distance: Any, cluster: Any) -> dict[Any, Any]:
    wanted = G.nodes if nodes is None else nodes
    if not wanted:
        return {}
    numbers = None if nodes is None else [G.index[node] for node in nodes]
    weighted = G.weights(distance) is not None
    with refusals():
        found = find(G.built(distance, cluster=cluster), numbers, weighted=weighted)
        values = found.tolist() if numbers is not None else found.to_numpy().tolist()
    return dict(zip(wanted, values, strict=True))


def _bunch(G: ConvertedGraph, nodes: Any) -> list[Any]:
    """Return one node, or those of several that are in the graph, each once."""
    if nodes in G:
        return [nodes]
    try:
        several = list(nodes)
    except TypeError as error:
        raise nx.NetworkXError("nbunch is not a node or a sequence of nodes.") from error
    found: dict[Any, None] = {}
    for node in several:
        try:
            if node in G.index:
                found[node] = None
        except TypeError as error:
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from error
    return list(found)
