"""Serve `networkx.algorithms.tree.mst`: the trees of Kruskal's algorithm, edge for edge in its order.

Kruskal sorts the edges by weight and keeps the order of the graph among equal ones. With its place in this order as
the weight of an edge, no two weights are equal: the forest is unique, and is Kruskal's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.from_memory import from_edges
from mgraph.api.spanning_forest import minimum_spanning_forest
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import LeftToNetworkX, find_cluster
from mgraph.nx_backend.weights import as_column, as_python

__all__ = [
    "maximum_spanning_edges",
    "maximum_spanning_tree",
    "minimum_spanning_edges",
    "minimum_spanning_tree",
]


def minimum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
    *,
    cluster: Any = None,
) -> Iterator[tuple]:
    """Return the edges of a minimum spanning forest."""
    find = partial(_kruskal, G, _values(G, weight), ignore_nan, cluster, maximum=False)
    return _later(G, find, keys, data)


def maximum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
    *,
    cluster: Any = None,
) -> Iterator[tuple]:
    """Return the edges of a maximum spanning forest."""
    find = partial(_kruskal, G, _values(G, weight), ignore_nan, cluster, maximum=True)
    return _later(G, find, keys, data)


def minimum_spanning_tree(
    G: ConvertedGraph,
    weight: Any = "weight",
    algorithm: str = "kruskal",
    ignore_nan: bool = False,
    *,
    cluster: Any = None,
) -> nx.Graph:
    """Return a minimum spanning forest, as a graph of NetworkX with all nodes and attributes."""
    arcs = _kruskal(G, _values(G, weight), ignore_nan, cluster, maximum=False)
    return tree_of(G, arcs, np.arange(len(G)))


def maximum_spanning_tree(
    G: ConvertedGraph,
    weight: Any = "weight",
    algorithm: str = "kruskal",
    ignore_nan: bool = False,
    *,
    cluster: Any = None,
) -> nx.Graph:
    """Return a maximum spanning forest, as a graph of NetworkX with all nodes and attributes."""
    arcs = _kruskal(G, _values(G, weight), ignore_nan, cluster, maximum=True)
    return tree_of(G, arcs, np.arange(len(G)))


def _values(G: ConvertedGraph, weight: Any) -> Any:
    """Return the weights of the arcs; they are refused now, while NetworkX can ask another backend."""
    values = G.values(weight)
    wrong = set() if isinstance(values, np.ndarray) else {type(value) for value in values} - {int, float}
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise LeftToNetworkX(f"weights {weight!r} are of type {names}, which mgraph does not compare")
    return values


def _later(G: ConvertedGraph, find: Callable[[], np.ndarray], keys: bool, data: bool) -> Iterator[tuple]:
    """Yield edges that are found when the first is asked for: NetworkX raises its errors then."""
    yield from _named(G, find(), keys, data)


def _kruskal(G: ConvertedGraph, values: Any, ignore_nan: bool, cluster: Any, *, maximum: bool) -> np.ndarray:
    """Return the arcs of the edges that Kruskal's algorithm takes, in its order."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    edges = G.edges()
    values = values[edges] if isinstance(values, np.ndarray) else [values[edge] for edge in edges.tolist()]
    unknown = _are_nan(values)
    if unknown.any():
        if not ignore_nan:
            (edge,) = _named(G, edges[np.flatnonzero(unknown)[:1]], True, True)
            raise ValueError(f"NaN found as an edge weight. Edge {edge}")
        edges = edges[~unknown]
        values = as_column([as_python(value) for value, skip in zip(values, unknown.tolist(), strict=True) if not skip])
    edges = edges[_sorted(values, maximum=maximum)]
    if not len(edges):
        return edges
    ends = G.sources()[edges], G.targets[edges]
    ranks = find_cluster(cluster)
    with (
        from_edges(*ends, np.arange(len(edges)), num_vertices=len(G), labels=False, cluster=ranks) as graph,
        minimum_spanning_forest(graph) as forest,
    ):
        return edges[np.sort(forest.weights.to_numpy())]


def _are_nan(values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return np.isnan(values)
    return np.array([math.isnan(value) for value in values], bool)


def _sorted(values: Any, *, maximum: bool) -> np.ndarray:
    """Return the places of the values in rising or falling order, equal ones in their own."""
    if not isinstance(values, np.ndarray):
        # Integers are compared with floats exactly.
        return np.array(sorted(range(len(values)), key=values.__getitem__, reverse=maximum), np.int64)
    if not maximum:
        return np.argsort(values, kind="stable")
    # The complement of an integer has no overflow, as its negative has.
    return np.argsort(~values if values.dtype.kind == "i" else -values, kind="stable")


def _named(G: ConvertedGraph, arcs: np.ndarray, keys: bool, data: bool) -> Iterator[tuple]:
    """Yield edges as NetworkX does: ends, key and attributes."""
    columns: list[Any] = [G.names(G.sources()[arcs]), G.names(G.targets[arcs])]
    numbers = arcs.tolist()
    if G.keys is not None and keys:
        columns.append([G.keys[arc] for arc in numbers])
    if data:
        columns.append([G.attributes(arc) for arc in numbers])
    return zip(*columns, strict=True)


def tree_of(G: ConvertedGraph, arcs: np.ndarray, numbers: np.ndarray) -> nx.Graph:
    """Return a graph of some nodes and arcs, with their attributes."""
    tree = G.kind()
    tree.graph.update(G.graph)
    nodes = G.names(numbers)
    data = None if G.node_data is None else [G.node_data[number] for number in numbers.tolist()]
    tree.add_nodes_from(nodes if data is None else zip(nodes, data, strict=True))
    tree.add_edges_from(_named(G, arcs, True, True))
    return tree
