"""Text edge lists: .txt .el .wel .csv .tsv, one edge a line, read in ranges of bytes."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import available_cores
from mgraph.edges import EdgeChunk
from mgraph.errors import InputError
from mgraph.formatting import counted
from mgraph.io import lines, spool
from mgraph.io.arrays import on_backend
from mgraph.io.checks import check_num_vertices
from mgraph.io.columns import find_ends, find_weight, listed, names_ends
from mgraph.io.lines import BadLine, first_lines, line_start, placing_errors, text_begin
from mgraph.io.parse import EMPTY, FIELDS, NEGATIVE, NOT_AN_ID, OUT_OF_RANGE, TOO_LONG, count_lines, parse_lines
from mgraph.io.ranges import InputFile
from mgraph.partition import chunk_range

# Bytes parsed at a time: enough to be fast, little beside the resulting arrays.
BLOCK_BYTES = 16 << 20
NO_LIMIT = 4 * 10**18 - 1  # the largest id that the parser reads


@dataclass(frozen=True)
class TextEdges:
    """A text file, the layout of its lines, and the results of the first scan."""

    path: spool.InputPath
    packed: spool.Unpacked | None
    begin: int  # where the edges begin, after a header
    num_fields: int
    ends: tuple[int, int]  # the fields of the source and the target
    weight_field: int  # -1: none
    base: int  # the id of the first vertex in the file
    directed: bool
    num_vertices: int = 0
    num_input_edges: int = 0
    weight_dtype: np.dtype | None = None

    @property
    def name(self) -> str:
        return pathlib.PurePath(self.path.name.removesuffix(".gz")).stem

    @property
    def file(self) -> InputFile:
        """The file to read, decompressed."""
        return self.packed or self.path

    def release(self) -> None:
        """Delete the decompressed copy; the next chunk makes another."""
        if self.packed is not None:
            self.packed.release()

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        file = self.file
        size = file.stat().st_size - self.begin
        lo, hi = chunk_range(size, k, num_chunks)
        with placing_errors(self.path, file):
            blocks = list(_blocks(self, file, self.begin + lo, self.begin + hi))
            parsed = [_parse(self, at, text, self.num_vertices - 1) for at, text in blocks]
        sources, targets = (
            np.concatenate([np.empty(0, np.int64), *(getattr(part, end) for part in parsed)])
            for end in ("sources", "targets")
        )
        weights = None
        if self.weight_dtype is not None:
            whole = self.weight_dtype.kind != "f"
            parts = [part.integers if whole else part.weights for part in parsed]
            weights = np.concatenate([np.empty(0, self.weight_dtype), *parts]).astype(self.weight_dtype, copy=False)
        return on_backend(sources, targets, weights, self.num_vertices, backend)


def read_text(
    path: spool.InputPath,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> TextEdges:
    """Scan a text edge list once and return it as a source.

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
    layout = TextEdges(path, packed, begin, len(fields), ends, weight_field, 0, bool(directed))
    return scanned(layout, check_num_vertices(num_vertices))


def is_packed(path: spool.InputPath) -> bool:
    """Return whether a file is compressed by gzip."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def scanned(layout: TextEdges, num_vertices: int | None, floats: bool = False) -> TextEdges:
    """Scan the whole file: check every line, count edges, find the largest id and the dtype of the weights.

    With `floats` the weights are float64 even if all of them are integers.
    """
    file = layout.file
    limit = NO_LIMIT if num_vertices is None else num_vertices - 1
    size = file.stat().st_size
    starts = range(layout.begin, max(size, layout.begin), BLOCK_BYTES)

    def scan(start: int) -> list[_Bounds]:
        blocks = _blocks(layout, file, start, min(start + BLOCK_BYTES, size))
        return [_bounds(_parse(layout, at, text, limit)) for at, text in blocks]

    with placing_errors(layout.path, file), ThreadPoolExecutor(available_cores()) as pool:
        bounds = [found for part in pool.map(scan, starts) for found in part]
    top = max((found.top for found in bounds), default=-1)
    dtype = None
    if layout.weight_field >= 0:
        whole = not floats and all(found.whole for found in bounds)
        with placing_errors(layout.path, file):
            dtype = _whole_dtype(bounds) if whole else np.dtype(np.float64)
    return dataclasses.replace(
        layout,
        num_vertices=top + 1 if num_vertices is None else num_vertices,
        num_input_edges=sum(found.count for found in bounds),
        weight_dtype=dtype,
    )


@dataclass
class _Part:
    """The edges of some lines."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    integers: np.ndarray
    whole: bool  # no weight is written as a float
    beyond: tuple[int, str] | None  # the first integer beyond 64 signed bits, and where it is


@dataclass
class _Bounds:
    """The results of the first scan for some lines."""

    count: int
    top: int
    whole: bool
    beyond: tuple[int, str] | None
    low: int
    high: int


def _bounds(part: _Part) -> _Bounds:
    if not len(part.sources):
        return _Bounds(0, -1, True, None, 0, 0)
    top = int(max(part.sources.max(), part.targets.max()))
    low, high = (int(part.integers.min()), int(part.integers.max())) if len(part.integers) else (0, 0)
    return _Bounds(len(part.sources), top, part.whole, part.beyond, low, high)


def _whole_dtype(bounds: list[_Bounds]) -> np.dtype:
    """Return the smallest dtype for integer weights: unsigned up to 32 bits, else signed."""
    beyond = [found.beyond for found in bounds if found.beyond]
    if beyond:
        at, token = beyond[0]
        raise BadLine(
            at,
            f"weight {token[:40]} is beyond 64 signed bits, and no weight of the file is a float: write it as "
            f"{token[:40]}.0 where the nearest float will do",
        )
    low = min((found.low for found in bounds), default=0)
    high = max((found.high for found in bounds), default=0)
    names = ("uint8", "uint16", "uint32", "int64") if low >= 0 else ("int32", "int64")
    return next(np.dtype(name) for name in names if np.iinfo(name).min <= low and high <= np.iinfo(name).max)


def _blocks(layout: TextEdges, file: InputFile, lo: int, hi: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (offset, bytes) of the lines that begin in lo..hi, in blocks."""
    with file.open("rb", buffering=0) as raw:

        def start(at: int) -> int:
            return line_start(raw, at, layout.begin)

        at = start(lo)
        hi = start(hi)
        while at < hi:
            end = min(start(at + BLOCK_BYTES), hi)
            raw.seek(at)
            text = np.empty(end - at, np.uint8)
            view = text.data
            filled = 0
            while filled < len(text):
                count = raw.readinto(view[filled:])
                if not count:
                    raise InputError(f"{layout.path} ended at byte {at + filled} while being read: it has changed")
                filled += count
            yield at, text
            at = end


def _parse(layout: TextEdges, at: int, text: np.ndarray, limit: int) -> _Part:
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
    count = parse_lines(text, fields, layout.base, limit, sources, targets, weights, integers, slow, report)
    for edge, begin, end in slow[:, : report[4]].T.tolist():
        token = text[begin:end].tobytes().decode(errors="replace")
        weights[edge] = _slow_number(at + begin, token)
    if report[0]:
        _refuse(layout, at, text, limit, report.tolist())
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


def _refuse(layout: TextEdges, at: int, text: np.ndarray, limit: int, report: list[int]) -> None:
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
        OUT_OF_RANGE: f"vertex {word} is not in {layout.base}..{limit + layout.base}",
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
