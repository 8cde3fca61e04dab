"""mkgraph's .csr files: a header, offsets, targets and optional float32 weights.

    "MGCSR001"  u64 vertices  u64 arcs  u32 has_weights  u32 directed
    u64 offsets[vertices + 1]  u32 targets[arcs]  f32 weights[arcs]      (little-endian)

Undirected edges are in both rows; mkgraph's own files always have directed = 0.
"""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Callable, Iterator

import numpy as np

from mgraph.edges import EdgeChunk, EdgeSource, Labels
from mgraph.errors import InputError
from mgraph.io.csr_table import CsrTable, check_stored, csr_table
from mgraph.io.input_file import InputFile
from mgraph.io.ranges import ColumnPlace, PlainArrays, num_bytes_of, opened

MAGIC = b"MGCSR001"
HEADER = struct.Struct("<8sQQII")
_32 = np.uint64(32)


def read_csr(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> CsrTable:
    """Check the header and length of a file and return it as a table."""
    with opened(file) as raw:
        header = raw.read(HEADER.size)
        actual = num_bytes_of(raw)
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise InputError(f"{file} does not begin as a .csr file does, with MGCSR001 and {HEADER.size} bytes of header")
    _, n, m, has_weights, flags = HEADER.unpack(header)
    weighted = check_stored(file, weight, num_vertices, has=n, weighted=bool(has_weights))
    targets = HEADER.size + 8 * (n + 1)
    weights = targets + 4 * m
    expected = weights + 4 * m * bool(has_weights)
    if actual != expected:
        raise InputError(f"{file} is {actual} bytes, but {n} vertices and {m} arcs need {expected}: truncated?")
    columns = {
        "offsets": ColumnPlace(HEADER.size, "<u8"),
        "targets": ColumnPlace(targets, "<u4"),
        "weights": ColumnPlace(weights, "<f4"),
    }
    directed = bool(flags & 1) if directed is None else directed
    return csr_table(CsrTable(PlainArrays(file, columns), n, m, directed, weighted, labels))


def write_csr(path: pathlib.Path, source: EdgeSource, chunks: Callable[[], Iterator[EdgeChunk]]) -> None:
    """Write the sorted rows of a graph that fits in memory, without self-loops, with the lightest of parallel edges."""
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
