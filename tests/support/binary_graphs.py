"""Write small graphs in the binary formats of other projects, by the layouts that they document."""

from __future__ import annotations

import struct

import numpy as np


def csr_of(edges: list[tuple], num_vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return offsets, targets and weights of arcs (source, target, weight)."""
    arcs = sorted(edges)
    sources = np.array([arc[0] for arc in arcs], np.int64)
    offsets = np.zeros(num_vertices + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=num_vertices), out=offsets[1:])
    return offsets, np.array([arc[1] for arc in arcs], np.int64), np.array([arc[2] for arc in arcs])


def gap_bytes(arcs: list[tuple], num_vertices: int, *, directed: bool, weighted: bool) -> bytes:
    """Return a .sg or .wsg file; a directed one ends with its in-rows."""
    lists = [arcs, [(v, u, w) for u, v, w in arcs]] if directed else [arcs]
    data = struct.pack("<?qq", directed, len(arcs), num_vertices)
    for rows in lists:
        offsets, targets, weights = csr_of(rows, num_vertices)
        neighbors = np.stack((targets, weights), 1) if weighted else targets
        data += offsets.astype("<i8").tobytes() + neighbors.astype("<i4").tobytes()
    return data


def galois_bytes(arcs: list[tuple], num_vertices: int, version: int, weights_dtype: str | None) -> bytes:
    """Return a Galois .gr file, padded as Galois pads it."""
    offsets, targets, weights = csr_of(arcs, num_vertices)
    itemsize = np.dtype(weights_dtype).itemsize if weights_dtype else 0
    data = struct.pack("<4Q", version, itemsize, num_vertices, len(arcs)) + offsets[1:].astype("<u8").tobytes()
    data += targets.astype(f"<u{4 * version}").tobytes()
    data += b"\0" * (4 * (len(arcs) % 2) if version == 1 else 0)
    return data + (weights.astype(weights_dtype).tobytes() if weights_dtype else b"")


def graph500_bytes(edges: list[tuple], *, wide: bool) -> bytes:
    """Return a Graph500 edge list of 16 or 12 bytes an edge."""
    if wide:
        return b"".join(struct.pack("<qq", u, v) for u, v, *_ in edges)
    low = 2**32 - 1
    return b"".join(struct.pack("<IIHH", u & low, v & low, u >> 32 & 0xFFFF, v >> 32 & 0xFFFF) for u, v, *_ in edges)
