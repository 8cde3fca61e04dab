"""Serve `networkx.algorithms.traversal.breadth_first_search`, and the descendants and ancestors of a node."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import networkx as nx
import numpy as np

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Found, Search, distances_from, hops, search_from

__all__ = [
    "ancestors",
    "bfs_edges",
    "bfs_layers",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "descendants",
    "descendants_at_distance",
]


def bfs_edges(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: None = None,
    *,
    cluster: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a tree of breadth-first search."""
    yield from _found(G, source, Search(None, hops(depth_limit), reverse, cluster)).tree()


def bfs_tree(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: None = None,
    *,
    cluster: Any = None,
) -> nx.DiGraph:
    """Return a tree of breadth-first search, as a graph of NetworkX."""
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit, cluster=cluster))
    return tree


def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: Any = None, sort_neighbors: None = None, *, cluster: Any = None
) -> Iterator[tuple[Any, Any]]:
    """Yield each node with its parent in a tree of breadth-first search."""
    if "deprecated" in nx.bfs_predecessors.__doc__:
        warnings.warn("bfs_predecessors is deprecated by NetworkX: call bfs_edges", DeprecationWarning, stacklevel=2)
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit, cluster=cluster):
        yield child, parent


def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: Any = None, sort_neighbors: None = None, *, cluster: Any = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each node that has children in a tree of breadth-first search, with them."""
    edges = list(bfs_edges(G, source, depth_limit=depth_limit, cluster=cluster))
    for parent, children in itertools.groupby(edges, itemgetter(0)):
        yield parent, [child for _, child in children]
    if not edges:
        yield source, []


def bfs_layers(G: ConvertedGraph, sources: Any, *, cluster: Any = None) -> Iterator[list[Any]]:
    """Yield the nodes at each distance from the sources."""
    first = list({sources} if sources in G else set(sources))
    for source in first:
        if source not in G:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if not first:
        return
    found = search_from(G, [G.index[source] for source in first], Search(cluster=cluster))
    cuts = np.flatnonzero(np.diff(found.distances[found.order])) + 1
    names = G.names(found.order)
    for lo, hi in itertools.pairwise([0, *cuts.tolist(), len(names)]):
        yield names[lo:hi]


def descendants_at_distance(G: ConvertedGraph, source: Any, distance: Any, *, cluster: Any = None) -> set[Any]:
    """Return the nodes at a distance from the source."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    distances, reached = distances_from(G, [G.index[source]], Search(cluster=cluster))
    return set(G.names(np.flatnonzero(reached & (distances == distance))))


def descendants(G: ConvertedGraph, source: Any, *, cluster: Any = None) -> set[Any]:
    """Return the nodes to which there is a path."""
    return _others(G, source, Search(cluster=cluster))


def ancestors(G: ConvertedGraph, source: Any, *, cluster: Any = None) -> set[Any]:
    """Return the nodes from which there is a path."""
    return _others(G, source, Search(reverse=True, cluster=cluster))


def _others(G: ConvertedGraph, source: Any, search: Search) -> set[Any]:
    number = _number(G, source)
    _, reached = distances_from(G, [number], search)
    reached[number] = False
    return set(G.names(np.flatnonzero(reached)))


def _found(G: ConvertedGraph, source: Any, search: Search) -> Found:
    return search_from(G, [_number(G, source)], search)


def _number(G: ConvertedGraph, source: Any) -> int:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the {'digraph' if G.is_directed() else 'graph'}.")
    return G.index[source]
