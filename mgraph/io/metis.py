"""METIS graphs: a line of counts, then the neighbors of each vertex in a line of its own, counted from 1.

    VERTICES EDGES [FORMAT [WEIGHTS]]

The digits of FORMAT say whether vertices have sizes, vertices have weights, and edges have weights.

Each edge is in two lines. Which vertex a line belongs to is known by counting: the client counts the lines of every
piece, in several threads, which takes a small part of the time of parsing them.
"""

from __future__ import annotations

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import available_cores
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError
from mgraph.io import adjacency
from mgraph.io.adjacency import NO_WEIGHT, NOT_A_NUMBER, TOO_FEW, TOO_MANY
from mgraph.io.csr_table import check_stored
from mgraph.io.input_file import InputFile, release
from mgraph.io.lines import MAX_LINE_BYTES, BadLine, line_of, placing_errors, text_begin
from mgraph.io.ranges import num_bytes_of, opened, read_range

PIECE_BYTES = 16 << 20
SEEK_BYTES = 1 << 16
# A neighbor and its weight with blanks; lines of n neighbors are legal, longer ones are no such lines.
NEIGHBOR_BYTES = 44


@dataclass(frozen=True)
class MetisTable:
    """A file with its counts, and where its pieces begin."""

    file: InputFile
    num_vertices: int
    declared_edges: int  # both directions
    own: int  # numbers of a vertex itself, before its neighbors
    weighted: bool
    has_weights: bool
    directed: bool
    pieces: tuple[tuple[int, int, int], ...]  # first byte, the one after the last, first vertex
    labels: Labels = "auto"
    base: int = 1

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def max_edges(self) -> int:
        return self.declared_edges

    @property
    def num_pieces(self) -> int:
        return len(self.pieces)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        begin, end, vertex = self.pieces[k]
        text = bytes_of(self.file, begin, end)
        most = adjacency.count_numbers(text)
        sources = np.empty(most, np.int64)
        targets = np.empty(most, np.int64)
        weights = np.empty(most if self.has_weights else 0, np.int64)
        report = np.zeros(3, np.int64)
        layout = vertex, self.num_vertices, self.own, self.weighted
        count = adjacency.parse_rows(text, layout, sources, targets, weights, report)
        if report[0]:
            _refuse(self, begin, text, report.tolist())
        found = weights[:count] if self.has_weights else None
        return EdgePiece(sources[:count], targets[:count], found, partial(_where, self, k, sources[:count]))

    def release(self) -> None:
        release(self.file)


def read_metis(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> MetisTable:
    """Read the counts of a file, count its lines, and return it as a table."""
    begin, n, m, own, weighted = _header(file)
    wanted = check_stored(file, weight, num_vertices, has=n, weighted=weighted)
    begins = piece_begins(file, begin, NEIGHBOR_BYTES * (n + own + 1))
    with ThreadPoolExecutor(available_cores()) as pool:
        counts = list(pool.map(lambda ends: adjacency.count_rows(bytes_of(file, *ends)), itertools.pairwise(begins)))
    firsts = [0, *itertools.accumulate(counts)]
    # The last line may be blank and lack its end. Blank lines after the last vertex are harmless.
    if firsts[-1] < n - 1:
        raise InputError(
            f"{file} has {firsts[-1]} lines of neighbors, and its first line says {n} vertices: truncated?"
        )
    pieces = tuple((*ends, first) for ends, first in zip(itertools.pairwise(begins), firsts, strict=False))
    return MetisTable(file, n, 2 * m, own, weighted, wanted, bool(directed), pieces, labels)


def _header(file: InputFile) -> tuple[int, int, int, int, bool]:
    """Return where the rows begin, the counts, the numbers before the neighbors, and whether edges have weights."""
    words: list[str] = []
    with file.open("rb") as raw:
        raw.seek(text_begin(file, file))
        while not words and (line := raw.readline(MAX_LINE_BYTES)):
            words = line.decode(errors="replace").split() if line[:1] != b"%" else []
        end = raw.tell()
    if not 2 <= len(words) <= 4 or not all(re.fullmatch(r"\d{1,18}", word) for word in words):
        raise InputError(f"{file} does not begin with numbers of vertices and edges, but with {' '.join(words)[:40]!r}")
    kinds = words[2].zfill(3) if len(words) > 2 else "000"
    if not re.fullmatch("[01]{3}", kinds):
        raise InputError(f"{file}: format {words[2]} of METIS is not three digits 0 or 1")
    num_weights = int(words[3]) if len(words) > 3 else 1
    own = int(kinds[0]) + int(kinds[1]) * num_weights
    return end, int(words[0]), int(words[1]), own, kinds[2] == "1"


def piece_begins(file: InputFile, begin: int, longest: int) -> list[int]:
    """Return where pieces begin, at beginnings of lines, and the end of the file."""
    with opened(file) as raw:
        size = num_bytes_of(raw)
        begins = [begin]
        while (at := begins[-1] + PIECE_BYTES) < size:
            begins.append(_line_after(file, raw, at, longest))
    return [*begins, size] if begins[-1] < size or len(begins) == 1 else begins


def _line_after(file: InputFile, raw: Any, at: int, longest: int) -> int:
    """Return the beginning of the first line after byte `at`."""
    raw.seek(at)
    first = at
    while part := raw.read(SEEK_BYTES):
        if (found := part.find(b"\n")) >= 0:
            return at + found + 1
        at += len(part)
        if at - first > longest:
            raise InputError(f"{file}, at byte {first}: the line is longer than all vertices as neighbors take")
    return at


def bytes_of(file: InputFile, begin: int, end: int) -> np.ndarray:
    """Return the bytes begin..end of a file."""
    with opened(file) as raw:
        return read_range(file, raw, np.uint8, begin, end - begin)


def _refuse(table: MetisTable, begin: int, text: np.ndarray, report: list[int]) -> None:
    """Raise the error that `report` describes."""
    problem, first, last = report
    word = repr(text[first:last].tobytes()[:40].decode(errors="replace"))
    messages = {
        NOT_A_NUMBER: f"{word} is not a whole number",
        NO_WEIGHT: "a neighbor without a weight: the first line says that edges have weights",
        TOO_FEW: f"fewer numbers than the {table.own} of the vertex itself, which the first line announces",
        TOO_MANY: f"a line more than the {table.num_vertices} vertices of the first line",
    }
    with placing_errors(table.file, table.file):
        raise BadLine(begin + first, messages[problem])


def _where(table: MetisTable, k: int, sources: np.ndarray, i: int) -> str:
    """Name the line of edge i of piece k."""
    begin, end, vertex = table.pieces[k]
    at = begin + adjacency.row_begin(bytes_of(table.file, begin, end), int(sources[i]) - 1 - vertex)
    return f"{table.file}:{line_of(table.file, at)}"
