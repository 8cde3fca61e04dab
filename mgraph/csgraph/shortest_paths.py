"""Serve SciPy's shortest paths: all its methods by one engine, for weights that are not negative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mgraph.csgraph.matrices import as_csr
from mgraph.csgraph.searches import Search, search_from_each, search_from_nearest
from mgraph.errors import UsageError

METHODS = ("auto", "FW", "D", "BF", "J")


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
    *,
    cluster: Any = None,
) -> Any:
    """Return the lengths of shortest paths from each vertex, or from some, to all.

    Parameters
    ----------
    csgraph, directed, return_predecessors, unweighted, indices
        As of `scipy.sparse.csgraph.shortest_path`.
    method
        One of SciPy's names: the search is the same, that of `dijkstra`.
    overwrite
        Accepted and ignored: the matrix is never changed.
    cluster
        As of `breadth_first_order`.
    """
    if method not in METHODS:
        raise UsageError(f"method {method!r} is not one of {', '.join(METHODS)}")
    if method == "FW" and indices is not None:
        raise UsageError("method 'FW' searches from all vertices: leave out the indices, or the method")
    return dijkstra(csgraph, directed, indices, return_predecessors, unweighted, cluster=cluster)


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    cluster: Any = None,
) -> Any:
    """Return what `dijkstra` returns: weights must not be negative.

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As of `scipy.sparse.csgraph.johnson`.
    cluster
        As of `breadth_first_order`.
    """
    return dijkstra(csgraph, directed, indices, return_predecessors, unweighted, cluster=cluster)


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = math.inf,
    min_only: bool = False,
    *,
    cluster: Any = None,
) -> Any:
    """Return the lengths of shortest paths from each vertex, or from some, to all.

    Lengths are equal to SciPy's to the bit. Of several shortest paths the predecessors give the one that `mgraph.sssp`
    gives, for any number of ranks.

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted, limit, min_only
        As of `scipy.sparse.csgraph.dijkstra`.
    cluster
        As of `breadth_first_order`.

    Returns
    -------
    ndarray, or tuple of them
        The distances; with `return_predecessors` also the predecessors, with `min_only` besides the nearest index of
        each vertex.
    """
    matrix = as_csr(csgraph, directed=directed)
    roots = _vertices(indices, matrix.shape[0])
    limit = float(limit)
    if not limit >= 0:
        raise UsageError(f"limit is {limit}: it must be 0 or more")
    search = Search(directed, weighted=not unweighted, limit=limit, cluster=cluster)
    if min_only:
        found = search_from_nearest(matrix, np.unique(roots), search)
    else:
        rows = search_from_each(matrix, roots.ravel(), search, return_predecessors)
        found = tuple(of_each.reshape(*roots.shape, matrix.shape[0]) for of_each in rows)
    return found if return_predecessors else found[0]


def _vertices(indices: Any, num_vertices: int) -> np.ndarray:
    """Return indices as vertices in their own shape, negative ones counted from the end; None is all."""
    if indices is None:
        return np.arange(num_vertices)
    given = np.asarray(indices)
    found = given.astype(np.int64)
    found[found < 0] += num_vertices
    wrong = given[(found < 0) | (found >= num_vertices)]
    if wrong.size:
        raise UsageError(f"index {wrong.flat[0]} is out of range: the graph has {num_vertices} vertices")
    return found
