"""Sources of edges in memory: two arrays of ends, a CSR, or a SciPy sparse array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.errors import InputError
from mgraph.io.checks import as_flag, as_ids, as_weights, check_ids, check_num_vertices, refuse_lazy
from mgraph.partition import chunk_range
from mgraph.types import vertex_dtype

# Methods that copy to the host, of cuDF, Numba, PyTorch and CuPy. `get` is last: a cuDF series has another `get`.
HOST_COPIES = ("to_numpy", "copy_to_host", "cpu", "get")


@dataclass(frozen=True, eq=False)
class ArrayEdges:
    """Edges as arrays of their ends; made by `edges_source`, which checks them."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    num_vertices: int
    directed: bool
    name: str

    @property
    def weight_dtype(self) -> np.dtype | None:
        return None if self.weights is None else self.weights.dtype

    @property
    def num_input_edges(self) -> int:
        return len(self.sources)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(len(self.sources), k, num_chunks)
        weights = None if self.weights is None else self.weights[lo:hi]
        return on_backend(self.sources[lo:hi], self.targets[lo:hi], weights, self.num_vertices, backend)


@dataclass(frozen=True, eq=False)
class CsrEdges:
    """Arcs as a CSR; made by `csr_source`, which checks it."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    directed: bool
    name: str

    @property
    def num_vertices(self) -> int:
        return len(self.indptr) - 1

    @property
    def weight_dtype(self) -> np.dtype | None:
        return None if self.weights is None else self.weights.dtype

    @property
    def num_input_edges(self) -> int:
        return len(self.indices)

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(len(self.indices), k, num_chunks)
        weights = None if self.weights is None else self.weights[lo:hi]
        sources = sources_of_arcs(self.indptr, lo, hi)
        return on_backend(sources, self.indices[lo:hi], weights, self.num_vertices, backend)


def sources_of_arcs(indptr: np.ndarray, lo: int, hi: int) -> np.ndarray:
    """Return the sources of the arcs lo..hi of a CSR."""
    if lo == hi:
        return np.empty(0, np.int64)
    # Search in the dtype of the offsets: any other would convert a copy of all of them.
    first = int(np.searchsorted(indptr, indptr.dtype.type(lo), "right")) - 1
    last = int(np.searchsorted(indptr, indptr.dtype.type(hi), "left"))
    lengths = np.diff(np.clip(indptr[first : last + 1], lo, hi).astype(np.int64))
    return np.repeat(np.arange(first, last), lengths)


def on_backend(
    sources: np.ndarray, targets: np.ndarray, weights: np.ndarray | None, num_vertices: int, backend: Backend
) -> EdgeChunk:
    """Return host arrays as a chunk on the backend, with ids in the graph's dtype."""
    dtype = vertex_dtype(num_vertices)
    return EdgeChunk(
        backend.to_device(np.ascontiguousarray(sources, dtype)),
        backend.to_device(np.ascontiguousarray(targets, dtype)),
        None if weights is None else backend.to_device(np.ascontiguousarray(weights)),
    )


def on_host(values: Any, what: str) -> Any:
    """Return a host copy of an array on a GPU, and anything else unchanged.

    Libraries of GPU arrays refuse an implicit copy, as by `np.asarray`.
    """
    # A torch tensor has this attribute only if it is on a GPU.
    if not hasattr(values, "__cuda_array_interface__"):
        return values
    for method in HOST_COPIES:
        if copy := getattr(values, method, None):
            copied = copy()
            return copied.numpy() if method == "cpu" else copied
    try:
        return np.asarray(values)
    except TypeError:
        raise InputError(
            f"{what} are a {type(values).__module__}.{type(values).__name__} on a GPU: "
            f"copy them to the host first, as with cupy.asnumpy({what})"
        ) from None


