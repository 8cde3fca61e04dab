"""Read matrices as `scipy.sparse.csgraph` does, and build graphs of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import csgraph_from_dense, csgraph_from_masked

from mgraph.api.from_memory import from_csr
from mgraph.api.graph import Graph
from mgraph.errors import InputError

# What SciPy's functions return for "no vertex".
NO_VERTEX = -9999


def as_csr(csgraph: Any, *, directed: bool = True) -> Any:
    """Return a matrix as CSR in float64, by the rules of SciPy for what is an edge.

    Entries of sparse matrices are edges, zeros among them but for those that fill blocks (BSR); of dense ones all but
    zeros, infinities and NaN; of masked ones all that are not masked, infinite or NaN. The arrays may be those of the
    argument: they must not be changed.
    """
    if not directed and issparse(csgraph) and csgraph.format == "csc":
        # A CSC is the CSR of its transpose, with the same undirected edges.
        csgraph = csgraph.T
    if issparse(csgraph) and csgraph.format == "bsr":
        found = csgraph.tocsr(copy=True)
        found.eliminate_zeros()  # as SciPy 1.18 does; older versions take them for edges
        found = found.astype(np.float64, copy=False)
    elif issparse(csgraph):
        found = csgraph.tocsr().astype(np.float64, copy=False)
    elif np.ma.isMaskedArray(csgraph):
        found = csgraph_from_masked(csgraph)
    else:
        found = csgraph_from_dense(csgraph)
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise InputError(f"the matrix is of shape {found.shape}: that of a graph is square")
    return found


def build_graph(matrix: Any, *, directed: bool, weighted: bool = False, cluster: Any = None) -> Graph:
    """Build a graph of a CSR matrix, for searches by hops or by weights."""
    weights = matrix.data if weighted else None
    return from_csr(matrix.indptr, matrix.indices, weights, directed=directed, cluster=cluster)


def with_lengths(matrix: Any) -> Any:
    """Return a CSR matrix without the entries over which no path is finite: infinities and NaN.

    Negative ones are refused.
    """
    least = np.fmin.reduce(matrix.data, initial=np.inf)  # NaN is ignored
    if least < 0:
        raise InputError(
            f"shortest paths need weights that are not negative, and one is {least}: "
            "scipy.sparse.csgraph.johnson takes them"
        )
    finite = np.isfinite(matrix.data)
    if finite.all():
        return matrix
    before = np.concatenate([[0], np.cumsum(finite)])
    return type(matrix)((matrix.data[finite], matrix.indices[finite], before[matrix.indptr]), matrix.shape)
