"""MatrixMarket .mtx files: the entries of a sparse square matrix are edges, their values weights."""

from __future__ import annotations

import re

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io import spool
from mgraph.io.lines import first_lines, text_begin
from mgraph.io.parse import LineSyntax
from mgraph.io.text import TextTable, is_packed

BANNER = "%%MatrixMarket"


def read_mtx(
    path: spool.InputPath,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> TextTable:
    """Look at the header of a file and return it as a table.

    A symmetric matrix is undirected, a general one directed. `weight=False` leaves the values out.
    """
    packed = spool.unpacked(path) if is_packed(path) else None
    file = packed or path
    begin = text_begin(path, file)
    lines = first_lines(path, file, begin)
    begin, banner = next(lines, (begin, b""))
    # The banner is followed by comments, then by the size line.
    begin, size = next(((end, line) for end, line in lines if line.strip()[:1] not in (b"", b"%")), (begin, b""))
    field, symmetry = _kind(path, banner.decode(errors="replace").split())
    rows, entries = _size(path, size.decode(errors="replace").split())
    if num_vertices not in (None, rows):
        raise UsageError(f"{path} has {rows} rows, not {num_vertices}")
    if weight is not None and not isinstance(weight, bool):
        raise UsageError(f"{path} has no columns by name, and no {weight!r}")
    if weight is True and field == "pattern":
        raise UsageError(f"{path} is a pattern, without weights")
    num_fields = 2 if field == "pattern" else 3
    weight_field = -1 if weight is False or field == "pattern" else 2
    directed = symmetry == "general" if directed is None else directed
    if directed and symmetry == "symmetric":
        raise UsageError(f"{path} is symmetric and holds one of both directions: read it as undirected")
    end = max(file.stat().st_size, begin)
    syntax = LineSyntax(num_fields, weight=weight_field, floats=field != "integer")
    return TextTable(path, packed, begin, end, syntax, directed, rows, False, 1, entries)


def _kind(path: spool.InputPath, banner: list[str]) -> tuple[str, str]:
    """Return field and symmetry of the banner.

    Refuse kinds of matrices that are not graphs.
    """
    if len(banner) != 5 or banner[0] != BANNER:
        raise InputError(f"{path} does not begin with {BANNER} and four words")
    kind, layout, field, symmetry = (word.lower() for word in banner[1:])
    if (kind, layout) != ("matrix", "coordinate"):
        raise InputError(f"{path} is {kind} {layout}: only matrix coordinate is a graph")
    if field not in ("real", "double", "integer", "pattern"):
        raise InputError(f"{path} has {field} values: only real, integer and pattern are weights")
    if symmetry not in ("general", "symmetric"):
        raise InputError(f"{path} is {symmetry}: only general and symmetric are graphs")
    return field, symmetry


def _size(path: spool.InputPath, words: list[str]) -> tuple[int, int]:
    """Return the numbers of rows and entries in the size line."""
    if len(words) != 3 or not all(re.fullmatch(r"\d{1,99}", word) for word in words):
        raise InputError(f"{path} has no line of rows, columns and entries, but {' '.join(words)[:40]!r}")
    rows, columns, entries = map(int, words)
    if rows != columns:
        raise InputError(f"{path} is {rows} x {columns}: an adjacency matrix is square")
    if rows > np.iinfo(np.int64).max:
        raise InputError(f"{path} has {rows} rows: more than 63 bits count")
    return rows, entries
