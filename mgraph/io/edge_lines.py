"""What formats with a header and an edge a line share: their first lines, and a table of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mgraph.errors import UsageError
from mgraph.io.input_file import InputFile
from mgraph.io.lines import first_lines, placed, text_begin
from mgraph.io.parse import LineSyntax
from mgraph.io.text import TextTable


def header_lines(file: InputFile) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (where a line begins, where the next begins, its words) for lines that are not blank."""
    begin = text_begin(file, file)
    for end, line in first_lines(file, file, begin):
        if words := line.decode(errors="replace").split():
            yield begin, end, words
        begin = end


def edge_lines(file: InputFile, begin: int, syntax: LineSyntax, **about: Any) -> TextTable:
    """Return the lines from byte `begin` on as a table; `about` are its other attributes."""
    return TextTable(file, begin, max(file.stat().st_size, begin), syntax, **about)


def wants_weights(file: InputFile, weight: str | int | bool | None, *, has: bool) -> bool:
    """Return whether the weights of a format without names of columns are wanted."""
    if weight is not None and not isinstance(weight, bool):
        raise UsageError(f"{file} has no columns by name, and no {weight!r}")
    if weight is True and not has:
        raise UsageError(f"{file} has no weights")
    return has and weight is not False


def counts_of(file: InputFile, begin: int, words: list[str], what: str) -> list[int]:
    """Return the numbers of a header's line, such as those of vertices and edges."""
    if not all(word.isascii() and word.isdigit() and len(word) <= 18 for word in words):
        raise placed(file, file, begin, f"{' '.join(words)[:40]!r} are not {what}")
    return [int(word) for word in words]


def check_declared_vertices(file: InputFile, declared: int, num_vertices: int | None) -> None:
    """Refuse a number of vertices that is not the file's."""
    if num_vertices not in (None, declared):
        raise UsageError(f"{file} has {declared} vertices, not {num_vertices}")
