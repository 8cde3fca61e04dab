"""Search a converted graph, and name what is found as NetworkX does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.distance_matrix import distance_matrix
from mgraph.api.paths import Path, paths_between
from mgraph.api.serial_order import in_order
from mgraph.api.traversal import bfs, sssp
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import refusals

# How many searches are made at once, where all nodes are sources.
BATCH = 64


@dataclass(frozen=True)
class Search:
    """What to search for.

    Attributes
    ----------
    weight
        The attribute in which paths are measured; None for hops.
    limit
        Nodes farther than this are not reached.
    reverse
        Whether arcs are followed backward.
    cluster
        The cluster of the call.
    """

    weight: Any = None
    limit: Any = None
    reverse: bool = False
    cluster: Any = None


@dataclass(frozen=True)
class Found:
    """Nodes that a search has reached, in NetworkX's order: the sources, then by distance.

    Attributes
    ----------
    order
        Numbers of nodes.
    parents, distances
        By number: the node before each on NetworkX's path to it, its own of a source; its distance.
    """

    graph: ConvertedGraph
    order: np.ndarray
    parents: np.ndarray
    distances: np.ndarray
    num_sources: int

    def lengths(self) -> dict[Any, Any]:
        """Return the distance of each node."""
        values = self.distances[self.order].tolist()
        # NetworkX begins with the integer 0, whatever the weights are.
        values[: self.num_sources] = [0] * self.num_sources
        return dict(zip(self.graph.names(self.order), values, strict=True))

    def tree(self) -> list[tuple[Any, Any]]:
        """Return the edges of the tree of paths, as (parent, child)."""
        children = self.order[self.num_sources :]
        return list(zip(self.graph.names(self.parents[children]), self.graph.names(children), strict=True))

    def paths(self) -> dict[Any, list[Any]]:
        """Return the path from a source to each node."""
        paths = {source: [source] for source in self.graph.names(self.order[: self.num_sources])}
        for parent, child in self.tree():
            paths[child] = [*paths[parent], child]
        return paths

    def path_to(self, node: int) -> list[Any]:
        """Return the path from a source to the node with a number."""
        path = [node]
        while (parent := int(self.parents[path[-1]])) != path[-1]:
            path.append(parent)
        return self.graph.names(np.array(path[::-1]))


def number_of(graph: ConvertedGraph, node: Any, message: str) -> int:
    """Return the number of a node; raise NodeNotFound with this message if there is none."""
    if node not in graph:
        raise nx.NodeNotFound(message)
    return graph.index[node]


def hops(limit: Any) -> int | None:
    """Return a limit as a number of hops: NetworkX takes another level while it is below the limit."""
    if limit is None or limit == math.inf:
        return None
    return math.ceil(limit)


def distances_from(graph: ConvertedGraph, sources: list[int], search: Search) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of each node, and which nodes were reached."""
    built = graph.built(search.weight, reverse=search.reverse, cluster=search.cluster)
    with refusals():
        if graph.weights(search.weight) is None:
            result = bfs(built, sources, depth_limit=_whole(search.limit), return_predecessors=False)
        else:
            result = sssp(built, sources, cutoff=search.limit, return_predecessors=False)
    with result:
        return _with_reached(result.distances.to_numpy())


def _with_reached(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances as floats or wide integers, and which nodes were reached."""
    if distances.dtype.kind == "f":
        return distances, np.isfinite(distances)
    return distances.astype(np.int64, copy=False), distances >= 0


def path_between(
    graph: ConvertedGraph, source: int, target: int, search: Search, *, predecessors: bool = True
) -> Path | None:
    """Return a shortest path between two nodes, None if there is none; without predecessors its length alone."""
    built = graph.built(search.weight, cluster=search.cluster)
    weighted = graph.weights(search.weight) is not None
    with refusals():
        (found,) = paths_between(built, [(source, target)], weighted=weighted, predecessors=predecessors)
    return None if found.distance in (-1, math.inf) else found


def _whole(limit: Any) -> int | None:
    return None if limit is None or limit == math.inf else math.floor(limit)


def search_from(graph: ConvertedGraph, sources: list[int], search: Search) -> Found:
    """Search from one or several nodes, given by number and each once."""
    distances, reached = distances_from(graph, sources, search)
    order, parents = in_order(graph.arcs(search.weight, reverse=search.reverse), distances, reached, sources)
    return Found(graph, order, parents, distances, len(sources))


def search_from_each(graph: ConvertedGraph, search: Search) -> Iterator[tuple[Any, Found]]:
    """Yield each node with what is found from it, some searches at once."""
    built = graph.built(search.weight, reverse=search.reverse, cluster=search.cluster)
    weighted = graph.weights(search.weight) is not None
    limit = search.limit if weighted else _whole(search.limit)
    arcs = graph.arcs(search.weight, reverse=search.reverse)
    for first in range(0, len(graph), BATCH):
        numbers = range(first, min(first + BATCH, len(graph)))
        with refusals(), distance_matrix(built, numbers, cutoff=limit, weighted=weighted) as found:
            rows = found.to_numpy()
        for number, row in zip(numbers, rows, strict=True):
            distances, reached = _with_reached(row)
            order, parents = in_order(arcs, distances, reached, [number])
            yield graph.nodes[number], Found(graph, order, parents, distances, 1)
