"""Text edge lists: .txt .el .wel .csv .tsv, one edge a line, read in ranges of bytes."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from functools import partial

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError
from mgraph.formatting import counted
from mgraph.io import lines, spool
from mgraph.io.checks import check_num_vertices
from mgraph.io.columns import find_ends, find_weight, listed, names_ends
from mgraph.io.lines import BadLine, first_lines, line_of, line_start, placed, placing_errors, text_begin
from mgraph.io.parse import (
    EMPTY,
    FIELDS,
    NEGATIVE,
    NOT_AN_ID,
    OUT_OF_RANGE,
    TOO_LONG,
    count_lines,
    edge_begin,
    parse_lines,
)
from mgraph.io.ranges import InputFile

# The bytes of a piece: enough to be fast, little beside the resulting arrays. A small file is divided into PIECES.
PIECE_BYTES = 16 << 20
LEAST_PIECE_BYTES = 1 << 20
PIECES = 64
# The number of edges is estimated from so many samples of so many bytes.
SAMPLES = 5
SAMPLE_BYTES = 1 << 14
NO_LIMIT = 4 * 10**18 - 1  # the largest id that the parser reads


@dataclass(frozen=True)
class TextTable:
    """A text file as a table: the layout of its lines, and how it is divided into pieces of whole lines.

    Attributes
    ----------
    begin, end
        Where the edges begin, after a header, and where they end.
    ends
        The fields of the source and the target; `weight_field` is -1 if there is none.
    floats
        Whether weights are floats even if all are written as integers.
    """

    path: spool.InputPath
    packed: spool.Unpacked | None
    begin: int
    end: int
    num_fields: int
    ends: tuple[int, int]
    weight_field: int
    base: int
    directed: bool
    num_vertices: int | None = None
    labels: Labels = "auto"
    floats: bool = False
    declared_edges: int | None = None

    @property
    def name(self) -> str:
        return pathlib.PurePath(self.path.name.removesuffix(".gz")).stem

    @property
    def file(self) -> InputFile:
        """The file to read, decompressed."""
        return self.packed or self.path

    @property
    def has_weights(self) -> bool:
        return self.weight_field >= 0

    @property
    def piece_bytes(self) -> int:
        """The bytes of a piece: small files have many pieces too, so that ranks share them."""
        return max(min((self.end - self.begin) // PIECES, PIECE_BYTES), LEAST_PIECE_BYTES)

    @property
    def num_pieces(self) -> int:
        return max(-(-(self.end - self.begin) // self.piece_bytes), 1)

    @property
    def max_edges(self) -> int:
        """The number of edges as the lengths of lines in some places of the file suggest it."""
        size = self.end - self.begin
        length = min(SAMPLE_BYTES, size // SAMPLES)
        taken = lines = 0
        with self.file.open("rb", buffering=0) as raw:
            for k in range(SAMPLES):
                raw.seek(self.begin + (size - length) * k // (SAMPLES - 1))
                part = raw.read(length)
                taken += len(part)
                lines += max(part.count(b"\n"), part.count(b"\r"))
        return max(size * lines // max(taken, 1), 1)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Read the lines that begin in part k of the file."""
        file = self.file
        lo = self.begin + k * self.piece_bytes
        with placing_errors(self.path, file):
            at, text = _lines(self, lo, min(lo + self.piece_bytes, self.end))
            part = _parse(self, at, text)
            weights = doubt = None
            if self.weight_field >= 0:
                exact = part.whole and not self.floats and part.beyond is None
                weights = part.integers if exact else part.weights
            if part.beyond is not None and part.whole and not self.floats:
                at, token = part.beyond
                doubt = placed(self.path, file, at, _beyond(token))
        return EdgePiece(part.sources, part.targets, weights, partial(_where, self, lo), None, doubt)

    def release(self) -> None:
        """Delete the decompressed copy; the next piece makes another."""
        if self.packed is not None:
            self.packed.release()


