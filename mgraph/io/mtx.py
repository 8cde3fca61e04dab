"""Matrix Market .mtx files: the entries of a sparse square matrix are edges, their values weights.

A general matrix is directed, a symmetric one, of which one triangle is there, undirected. The entry (u, v) of a
skew-symmetric matrix is two of opposite sign: with its weights it is directed, without them undirected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.edge_lines import check_declared_vertices, edge_lines, header_lines, wants_weights
from mgraph.io.input_file import InputFile
from mgraph.io.parse import LineSyntax
from mgraph.io.text import TextTable

BANNER = "%%MatrixMarket"
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


@dataclass(frozen=True)
class SkewTable(TextTable):
    """The entries of a skew-symmetric matrix, each with its opposite."""

    @property
    def max_edges(self) -> int:
        return 2 * super().max_edges

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        half = super().piece(k, backend)
        count = len(half)
        sources, targets, weights = (backend.to_host(part) for part in (half.sources, half.targets, half.weights))
        if weights.dtype.kind != "f":
            weights = weights.astype(np.int64, copy=False)
            if (lowest := weights == np.iinfo(np.int64).min).any():
                raise InputError(f"{half.where(int(lowest.argmax()))}: the opposite of the weight is beyond 64 bits")
        return replace(
            half,
            sources=np.concatenate((sources, targets)),
            targets=np.concatenate((targets, sources)),
            weights=np.concatenate((weights, -weights)),
            where=lambda i: half.where(i % count),
        )


def read_mtx(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> TextTable:
    """Read the header of a file and return its entries as a table.

    `weight=False` leaves the values out.
    """
    lines = header_lines(file)
    _, begin, banner = next(lines, (0, 0, []))
    field, symmetry = _kind(file, banner)
    # The banner is followed by comments, then by the size line.
    _, begin, size = next((line for line in lines if not line[2][0].startswith("%")), (0, begin, []))
    rows, entries = _size(file, size)
    weighted = wants_weights(file, weight, has=field != "pattern")
    check_declared_vertices(file, rows, num_vertices)
    skew = symmetry == "skew-symmetric" and weighted
    may_be_directed = symmetry == "general" or skew
    if directed and not may_be_directed:
        raise UsageError(f"{file} is {symmetry} and holds one of both directions: read it as undirected")
    if directed is False and skew:
        raise UsageError(
            f"{file} is skew-symmetric: each edge has two weights, so read it as directed, or weight=False"
        )
    about = {
        "base": 1,
        "directed": may_be_directed if directed is None else directed,
        "num_vertices": rows,
        "labels": labels,
        "declared_edges": 2 * entries if skew else entries,
    }
    fields = 2 if field == "pattern" else 3
    syntax = LineSyntax(fields, weight=2 if weighted else -1, floats=field != "integer")
    table = edge_lines(file, begin, syntax, **about)
    return SkewTable(**vars(table)) if skew else table


def _kind(file: InputFile, banner: list[str]) -> tuple[str, str]:
    """Return field and symmetry of the banner.

    Refuse kinds of matrices that are not graphs.
    """
    if len(banner) != 5 or banner[0] != BANNER:
        raise InputError(f"{file} does not begin with {BANNER} and four words")
    kind, layout, field, symmetry = (word.lower() for word in banner[1:])
    if (kind, layout) == ("matrix", "array"):
        raise UnknownFormat(
            f"{file} is a dense array: only coordinate is a graph, as scipy.io.mmwrite writes a sparse matrix"
        )
    if (kind, layout) != ("matrix", "coordinate"):
        raise InputError(f"{file} is {kind} {layout}: only matrix coordinate is a graph")
    if field not in ("real", "double", "integer", "pattern"):
        raise InputError(f"{file} has {field} values: only real, integer and pattern are weights")
    if symmetry not in SYMMETRIES:
        raise InputError(f"{file} is {symmetry}: only {', '.join(SYMMETRIES)} matrices are graphs")
    return field, symmetry


def _size(file: InputFile, words: list[str]) -> tuple[int, int]:
    """Return the numbers of rows and entries in the size line."""
    if len(words) != 3 or not all(re.fullmatch(r"\d{1,99}", word) for word in words):
        raise InputError(f"{file} has no line of rows, columns and entries, but {' '.join(words)[:40]!r}")
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise InputError(f"{file} is {rows} x {columns}: an adjacency matrix is square")
    if rows > np.iinfo(np.int64).max:
        raise InputError(f"{file} has {rows} rows: more than 63 bits count")
    return rows, entries
