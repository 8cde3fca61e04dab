"""Serve `networkx.algorithms.components`: connected components, and weakly connected ones of directed graphs.

Each family is three questions about one label per node: the sets of equal labels, their number, whether it is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.components import connected_components as label_components
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.searches import Search, distances_from

__all__ = [
    "connected_components",
    "is_connected",
    "is_weakly_connected",
    "node_connected_component",
    "number_connected_components",
    "number_weakly_connected_components",
    "weakly_connected_components",
]


def connected_components(G: ConvertedGraph, *, cluster: Any = None) -> Iterator[set[Any]]:
    """Yield the nodes of each component, in the order of their first nodes."""
    yield from _sets(G, _labels(G, cluster))


def number_connected_components(G: ConvertedGraph, *, cluster: Any = None) -> int:
    """Return the number of components."""
    if not len(G):
        return 0
    with label_components(G.built(cluster=cluster)) as found:
        return found.num_components


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


def _labels(G: ConvertedGraph, cluster: Any) -> np.ndarray:
    """Return for each node the number of the first node of its component."""
    if not len(G):
        return np.empty(0, np.int64)
    with label_components(G.built(cluster=cluster)) as found:
        return found.labels.to_numpy()


def _sets(G: ConvertedGraph, labels: np.ndarray) -> Iterator[set[Any]]:
    """Yield the nodes of equal labels, by rising label."""
    nodes = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[nodes])) + 1
    names = G.names(nodes)
    for lo, hi in itertools.pairwise([0, *cuts.tolist(), len(names)]):
        if lo < hi:
            yield set(names[lo:hi])
