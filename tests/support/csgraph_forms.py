"""Matrices of random graphs, in the forms that SciPy's graph functions take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from zoo import GraphCase


def entries(case: GraphCase) -> sp.coo_array:
    """Return a matrix with an entry for each edge; conversions add those of one place."""
    # Older versions of SciPy search with indices of 32 bits only.
    ends = case.sources.astype(np.int32), case.targets.astype(np.int32)
    return sp.coo_array((case.weights, ends), shape=(case.num_vertices, case.num_vertices))


def random_case(num_vertices: int, num_edges: int) -> GraphCase:
    """Return a directed graph in which all sums of weights differ."""
    rng = np.random.default_rng(7)
    sources, targets = rng.integers(0, num_vertices, (2, num_edges), np.uint32)
    return GraphCase("random", num_vertices, sources, targets, rng.random(num_edges), True)


def parallel(case: GraphCase) -> sp.csr_array:
    """Return a CSR with rows in the order of the edges, and with parallel edges."""
    order = np.argsort(case.sources, kind="stable")
    indptr = np.searchsorted(case.sources[order], np.arange(case.num_vertices + 1)).astype(np.int32)
    return sp.csr_array((case.weights[order], case.targets[order].astype(np.int32), indptr), shape=entries(case).shape)


def dense(case: GraphCase) -> np.ndarray:
    """Return a dense matrix, where zeros are no edges."""
    return entries(case).toarray()


def infinite(case: GraphCase) -> np.ndarray:
    """Return a dense matrix with infinities and NaN for every second of what is no edge."""
    matrix = dense(case).astype(np.float64)
    nothing = np.argwhere(matrix == 0)
    matrix[tuple(nothing[::4].T)] = np.inf
    matrix[tuple(nothing[2::4].T)] = np.nan
    return matrix


def masked(case: GraphCase) -> np.ma.MaskedArray:
    """Return a masked matrix, where zeros that are not masked are edges."""
    matrix = entries(case).toarray()
    mask = np.ones(matrix.shape, bool)
    mask[case.sources, case.targets] = False
    return np.ma.masked_array(matrix, mask)


FORMS: dict[str, Callable[[GraphCase], Any]] = {
    "coo": entries,
    "csr": lambda case: entries(case).tocsr(),
    "csc": lambda case: entries(case).tocsc(),
    "lil": lambda case: entries(case).tolil(),
    "csr_matrix": lambda case: sp.csr_matrix(entries(case)),
    "parallel": parallel,
    "dense": dense,
    "infinite": infinite,
    "masked": masked,
}
