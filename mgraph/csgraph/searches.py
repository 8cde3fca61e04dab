"""Search from many vertices of a matrix, and return what is found in SciPy's arrays."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.api.distance_matrix import distance_matrix
from mgraph.api.graph import Graph
from mgraph.api.results import Column
from mgraph.api.traversal import bfs, bfs_many, sssp, sssp_many
from mgraph.api.traversal_results import Traversed
from mgraph.csgraph.matrices import NO_VERTEX, build_graph, with_lengths

# How many results the ranks hold at once.
BATCH = 64


@dataclass(frozen=True)
class Search:
    """What to search for.

    Attributes
    ----------
    directed
        Whether an entry is an edge in one direction only.
    weighted
        Whether the lengths of paths are sums of weights; else they are numbers of edges.
    limit
        Vertices farther than this are not reached.
    cluster
        The cluster of the call.
    """

    directed: bool
    weighted: bool
    limit: float
    cluster: Any

    @property
    def cutoff(self) -> float | None:
        """The limit of weights as the engine takes it."""
        return None if self.limit == math.inf else self.limit

    @property
    def depth_limit(self) -> int | None:
        """The limit of hops as the engine takes it."""
        return None if self.limit == math.inf else math.floor(self.limit)

    @contextlib.contextmanager
    def graph_of(self, matrix: Any) -> Iterator[Graph]:
        """Build the graph of a matrix, and close it."""
        entries = with_lengths(matrix) if self.weighted else matrix
        with build_graph(entries, directed=self.directed, weighted=self.weighted, cluster=self.cluster) as graph:
            yield graph


def search_from_each(
    matrix: Any, roots: np.ndarray, search: Search, return_predecessors: bool
) -> tuple[np.ndarray, ...]:
    """Return matrices with a row for each root: the distances, and if asked for the predecessors."""
    shape = len(roots), matrix.shape[0]
    distances = np.empty(shape)
    predecessors = np.empty(shape if return_predecessors else 0, np.int32)
    with search.graph_of(matrix) as graph:
        for first in range(0, len(roots), BATCH):
            batch = roots[first : first + BATCH]
            if not return_predecessors:
                distances[first : first + len(batch)] = _rows(graph, batch, search)
                continue
            for row, found in enumerate(_found(graph, batch, search), first):
                with found:
                    distances[row] = _distances(found)
                    predecessors[row] = _predecessors(found, roots[row])
    return (distances, predecessors) if return_predecessors else (distances,)


def _rows(graph: Graph, roots: np.ndarray, search: Search) -> np.ndarray:
    """Return a row of distances for each of some roots."""
    cutoff = search.cutoff if search.weighted else search.depth_limit
    with distance_matrix(graph, roots, cutoff=cutoff, weighted=search.weighted) as found:
        return _as_floats(found.to_numpy())


def _found(graph: Graph, roots: np.ndarray, search: Search) -> Iterator[Traversed]:
    """Search from each of some roots, with predecessors."""
    if search.weighted:
        yield from sssp_many(graph, roots, cutoff=search.cutoff)
    else:
        yield from bfs_many(graph, roots, depth_limit=search.depth_limit)


def search_from_nearest(matrix: Any, roots: np.ndarray, search: Search) -> tuple[np.ndarray, ...]:
    """Return for each vertex the distance from the nearest of distinct roots, its predecessor and that root."""
    if not len(roots):
        none = np.full(matrix.shape[0], NO_VERTEX, np.int32)
        return np.full(matrix.shape[0], np.inf), none, none.copy()
    with search.graph_of(matrix) as graph:
        if search.weighted:
            found = sssp(graph, roots.tolist(), cutoff=search.cutoff)
        else:
            found = bfs(graph, roots.tolist(), depth_limit=search.depth_limit)
        with found:
            distances = _distances(found)
            if found.nearest_source is None:
                nearest = np.where(np.isfinite(distances), roots[0], NO_VERTEX).astype(np.int32)
            else:
                nearest = _vertices(found.nearest_source)
            return distances, _predecessors(found, roots), nearest


def _distances(found: Traversed) -> np.ndarray:
    return _as_floats(found.distances.to_numpy())


def _as_floats(found: np.ndarray) -> np.ndarray:
    """Return distances as SciPy has them."""
    distances = found.astype(np.float64)
    distances[distances < 0] = np.inf
    return distances


def _predecessors(found: Traversed, roots: Any) -> np.ndarray:
    assert found.predecessors is not None
    predecessors = _vertices(found.predecessors)
    predecessors[roots] = NO_VERTEX
    return predecessors


def _vertices(column: Column) -> np.ndarray:
    """Return a column of vertices as SciPy has them."""
    vertices = column.to_numpy().astype(np.int32)
    vertices[vertices < 0] = NO_VERTEX
    return vertices
