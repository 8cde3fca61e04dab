"""Serve the functions named after Dijkstra of `networkx.algorithms.shortest_paths.weighted`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Found, Search, number_of, path_between, search_from, search_from_each
from mgraph.nx_backend.weights import as_python

__all__ = [
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "dijkstra_path",
    "dijkstra_path_length",
    "multi_source_dijkstra",
    "multi_source_dijkstra_path",
    "multi_source_dijkstra_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
]


def dijkstra_path(
    G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight", *, cluster: Any = None
) -> list[Any]:
    """Return a shortest path between two nodes."""
    return multi_source_dijkstra(G, [source], target, None, weight, cluster=cluster)[1]


def dijkstra_path_length(
    G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight", *, cluster: Any = None
) -> Any:
    """Return the length of a shortest path between two nodes."""
    number = number_of(G, source, f"Node {source} not found in graph")
    if source == target:
        return 0
    search = Search(weight, cluster=cluster)
    found = path_between(G, number, G.index[target], search, predecessors=False) if target in G else None
    if found is None:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return found.distance


def single_source_dijkstra(
    G: ConvertedGraph,
    source: Any,
    target: Any = None,
    cutoff: Any = None,
    weight: Any = "weight",
    *,
    cluster: Any = None,
) -> tuple[Any, Any]:
    """Return lengths of shortest paths from a node, and the paths; to a target, one of each."""
    return multi_source_dijkstra(G, [source], target, cutoff, weight, cluster=cluster)


def single_source_dijkstra_path(
    G: ConvertedGraph, source: Any, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> dict[Any, list[Any]]:
    """Return a shortest path from a node to each that it reaches."""
    return multi_source_dijkstra_path(G, [source], cutoff, weight, cluster=cluster)


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> dict[Any, Any]:
    """Return the lengths of shortest paths from a node."""
    return multi_source_dijkstra_path_length(G, [source], cutoff, weight, cluster=cluster)


def multi_source_dijkstra(
    G: ConvertedGraph,
    sources: Any,
    target: Any = None,
    cutoff: Any = None,
    weight: Any = "weight",
    *,
    cluster: Any = None,
) -> tuple[Any, Any]:
    """Return lengths of shortest paths from the nearest of several nodes, and the paths."""
    numbers = _numbers(G, sources)
    if target in G and G.index[target] in numbers:
        return 0, [target]
    found = search_from(G, numbers, Search(weight, cutoff, cluster=cluster))
    if target is None:
        return found.lengths(), found.paths()
    if target not in G or found.parents[G.index[target]] < 0:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    number = G.index[target]
    return as_python(found.distances[number]), found.path_to(number)


def multi_source_dijkstra_path(
    G: ConvertedGraph, sources: Any, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> dict[Any, list[Any]]:
    """Return a shortest path to each node from the nearest of several."""
    return _found(G, sources, cutoff, weight, cluster).paths()


def multi_source_dijkstra_path_length(
    G: ConvertedGraph, sources: Any, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> dict[Any, Any]:
    """Return the lengths of shortest paths from the nearest of several nodes."""
    return _found(G, sources, cutoff, weight, cluster).lengths()


def all_pairs_dijkstra(
    G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> Iterator[tuple[Any, tuple[dict, dict]]]:
    """Return each node with lengths of shortest paths, and the paths."""
    each = _found_from_each(G, cutoff, weight, cluster)
    return ((node, (found.lengths(), found.paths())) for node, found in each)


def all_pairs_dijkstra_path(
    G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Return each node with shortest paths to the nodes that it reaches."""
    return ((node, found.paths()) for node, found in _found_from_each(G, cutoff, weight, cluster))


def all_pairs_dijkstra_path_length(
    G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight", *, cluster: Any = None
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Return each node with the lengths of shortest paths."""
    return ((node, found.lengths()) for node, found in _found_from_each(G, cutoff, weight, cluster))


def _found(G: ConvertedGraph, sources: Any, cutoff: Any, weight: Any, cluster: Any) -> Found:
    return search_from(G, _numbers(G, sources), Search(weight, cutoff, cluster=cluster))


def _found_from_each(G: ConvertedGraph, cutoff: Any, weight: Any, cluster: Any) -> Iterator[tuple[Any, Found]]:
    """Return each node with what is found from it; weights are refused now, while NetworkX can ask another backend."""
    G.built(weight, cluster=cluster)
    return search_from_each(G, Search(weight, cutoff, cluster=cluster))


def _numbers(G: ConvertedGraph, sources: Any) -> list[int]:
    """Return the numbers of the sources, each once."""
    numbers = dict.fromkeys(number_of(G, node, f"Node {node} not found in graph") for node in sources)
    if not numbers:
        raise ValueError("sources must not be empty")
    return list(numbers)
