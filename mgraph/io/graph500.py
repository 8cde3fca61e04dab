"""Edge lists of Graph500's reference code, in 12 or 16 bytes an edge, with float32 weights in FILE.weights beside.

    12 bytes   u32 low bits of the source   u32 low bits of the target   u16, u16 high bits of both
    16 bytes   i64 source   i64 target                                                    (little-endian)

Nothing in a file tells which of them it is, so that the format is named.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.input_file import InputFile
from mgraph.io.pieces import edge_piece, edges_of_piece, num_pieces
from mgraph.io.ranges import num_bytes_of, opened, read_range
from mgraph.io.spool import sibling

PACKED = np.dtype([("source", "<u4"), ("target", "<u4"), ("source_high", "<i2"), ("target_high", "<i2")])
WIDE = np.dtype([("source", "<i8"), ("target", "<i8")])


@dataclass(frozen=True)
class Graph500Table:
    """A file of edges with a checked length."""

    path: InputFile
    weights_file: InputFile | None
    wide: bool
    max_edges: int
    directed: bool
    num_vertices: int | None
    labels: Labels
    base: int = 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def has_weights(self) -> bool:
        return self.weights_file is not None

    @property
    def num_pieces(self) -> int:
        return num_pieces(self.max_edges)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        lo, hi = edges_of_piece(k, self.max_edges)
        dtype = WIDE if self.wide else PACKED
        with opened(self.path) as raw:
            edges = read_range(self.path, raw, dtype, lo * dtype.itemsize, hi - lo)
        weights = None
        if self.weights_file is not None:
            with opened(self.weights_file) as raw:
                weights = read_range(self.weights_file, raw, "<f4", 4 * lo, hi - lo)
        sources, targets = (
            np.ascontiguousarray(edges[end]) if self.wide else edges[f"{end}_high"].astype(np.int64) << 32 | edges[end]
            for end in ("source", "target")
        )
        return edge_piece(sources, targets, weights, lambda i: f"{self.path}: edge {lo + i}")

    def release(self) -> None:
        for file in (self.path, self.weights_file):
            if release := getattr(file, "release", None):
                release()


def read_graph500(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
    wide: bool = False,
) -> Graph500Table:
    """Check the length of a file, and of FILE.weights if there is one, and return it as a table."""
    dtype = WIDE if wide else PACKED
    with opened(file) as raw:
        actual = num_bytes_of(raw)
    count, rest = divmod(actual, dtype.itemsize)
    if rest:
        raise InputError(f"{file} is {actual} bytes, no multiple of {dtype.itemsize} for each edge: truncated?")
    if weight is not None and not isinstance(weight, bool):
        raise UsageError(f"{file} has no columns by name, and no {weight!r}: its weights are in {file}.weights")
    beside = None if weight is False else sibling(file, f"{file.name}.weights")
    if weight is True and beside is None:
        raise UsageError(f"{file} has no weights: there is no {file}.weights")
    if beside is not None:
        with opened(beside) as raw:
            actual = num_bytes_of(raw)
        if actual != 4 * count:
            raise InputError(f"{beside} is {actual} bytes, but {count} weights of 32 bits need {4 * count}: truncated?")
    return Graph500Table(file, beside, wide, count, bool(directed), num_vertices, labels)


read_graph500_wide = functools.partial(read_graph500, wide=True)