def edges_source(
    sources: Any,
    targets: Any,
    weights: Any = None,
    *,
    num_vertices: int | None = None,
    directed: bool = False,
    name: str = "edges",
) -> ArrayEdges:
    """Return the edges (sources[i], targets[i]) as a source.

    Parameters
    ----------
    sources, targets
        Integer ids 0..n-1, of equal length.
    weights
        One for each edge, integers or floats, all finite; None for an unweighted graph.
    num_vertices
        n; None means one more than the largest id.
    directed
        Whether (u, v) and (v, u) are two arcs. Undirected edges may be given once or in both directions.
    name
        The name of the graph in results.
    """
    sources, targets = (as_ids(on_host(ids, what), what) for ids, what in ((sources, "sources"), (targets, "targets")))
    if len(sources) != len(targets):
        raise InputError(f"there are {len(sources)} sources and {len(targets)} targets: give one of each for an edge")
    n = check_num_vertices(num_vertices)
    top = max(check_ids(sources, n, lambda i: f"sources[{i}]"), check_ids(targets, n, lambda i: f"targets[{i}]"))
    checked = None if weights is None else as_weights(on_host(weights, "weights"), len(sources))
    return ArrayEdges(sources, targets, checked, top + 1 if n is None else n, as_flag(directed, "directed"), name)


def csr_source(
    indptr: Any, indices: Any, weights: Any = None, *, directed: bool = False, name: str = "csr"
) -> CsrEdges:
    """Return a CSR as a source: vertex u has arcs to indices[indptr[u] : indptr[u + 1]].

    Parameters
    ----------
    indptr
        n + 1 rising offsets from 0.
    indices, weights
        Targets of the arcs, and a weight for each or None.
    directed
        Whether (u, v) and (v, u) are two arcs. Undirected edges may be in one row or in both.
    name
        The name of the graph in results.
    """
    indptr = as_ids(on_host(indptr, "indptr"), "indptr")
    indices = as_ids(on_host(indices, "indices"), "indices")
    check_indptr(indptr, len(indices), "indptr")
    check_ids(indices, len(indptr) - 1, lambda i: f"indices[{i}]")
    checked = None if weights is None else as_weights(on_host(weights, "weights"), len(indices))
    return CsrEdges(indptr.astype(np.int64, copy=False), indices, checked, as_flag(directed, "directed"), name)


def check_indptr(indptr: np.ndarray, num_arcs: int, what: str) -> None:
    """Refuse offsets that do not rise from 0 to the number of arcs."""
    if len(indptr) == 0:
        raise InputError(f"{what} is empty: a CSR of n vertices has n + 1 offsets")
    check_ends_of_indptr(int(indptr[0]), int(indptr[-1]), num_arcs, what)
    check_rising(indptr, what)


def check_ends_of_indptr(begin: int, end: int, num_arcs: int, what: str) -> None:
    """Refuse offsets that do not begin at 0 and end at the number of arcs."""
    if begin != 0 or end != num_arcs:
        raise InputError(f"{what} goes from {begin} to {end}, not from 0 to the number of arcs, {num_arcs}")


def check_rising(indptr: np.ndarray, what: str, first: int = 0) -> None:
    """Refuse offsets that fall; `first` is the index of indptr[0] in the whole array."""
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        raise InputError(
            f"{what}[{first + i + 1}] = {indptr[i + 1]} is below {what}[{first + i}] = {indptr[i]}: offsets must rise"
        )


def scipy_source(matrix: Any, *, directed: bool = False, name: str = "scipy") -> ArrayEdges | CsrEdges:
    """Return a SciPy sparse array or matrix as a source.

    Entry (u, v) is an edge, its value the weight. Entries stored twice are parallel edges, of which the lightest is
    used; SciPy's own conversions would add them. Stored zeros are edges of weight zero. Boolean entries make an
    unweighted graph.
    """
    refuse_lazy(matrix, "matrix")
    kind = getattr(matrix, "format", None)
    if kind is None or not hasattr(matrix, "tocoo"):
        raise InputError(
            f"{type(matrix).__name__} is not a SciPy sparse array: scipy.sparse.coo_array(x) makes one, "
            "where zeros are no edges"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the array is of shape {matrix.shape}: an adjacency matrix is square")
    n = matrix.shape[0]
    if kind == "csr":
        weights = None if matrix.dtype == bool else matrix.data
        return csr_source(matrix.indptr, matrix.indices, weights, directed=directed, name=name)
    entries = matrix.tocoo()
    weights = None if matrix.dtype == bool else entries.data
    return edges_source(entries.row, entries.col, weights, num_vertices=n, directed=directed, name=name)
