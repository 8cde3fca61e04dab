"""Serve `networkx.algorithms.components`: connected components; weakly and strongly connected ones of directed graphs.

Each family is three questions about one label per node: the sets of equal labels, their number, whether it is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.components import connected_components as label_components
from mgraph.api.serial_order import in_order_left
from mgraph.api.strong_components import strongly_connected_components as label_strong_components
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Search, distances_from

__all__ = [
    "connected_components",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "node_connected_component",
    "number_connected_components",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "strongly_connected_components",
    "weakly_connected_components",
]


def connected_components(G: ConvertedGraph, *, cluster: Any = None) -> Iterator[set[Any]]:
    """Yield the nodes of each component, in the order of their first nodes."""
    yield from _sets(G, _labels(G, cluster))


def number_connected_components(G: ConvertedGraph, *, cluster: Any = None) -> int:
    """Return the number of components."""
    return _number(G, cluster, label_components)


def is_connected(G: ConvertedGraph, *, cluster: Any = None) -> bool:
    """Return whether there is one component."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G, cluster=cluster) == 1


def node_connected_component(G: ConvertedGraph, n: Any, *, cluster: Any = None) -> set[Any]:
    """Return the nodes of the component of a node."""
    _, reached = distances_from(G, [G.index[n]], Search(cluster=cluster))
    return set(G.names(np.flatnonzero(reached)))


# mgraph labels the weakly connected components of a directed graph.
weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected


def strongly_connected_components(G: ConvertedGraph, *, cluster: Any = None) -> Iterator[set[Any]]:
    """Yield the nodes of each strong component, those that it reaches before it."""
    yield from _sets(G, in_order_left(G.indptr, G.targets, _labels(G, cluster, label_strong_components)))


def number_strongly_connected_components(G: ConvertedGraph, *, cluster: Any = None) -> int:
    """Return the number of strong components."""
    return _number(G, cluster, label_strong_components)


def is_strongly_connected(G: ConvertedGraph, *, cluster: Any = None) -> bool:
    """Return whether there is one strong component."""
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_strongly_connected_components(G, cluster=cluster) == 1


def _labels(G: ConvertedGraph, cluster: Any, find: Callable = label_components) -> np.ndarray:
    """Return for each node the number of the first node of its component."""
    if not len(G):
        return np.empty(0, np.int64)
    with find(G.built(cluster=cluster)) as found:
        return found.labels.to_numpy()


def _number(G: ConvertedGraph, cluster: Any, find: Callable) -> int:
    """Return the number of components."""
    if not len(G):
        return 0
    with find(G.built(cluster=cluster)) as found:
        return found.num_components


def _sets(G: ConvertedGraph, labels: np.ndarray) -> Iterator[set[Any]]:
    """Yield the nodes of equal labels, by rising label."""
    nodes = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[nodes])) + 1
    names = G.names(nodes)
    for lo, hi in itertools.pairwise([0, *cuts.tolist(), len(names)]):
        if lo < hi:
            yield set(names[lo:hi])
