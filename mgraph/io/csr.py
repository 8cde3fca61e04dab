"""mkgraph's .csr files: a header, offsets, targets and optional float32 weights.

    "MGCSR001"  u64 vertices  u64 arcs  u32 has_weights  u32 directed
    u64 offsets[vertices + 1]  u32 targets[arcs]  f32 weights[arcs]      (little-endian)

Undirected edges are in both rows; mkgraph's own files always have directed = 0.
"""

from __future__ import annotations

import bisect
import os
import pathlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError, UsageError
from mgraph.io.arrays import check_ends_of_indptr, check_rising, on_backend, sources_of_arcs
from mgraph.io.checks import check_ids, check_weights
from mgraph.io.ranges import PIECE_BYTES, changed, opened, read_range
from mgraph.io.spool import InputPath
from mgraph.partition import chunk_range

MAGIC = b"MGCSR001"
HEADER = struct.Struct("<8sQQII")
_32 = np.uint64(32)


@dataclass(frozen=True)
class CsrFile:
    """A .csr file with a checked header and length."""

    path: InputPath
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
        """The size that the file must have."""
        return HEADER.size + 8 * (self.num_vertices + 1) + (4 + 4 * self.has_weights) * self.num_input_edges

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        start = HEADER.size + 8 * (self.num_vertices + 1)
        weights = None
        with opened(self.path) as raw:
            targets = read_range(self.path, raw, "<u4", start + 4 * lo, hi - lo)
            if self.read_weights:
                weights = read_range(self.path, raw, "<f4", start + 4 * (self.num_input_edges + lo), hi - lo)
            sources = self._sources(raw, lo, hi)
        check_ids(targets, self.num_vertices, lambda i: f"{self.path}: target of arc {lo + i}")
        if weights is not None:
            check_weights(weights, lambda i: f"{self.path}: weight of arc {lo + i}")
        return on_backend(sources, targets, weights, self.num_vertices, backend)

    def _sources(self, raw: Any, lo: int, hi: int) -> np.ndarray:
        """Return the sources of the arcs lo..hi, reading only the offsets of their rows."""
        if lo == hi:
            return np.empty(0, np.int64)
        offsets = Offsets(self.path, raw, self.num_vertices + 1)
        first = bisect.bisect_right(offsets, lo) - 1
        last = bisect.bisect_left(offsets, hi)
        if 0 <= first < last <= self.num_vertices:
            part = offsets.part(first, last + 1)
            if part[0] <= lo and hi <= part[-1] and (part[1:] >= part[:-1]).all():
                return first + sources_of_arcs(part, lo, hi)
        raise changed(self.path, "its offsets do not rise")


class Offsets:
    """The offsets of a file's rows, read on access: a sequence for bisect."""

    def __init__(self, path: InputPath, raw: Any, count: int) -> None:
        self._path = path
        self._raw = raw
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> int:
        return int(self.part(i, i + 1)[0])

    def part(self, lo: int, hi: int) -> np.ndarray:
        """Read the offsets lo..hi."""
        return read_range(self._path, self._raw, "<u8", HEADER.size + 8 * lo, hi - lo)

    def check(self, num_arcs: int) -> None:
        """Refuse offsets that do not rise from 0 to the number of arcs."""
        what = f"{self._path}: offsets"
        step = PIECE_BYTES // 8
        check_ends_of_indptr(self[0], self[self._count - 1], num_arcs, what)
        for lo in range(0, self._count - 1, step):
            check_rising(self.part(lo, min(lo + step + 1, self._count)), what, lo)


def read_csr(
    path: InputPath,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> CsrFile:
    """Check the header and length of a file and return it as a source."""
    with opened(path) as raw:
        return _checked(path, raw, weight, directed, num_vertices)


def _checked(
    path: InputPath, raw: Any, weight: str | int | bool | None, directed: bool | None, num_vertices: int | None
) -> CsrFile:
    header = raw.read(HEADER.size)
    actual = os.fstat(raw.fileno()).st_size
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
    if actual != source.num_bytes:
        raise InputError(f"{path} is {actual} bytes, but {n} vertices and {m} arcs need {source.num_bytes}: truncated?")
    Offsets(path, raw, n + 1).check(m)
    return source


def write_csr(path: pathlib.Path, source: EdgeSource, chunks: Callable[[], Iterator[EdgeChunk]]) -> None:
    """Write the sorted rows of a graph that fits in memory, without loops, with the lightest of parallel edges."""
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
    """Return arcs as sorted unique keys source * 2^32 + target, and their weights as float32."""
    u = np.concatenate([chunk.sources for chunk in chunks]).astype(np.uint64)
    v = np.concatenate([chunk.targets for chunk in chunks]).astype(np.uint64)
    edges = u != v
    u = u[edges]
    v = v[edges]
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
        # Beyond 2^53 the comparison in float64 rounds too; there every float32 is a multiple of 2^30.
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
