"""Serve SciPy's minimum spanning tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.api.spanning_forest import minimum_spanning_forest
from mgraph.csgraph.matrices import as_csr, build_graph


def minimum_spanning_tree(csgraph: Any, overwrite: bool = False, *, cluster: Any = None) -> Any:
    """Return the lightest forest that spans the undirected graph of a matrix, as a CSR matrix.

    Each edge is in the place of its lighter entry; of two equal ones, of that above the diagonal. Edges of weight zero
    connect, and are left out of the result, as SciPy does. Which of several lightest forests it is, is as of
    `mgraph.minimum_spanning_forest`.

    Parameters
    ----------
    csgraph
        As of `scipy.sparse.csgraph.minimum_spanning_tree`.
    overwrite
        Accepted and ignored: the matrix is never changed.
    cluster
        As of `breadth_first_order`.
    """
    matrix = as_csr(csgraph)
    with (
        build_graph(matrix, directed=False, weighted=True, cluster=cluster) as graph,
        minimum_spanning_forest(graph) as forest,
    ):
        sources, targets, weights = (column.to_numpy() for column in forest)
    above = np.asarray(_lightest_of_parallel(matrix)[sources, targets]).ravel() == weights
    rows = np.where(above, sources, targets)
    columns = np.where(above, targets, sources)
    tree = type(matrix)((weights, (rows, columns)), matrix.shape)
    tree.eliminate_zeros()
    return tree


def _lightest_of_parallel(matrix: Any) -> Any:
    """Return a CSR matrix in which no entry is stored twice, which looking entries up would add."""
    if matrix.has_canonical_format:
        return matrix
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.data, matrix.indices, rows))
    rows = rows[order]
    columns = matrix.indices[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return type(matrix)((matrix.data[order][first], (rows[first], columns[first])), matrix.shape)
