"""Serve `networkx.algorithms.shortest_paths.unweighted`: paths of the fewest hops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Found, Search, hops, number_of, search_from, search_from_each

__all__ = [
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
]


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Any, cutoff: Any = None, *, cluster: Any = None
) -> dict[Any, int]:
    """Return the hops from a node to each node that it reaches."""
    number = number_of(G, source, f"Source {source} is not in G")
    return _found(G, number, cutoff, cluster).lengths()


def single_target_shortest_path_length(
    G: ConvertedGraph, target: Any, cutoff: Any = None, *, cluster: Any = None
) -> dict[Any, int]:
    """Return the hops to a node from each node that reaches it."""
    number = number_of(G, target, f"Target {target} is not in G")
    return _found(G, number, cutoff, cluster, reverse=True).lengths()


def all_pairs_shortest_path_length(
    G: ConvertedGraph, cutoff: Any = None, *, cluster: Any = None
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield each node with the hops to the nodes that it reaches."""
    for node, found in search_from_each(G, Search(None, hops(cutoff), cluster=cluster)):
        yield node, found.lengths()


def single_source_shortest_path(
    G: ConvertedGraph, source: Any, cutoff: Any = None, *, cluster: Any = None
) -> dict[Any, list[Any]]:
    """Return a path of the fewest hops from a node to each that it reaches."""
    number = number_of(G, source, f"Source {source} not in G")
    return _found(G, number, cutoff, cluster).paths()


def single_target_shortest_path(
    G: ConvertedGraph, target: Any, cutoff: Any = None, *, cluster: Any = None
) -> dict[Any, list[Any]]:
    """Return a path of the fewest hops to a node from each that reaches it."""
    number = number_of(G, target, f"Target {target} not in G")
    return reversed_paths(_found(G, number, cutoff, cluster, reverse=True))


def all_pairs_shortest_path(
    G: ConvertedGraph, cutoff: Any = None, *, cluster: Any = None
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Yield each node with a path of the fewest hops to each that it reaches."""
    for node, found in search_from_each(G, Search(None, hops(cutoff), cluster=cluster)):
        yield node, found.paths()


def reversed_paths(found: Found) -> dict[Any, list[Any]]:
    """Return the paths of a search backward, from their first node on."""
    return {node: path[::-1] for node, path in found.paths().items()}


def _found(G: ConvertedGraph, number: int, cutoff: Any, cluster: Any, *, reverse: bool = False) -> Found:
    return search_from(G, [number], Search(None, hops(cutoff), reverse, cluster))