def read_text(
    path: spool.InputPath,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> TextTable:
    """Look at the first lines of a text edge list and return it as a table.

    If the first line names the columns, `mgraph.io.columns` finds the ends and the weight; else the first two fields
    are the ends. `weight` is the weight's column, by name or by number from 0; None means a column called weight, or
    the third of three unnamed columns; False means none.
    """
    packed = spool.unpacked(path) if is_packed(path) else None
    file = packed or path
    begin, fields, header = _first_line(path, file, path.name.removesuffix(".gz").endswith((".csv", ".tsv")))
    if header and len(fields) != len(header):
        raise InputError(
            f"{path}: {counted(len(header), 'column')} in the line of names ({listed(header)}), and "
            f"{counted(len(fields), 'field')} in the next line: give every column a name"
        )
    if fields and len(fields) < 2:
        raise InputError(f"{path}: a line needs two vertices, and the first one is {fields[0][:40]!r}")
    ends = find_ends(path, header, bool(directed)) if header else (0, 1)
    weight_field = find_weight(path, weight, len(fields), header, ends) if fields else -1
    end = max(file.stat().st_size, begin)
    return TextTable(
        path, packed, begin, end, len(fields), ends, weight_field, 0, bool(directed), check_num_vertices(num_vertices)
    )


def is_packed(path: spool.InputPath) -> bool:
    """Return whether a file is compressed by gzip."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


@dataclass
class _Part:
    """The edges of some lines."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    integers: np.ndarray
    whole: bool  # no weight is written as a float
    beyond: tuple[int, str] | None  # the first integer beyond 64 signed bits, and where it is


def _beyond(token: str) -> str:
    return (
        f"weight {token[:40]} is beyond 64 signed bits, and no weight of the file is a float: write it as "
        f"{token[:40]}.0 where the nearest float will do"
    )


def _where(table: TextTable, lo: int, i: int) -> str:
    """Name the line of edge i of the piece that begins at byte `lo`."""
    at, text = _lines(table, lo, min(lo + table.piece_bytes, table.end))
    return f"{table.path}:{line_of(table.file, at + edge_begin(text, i))}"


def _lines(table: TextTable, lo: int, hi: int) -> tuple[int, np.ndarray]:
    """Return (offset, bytes) of the lines that begin in lo..hi."""
    with table.file.open("rb", buffering=0) as raw:
        at = line_start(raw, lo, table.begin)
        end = line_start(raw, hi, table.begin)
        raw.seek(at)
        text = np.empty(max(end - at, 0), np.uint8)
        view = text.data
        filled = 0
        while filled < len(text):
            count = raw.readinto(view[filled:])
            if not count:
                raise InputError(f"{table.path} ended at byte {at + filled} while being read: it has changed")
            filled += count
    return at, text


def _parse(layout: TextTable, at: int, text: np.ndarray) -> _Part:
    """Parse the lines at byte `at` of the file."""
    max_edges = count_lines(text)
    weighted = max_edges if layout.weight_field >= 0 else 0
    sources = np.empty(max_edges, np.int64)
    targets = np.empty(max_edges, np.int64)
    weights = np.empty(weighted, np.float64)
    integers = np.empty(weighted, np.int64)
    slow = np.empty((3, weighted), np.int64)
    report = np.zeros(8, np.int64)
    fields = layout.num_fields, *layout.ends, layout.weight_field
    count = parse_lines(text, fields, 0, NO_LIMIT, sources, targets, weights, integers, slow, report)
    for edge, begin, end in slow[:, : report[4]].T.tolist():
        token = text[begin:end].tobytes().decode(errors="replace")
        weights[edge] = _slow_number(at + begin, token)
    if report[0]:
        _refuse(layout, at, text, report.tolist())
    begin, end = report[6:8].tolist()
    beyond = (at + begin, text[begin:end].tobytes().decode()) if end else None
    return _Part(sources[:count], targets[:count], weights[:count], integers[:count], report[5] == 0, beyond)


def _slow_number(at: int, token: str) -> float:
    """Parse a number that the compiled parser leaves to Python's float(), or refuse it."""
    try:
        value = float(token) if token.isascii() and "_" not in token else None
    except ValueError:
        value = None
    if value is None:
        raise BadLine(at, f"weight {token[:40]!r} is not a number")
    if not np.isfinite(value):
        raise BadLine(at, f"weight {token[:40]!r} is not a finite number")
    return value


def _refuse(layout: TextTable, at: int, text: np.ndarray, report: list[int]) -> None:
    """Raise the error that `report` describes."""
    problem, begin, end, field = report[:4]
    token = text[begin:end].tobytes()
    word = repr(token.decode(errors="replace")[:40])
    messages = {
        TOO_LONG: lines.TOO_LONG,
        EMPTY: f"field {field + 1} is empty",
        FIELDS: f"{counted(field, 'field')} where the first line has {layout.num_fields}",
        NOT_AN_ID: f"vertex {word} is not a whole number",
        NEGATIVE: f"vertex {word} is negative: vertices are numbered from {layout.base}",
        OUT_OF_RANGE: f"vertex {word} is beyond 4e18",
    }
    raise BadLine(at + begin, lines.NO_TEXT if b"\0" in token and problem != TOO_LONG else messages[problem])


def _first_line(path: spool.InputPath, file: InputFile, may_have_header: bool) -> tuple[int, list[str], list[str]]:
    """Return the offset of the first edge, the fields of its line, and the column names of a header or []."""
    begin = text_begin(path, file)
    header = list[str]()
    for end, line in first_lines(path, file, begin, comments=False):
        text = line.decode(errors="replace").strip()
        if not text or text[0] in "#%":
            continue
        fields = _fields(text.split(",") if "," in text else text.split())
        if header or not (may_have_header or "," in text) or not _are_names(fields):
            return begin, fields, header
        # Names that are separated by tabs may contain blanks.
        header = _fields(text.split("\t")) if "\t" in text and "," not in text else fields
        begin = end
    return begin, header, header


def _fields(tokens: list[str]) -> list[str]:
    return [token.strip().strip("\"'") for token in tokens]


def _are_names(fields: list[str]) -> bool:
    """Return whether fields are column names: one of the first two begins with a letter, or two are a known pair."""
    return any(field[:1].isalpha() or field[:1] == "_" for field in fields[:2]) or names_ends(fields)
