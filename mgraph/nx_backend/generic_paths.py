"""Serve `networkx.algorithms.shortest_paths.generic`: with or without weights, between one or all nodes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from mgraph.nx_backend.dijkstra import (
    all_pairs_dijkstra_path,
    all_pairs_dijkstra_path_length,
    dijkstra_path_length,
    single_source_dijkstra_path,
    single_source_dijkstra_path_length,
)
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Search, number_of, path_between, search_from
from mgraph.nx_backend.unweighted_paths import (
    all_pairs_shortest_path,
    all_pairs_shortest_path_length,
    reversed_paths,
    single_source_shortest_path,
    single_source_shortest_path_length,
)

__all__ = ["has_path", "shortest_path", "shortest_path_length"]


def has_path(G: ConvertedGraph, source: Any, target: Any, *, cluster: Any = None) -> bool:
    """Return whether there is a path between two nodes."""
    start, end = _ends(G, source, target)
    return path_between(G, start, end, Search(cluster=cluster), predecessors=False) is not None


def shortest_path(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    method: str = "dijkstra",
    *,
    cluster: Any = None,
) -> Any:
    """Return shortest paths: from a node, to a node, between two, or between all."""
    if source is not None and target is not None:
        return _path(G, source, target, Search(weight, cluster=cluster))
    if source is None and target is not None:
        message = f"Source {target} not in G" if weight is None else f"Node {target} not found in graph"
        number = number_of(G, target, message)
        return reversed_paths(search_from(G, [number], Search(weight, reverse=True, cluster=cluster)))
    if source is None:
        if weight is None:
            return all_pairs_shortest_path(G, cluster=cluster)
        return all_pairs_dijkstra_path(G, weight=weight, cluster=cluster)
    if weight is None:
        return single_source_shortest_path(G, source, cluster=cluster)
    return single_source_dijkstra_path(G, source, weight=weight, cluster=cluster)


def shortest_path_length(
    G: ConvertedGraph,
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    method: str = "dijkstra",
    *,
    cluster: Any = None,
) -> Any:
    """Return lengths of shortest paths: from a node, to a node, between two, or between all."""
    if source is not None and target is not None:
        if weight is not None:
            return dijkstra_path_length(G, source, target, weight, cluster=cluster)
        start, end = _ends(G, source, target)
        found = path_between(G, start, end, Search(cluster=cluster), predecessors=False)
        if found is None:
            raise _no_path(source, target)
        return found.distance
    if source is None and target is not None:
        message = f"Source {target} is not in G" if weight is None else f"Node {target} not found in graph"
        number = number_of(G, target, message)
        return search_from(G, [number], Search(weight, reverse=True, cluster=cluster)).lengths()
    if source is None:
        if weight is None:
            return all_pairs_shortest_path_length(G, cluster=cluster)
        return all_pairs_dijkstra_path_length(G, weight=weight, cluster=cluster)
    if weight is None:
        return single_source_shortest_path_length(G, source, cluster=cluster)
    return single_source_dijkstra_path_length(G, source, weight=weight, cluster=cluster)


def _path(G: ConvertedGraph, source: Any, target: Any, search: Search) -> list[Any]:
    start, end = _ends(G, source, target)
    found = path_between(G, start, end, search)
    if found is None:
        raise _no_path(source, target)
    return G.names(np.array(found.vertices))


def _ends(G: ConvertedGraph, source: Any, target: Any) -> tuple[int, int]:
    start = number_of(G, source, f"Source {source} is not in G")
    return start, number_of(G, target, f"Target {target} is not in G")


def _no_path(source: Any, target: Any) -> nx.NetworkXNoPath:
    return nx.NetworkXNoPath(f"No path between {source} and {target}.")
