"""Implement k_hop and neighbors: the vertices within a few hops, and the graph of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from mgraph.api.graph import Graph, as_vertices, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.subgraph import subgraph
from mgraph.api.traversal import bfs
from mgraph.api.traversal_results import Traversed
from mgraph.errors import UsageError, refuse_pickle
from mgraph.formatting import counted
from mgraph.io.checks import as_integer


class Neighborhood:
    """Hold the vertices within a few hops of the sources.

    Unpacks like a tuple: `vertices, levels = mg.k_hop(g, 0, 2)`. The levels of all vertices stay on the ranks for
    `subgraph` until `close()`, or the end of `with`.

    Attributes
    ----------
    graph
        The graph that was searched.
    vertices
        The vertices, sources included, by rising id or label.
    levels
        The hops to each of them from the nearest source, int32.
    """

    __reduce__ = refuse_pickle("take its vertices and levels")

    def __init__(self, found: Traversed) -> None:
        self.graph = found.graph
        self._found = found
        self._mask = found.distances >= 0
        self.vertices = self._mask.vertices()
        self.levels = found.distances[self._mask]

    def subgraph(self) -> Graph:
        """Build the graph of the vertices and all edges between them, as `mg.subgraph` does."""
        return subgraph(self.graph, self._mask)

    def close(self) -> None:
        """Free what the ranks hold for `subgraph`; vertices and levels remain."""
        self._found.close()

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.vertices, self.levels))

    def __len__(self) -> int:
        return len(self.vertices)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        hops = counted(int(self.levels.max()), "hop")
        return f"<neighborhood in {self.graph.name}: {counted(len(self), 'vertex')} within {hops}>"


@repeated_after_loss
def k_hop(g: Graph, sources: int | str | Sequence, k: int) -> Neighborhood:
    """Find the vertices within k hops of a source, or of the nearest of several.

    Parameters
    ----------
    g
        The graph. Of a directed one arcs are followed forward; `g.reversed()` follows them backward.
    sources
        A vertex, or several.
    k
        The most hops, 0 or more.

    Returns
    -------
    Neighborhood
        Vertices and levels; `.subgraph()` builds the graph of them.

    Raises
    ------
    UsageError, WouldNotFit
        As `bfs`; UsageError also if `k` is no integer, or is negative.

    Notes
    -----
    A breadth-first search that ends after level k. For each of many sources call it again: a search stops at its limit,
    and what the graph keeps is made once. Docs: neighborhoods.md.

    Examples
    --------
    >>> g = mg.from_edges(["a", "b", "c", "b"], ["b", "c", "d", "d"])
    >>> with mg.k_hop(g, "a", 1) as near:
    ...     near.vertices.tolist(), near.levels.tolist(), len(near)
    (['a', 'b'], [0, 1], 2)
    """
    require_graph(g)
    limit = as_integer(k, "k")
    if limit < 0:
        raise UsageError(f"k is {limit}: a number of hops is not negative")
    return Neighborhood(bfs(g, sources, depth_limit=limit, return_predecessors=False))


@repeated_after_loss
def neighbors(g: Graph, vertex: int | str) -> np.ndarray:
    """Return the neighbors of a vertex: the ends of its arcs, each once.

    Parameters
    ----------
    g
        The graph. Of a directed one arcs out count; `g.reversed()` has those in.
    vertex
        The vertex; it is no neighbor of itself.

    Returns
    -------
    numpy.ndarray
        The neighbors by rising id or label.

    Raises
    ------
    UsageError
        If there is no such vertex.

    Notes
    -----
    One level of a search, which takes time for every vertex of the graph: for all of many vertices read `g.edges`.

    Examples
    --------
    >>> mg.neighbors(mg.from_edges([0, 1, 1], [1, 2, 3]), 1).tolist()
    [0, 2, 3]
    """
    require_graph(g)
    (name,) = as_vertices(g.info, g._ask, [vertex], "vertex").names
    with bfs(g, name, depth_limit=1, return_predecessors=False) as found:
        return (found.distances == 1).vertices()
