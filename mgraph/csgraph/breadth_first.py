"""Serve SciPy's breadth-first searches: the engine finds levels, one pass over the rows then SciPy's order."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from scipy.sparse.csgraph import reconstruct_path

from mgraph.api.serial_order import in_order
from mgraph.api.traversal import bfs
from mgraph.csgraph.matrices import NO_VERTEX, as_csr, build_graph


def breadth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True, *, cluster: Any = None
) -> Any:
    """Return the vertices that a breadth-first search reaches, in its order, and their predecessors.

    Equal to SciPy's, which visits neighbors in the order of the entries of a row, then of a column if undirected.

    Parameters
    ----------
    csgraph, i_start, directed, return_predecessors
        As of `scipy.sparse.csgraph.breadth_first_order`.
    cluster
        What `mgraph.connect` returns, or a `distributed.Client`; by default as of `mgraph.from_scipy`.
    """
    matrix = as_csr(csgraph, directed=directed)
    start = operator.index(i_start)
    with (
        build_graph(matrix, directed=directed, cluster=cluster) as graph,
        bfs(graph, start, return_predecessors=False) as found,
    ):
        levels = found.distances.to_numpy().astype(np.int64)
    indptr, targets = (matrix.indptr, matrix.indices) if directed else _both_ways(matrix)
    hops = np.broadcast_to(np.int64(1), len(targets))
    order, parents = in_order((indptr, targets, hops), levels, levels >= 0, [start])
    if not return_predecessors:
        return order.astype(np.int32)
    parents[levels <= 0] = NO_VERTEX
    return order.astype(np.int32), parents.astype(np.int32)


def breadth_first_tree(csgraph: Any, i_start: int, directed: bool = True, *, cluster: Any = None) -> Any:
    """Return the tree of a breadth-first search as a CSR matrix, with the weights of its edges.

    Parameters
    ----------
    csgraph, i_start, directed
        As of `scipy.sparse.csgraph.breadth_first_tree`.
    cluster
        As of `breadth_first_order`.
    """
    _, predecessors = breadth_first_order(csgraph, i_start, directed, cluster=cluster)
    return reconstruct_path(csgraph, predecessors, directed)


def _both_ways(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a CSR of edges in both directions: in each row the entries of the row, then those of the column."""
    columns = matrix.T.tocsr()
    targets = np.empty(2 * matrix.nnz, np.int64)
    entries = np.arange(matrix.nnz)
    targets[entries + np.repeat(columns.indptr[:-1], np.diff(matrix.indptr))] = matrix.indices
    targets[entries + np.repeat(matrix.indptr[1:], np.diff(columns.indptr))] = columns.indices
    return matrix.indptr.astype(np.int64) + columns.indptr, targets
