"""Graphs of LDBC Graphalytics: FILE.e lists edges, FILE.v all vertices, and FILE.properties what they mean.

Any of the three names the graph. Without properties it is undirected, and a third column of edges is the weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError
from mgraph.io import adjacency
from mgraph.io.adjacency import parse_rows
from mgraph.io.checks import check_num_vertices
from mgraph.io.edge_lines import edge_lines, header_lines, wants_weights
from mgraph.io.input_file import InputFile, release
from mgraph.io.lines import MAX_LINE_BYTES, line_of, placed, text_begin
from mgraph.io.metis import bytes_of, piece_begins
from mgraph.io.parse import LineSyntax
from mgraph.io.spool import sibling
from mgraph.io.text import TextTable

NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class LdbcTable(TextTable):
    """A file of edges, then the pieces of a file of vertices."""

    vertices: InputFile | None = None
    begins: tuple[int, ...] = (0,)  # of the pieces of vertices, and the end of the last
    declared_vertices: int | None = None  # the number of those that the properties declare, which is checked

    @property
    def num_pieces(self) -> int:
        return super().num_pieces + len(self.begins) - 1

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        first = super().num_pieces
        if k < first:
            return super().piece(k, backend)
        begin, end = self.begins[k - first : k - first + 2]
        none = np.empty(0, np.int64)
        weights = np.empty(0, np.uint8) if self.has_weights else None
        return EdgePiece(none, none, weights, partial(self._where, begin), self._vertices(begin, end))

    def release(self) -> None:
        super().release()
        release(self.vertices)

    def _vertices(self, begin: int, end: int) -> np.ndarray:
        """Return the vertices of some lines, each of which has one."""
        assert self.vertices is not None
        text = bytes_of(self.vertices, begin, end)
        most = adjacency.count_numbers(text)
        lines = np.empty(most, np.int64)
        vertices = np.empty(most, np.int64)
        report = np.zeros(3, np.int64)
        parse_rows(text, (0, NO_LIMIT, 0, False), lines, vertices, np.empty(0, np.int64), report)
        if report[0]:
            word = text[report[1] : report[2]].tobytes()[:40].decode(errors="replace")
            raise placed(self.vertices, self.vertices, begin + int(report[1]), f"vertex {word!r} is not a whole number")
        twice = lines[1:] == lines[:-1]
        if twice.any():
            at = begin + adjacency.row_begin(text, int(lines[np.argmax(twice)]) - 1)
            raise placed(self.vertices, self.vertices, at, "two vertices in a line")
        return vertices

    def _where(self, begin: int, i: int) -> str:
        assert self.vertices is not None
        return f"{self.vertices}:{line_of(self.vertices, begin)} or later"


def read_ldbc(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> LdbcTable:
    """Read the properties and the first edge, and return edges and vertices as a table."""
    edges = file if file.name.endswith(".e") else sibling(file, f"{file.stem}.e")
    if edges is None:
        raise InputError(f"{file}: there is no {file.stem}.e beside it, which has the edges")
    about = sibling(file, f"{file.stem}.properties")
    properties = {} if about is None else _properties(about)
    begin, _, words = next(header_lines(edges), (0, 0, ["", ""]))
    if len(words) not in (2, 3):
        raise placed(edges, edges, begin, f"{len(words)} columns: an edge has two ends, and perhaps a weight")
    if directed is None and about is not None:
        directed = _flag(about, properties, ".directed")
    weighted = wants_weights(edges, weight, has=len(words) == 3)
    table = edge_lines(
        edges,
        begin,
        LineSyntax(len(words), weight=2 if weighted else -1, comments=""),
        directed=bool(directed),
        num_vertices=check_num_vertices(num_vertices),
        labels=labels,
        declared_edges=_count(about, properties, ".meta.edges"),
    )
    vertices = sibling(file, f"{file.stem}.v")
    begins = [] if vertices is None else piece_begins(vertices, text_begin(vertices, vertices), MAX_LINE_BYTES)
    declared = None if vertices is None else _count(about, properties, ".meta.vertices")
    return LdbcTable(**vars(table), vertices=vertices, begins=tuple(begins) or (0,), declared_vertices=declared)


def _properties(file: InputFile) -> dict[str, str]:
    """Return the keys and values of a file of properties."""
    with file.open("rb") as raw:
        lines = raw.read(MAX_LINE_BYTES).decode(errors="replace").splitlines()
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith(("#", "!")))
    return {key.strip(): value.strip() for key, sign, value in pairs if sign}


def _flag(file: InputFile, properties: dict[str, str], ending: str) -> bool:
    """Return a flag of the properties."""
    value = _value(properties, ending).lower()
    if value not in ("true", "false"):
        raise InputError(
            f"{file}: graph.NAME{ending} is {value[:40]!r}, not true or false: say --directed or --undirected"
        )
    return value == "true"


def _count(file: InputFile | None, properties: dict[str, str], ending: str) -> int | None:
    """Return a number of the properties, None if they have none."""
    value = _value(properties, ending)
    if value and not (value.isascii() and value.isdigit()):
        raise InputError(f"{file}: graph.NAME{ending} is {value[:40]!r}, no whole number")
    return int(value) if value else None


def _value(properties: dict[str, str], ending: str) -> str:
    """Return the value of the first key `graph.NAME` with this ending, "" for none."""
    return next((value for key, value in properties.items() if key.startswith("graph.") and key.endswith(ending)), "")
