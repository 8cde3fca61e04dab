"""mkgraph's .csr files: a header, offsets, targets and if there are any float32 weights, mapped from the disk.

    "MGCSR001"  u64 vertices  u64 arcs  u32 has_weights  u32 directed
    u64 offsets[vertices + 1]  u32 targets[arcs]  f32 weights[arcs]      (little-endian)

Undirected edges stand in both rows; mkgraph's own files always have directed = 0.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io.arrays import check_indptr, on_backend, sources_of_arcs
from mgraph.io.checks import check_ids, check_weights
from mgraph.kernels.backend import Backend
from mgraph.partition import chunk_range
from mgraph.types import EdgeChunk, EdgeSource

MAGIC = b"MGCSR001"
HEADER = struct.Struct("<8sQQII")
_32 = np.uint64(32)


@dataclass(frozen=True)
class CsrFile:
    """A .csr file whose header and length have been checked."""

    path: pathlib.Path
    num_vertices: int
    num_input_edges: int
    directed: bool
    has_weights: bool
    read_weights: bool

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def weight_dtype(self) -> np.dtype | None:
        return np.dtype(np.float32) if self.read_weights else None

    @property
    def num_bytes(self) -> int:
        """What the file must be long."""
        return HEADER.size + 8 * (self.num_vertices + 1) + (4 + 4 * self.has_weights) * self.num_input_edges

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        start = HEADER.size + 8 * (self.num_vertices + 1)
        targets, weights = self._part("<u4", start, lo, hi), None
        check_ids(targets, self.num_vertices, lambda i: f"{self.path}: target of arc {lo + i}")
        if self.read_weights:
            weights = self._part("<f4", start + 4 * self.num_input_edges, lo, hi)
            check_weights(weights, lambda i: f"{self.path}: weight of arc {lo + i}")
        sources = sources_of_arcs(self.offsets(), lo, hi)
        return on_backend(sources, targets, weights, self.num_vertices, backend)

    def offsets(self) -> np.ndarray:
        """Return the offsets of the rows, mapped."""
        return self._part("<u8", HEADER.size, 0, self.num_vertices + 1)

    def _part(self, dtype: str, start: int, lo: int, hi: int) -> np.ndarray:
        itemsize = np.dtype(dtype).itemsize
        if lo == hi:
            return np.empty(0, dtype)
        return np.memmap(self.path, dtype, "r", start + lo * itemsize, (hi - lo,))


def read_csr(
    path: pathlib.Path,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> CsrFile:
    """Check the header and length of a file and return it as a source."""
    with open(path, "rb") as file:
        header = file.read(HEADER.size)
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise InputError(f"{path} does not begin as a .csr file does, with MGCSR001 and {HEADER.size} bytes of header")
    _, n, m, has_weights, flags = HEADER.unpack(header)
    if num_vertices not in (None, n):
        raise UsageError(f"{path} has {n} vertices, not {num_vertices}")
    if isinstance(weight, str) or (weight is not None and not isinstance(weight, bool)):
        raise UsageError(f"{path} has one list of weights at most, and no column {weight!r}")
    if weight is True and not has_weights:
        raise UsageError(f"{path} has no weights")
    directed = bool(flags & 1) if directed is None else directed
    source = CsrFile(path, n, m, directed, bool(has_weights), bool(has_weights) and weight is not False)
    actual = path.stat().st_size
    if actual != source.num_bytes:
        raise InputError(f"{path} is {actual} bytes, but {n} vertices and {m} arcs need {source.num_bytes}: truncated?")
    check_indptr(source.offsets(), m, f"{path}: offsets")
    return source


def write_csr(path: pathlib.Path, source: EdgeSource, chunks: Callable[[], Iterator[EdgeChunk]]) -> None:
    """Write the rows of a graph that fits in memory: no loops, the lightest of parallel edges, sorted."""
    n = source.num_vertices
    if n > np.iinfo(np.uint32).max:
        raise InputError(f"{n} vertices are more than a .csr file can number, 2^32 - 1")
    keys, weights = _arcs(source, list(chunks()))
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount((keys >> _32).astype(np.int64), minlength=n), out=offsets[1:])
    with open(path, "wb") as file:
        file.write(HEADER.pack(MAGIC, n, len(keys), weights is not None, source.directed))
        file.write(offsets.astype("<u8", copy=False).data)
        file.write(keys.astype("<u4").data)  # the lower half is the target
        if weights is not None:
            file.write(weights.astype("<f4", copy=False).data)


def _arcs(source: EdgeSource, chunks: list[EdgeChunk]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return arcs as sorted keys source * 2^32 + target, each once, and their weights as float32."""
    u = np.concatenate([chunk.sources for chunk in chunks]).astype(np.uint64)
    v = np.concatenate([chunk.targets for chunk in chunks]).astype(np.uint64)
    edges = u != v
    u, v = u[edges], v[edges]
    keys = u << _32 | v
    if not source.directed:
        keys = np.concatenate((keys, v << _32 | u))
    if source.weight_dtype is None:
        return np.unique(keys), None
    exact = np.concatenate([chunk.weights for chunk in chunks])[edges]
    with np.errstate(over="ignore"):
        weights = exact.astype(np.float32)
    lost = weights.astype(np.float64) != exact
    if exact.dtype == np.int64:
        # Beyond 2^53 the comparison rounds as well; there a float32 is a multiple of 2^30.
        lost |= (np.abs(weights) >= 2.0**53) & (exact % 2**30 != 0)
    if lost.any():
        raise InputError(f"weight {exact[np.argmax(lost)]} is no float32, which .csr files hold: write .npz instead")
    if not source.directed:
        weights = np.concatenate((weights, weights))
    order = np.lexsort((weights, keys))
    keys = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first], weights[order][first]
