"""Text edge lists: .txt .el .wel .csv .tsv, one edge a line, read in ranges of bytes."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import partial
from typing import IO

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io import parse
from mgraph.io.checks import check_num_vertices
from mgraph.io.columns import NO_COLUMNS, Columns
from mgraph.io.device_text import parsed_on_device
from mgraph.io.input_file import Identity, InputFile, identity, release
from mgraph.io.line_pieces import LineEdges, parsed
from mgraph.io.lines import MAX_LINE_BYTES, SEEK_BYTES, TOO_LONG, BadLine, line_of, placed, placing_errors
from mgraph.io.parse import PADDING, LineSyntax, nth_edge
from mgraph.io.samples import LABEL_PLACES, LabelSample, kept_with_table, largest_of
from mgraph.io.text_layout import find_layout
from mgraph.labels.strings import Strings

# The bytes of a piece: enough to be fast, little compared with the resulting arrays. A small file is divided into
# PIECES.
PIECE_BYTES = 16 << 20
MIN_PIECE_BYTES = 1 << 20
PIECES = 64
# The number of edges is estimated from this many samples of SAMPLE_BYTES.
SAMPLES = 5
SAMPLE_BYTES = 1 << 16

# The buffer of each thread: its pages are allocated once for all pieces. Threads of a read end with it.
_buffers = threading.local()
_END_OF_LINE = re.compile(rb"[\r\n]")


@dataclass(frozen=True)
class TextTable:
    """A text file as a table: the syntax of its lines, and how it is divided into pieces of whole lines.

    Attributes
    ----------
    begin, end
        Where the edges begin, after a header, and where they end.
    declared_edges
        The number of edges that a header declares, which is checked.
    """

    path: InputFile
    begin: int
    end: int
    syntax: LineSyntax
    directed: bool
    num_vertices: int | None = None
    labels: Labels = "auto"
    base: int = 0
    declared_edges: int | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def has_weights(self) -> bool:
        return self.syntax.weight >= 0

    @property
    def is_text(self) -> bool:
        return self.syntax.is_text

    @property
    def piece_bytes(self) -> int:
        """The bytes of a piece: small files have many pieces too, so that ranks share them."""
        return max(min((self.end - self.begin) // PIECES, PIECE_BYTES), MIN_PIECE_BYTES)

    @property
    def num_pieces(self) -> int:
        return max(-(-(self.end - self.begin) // self.piece_bytes), 1)

    @property
    def max_edges(self) -> int:
        """The number of edges as lines in some places of the file suggest it."""
        return self._expected[0]

    @property
    def expected_vertices(self) -> int | None:
        """The number of vertices as ids in some places of the file suggest it; None if these are strings."""
        return self._expected[1]

    @property
    def text_bytes(self) -> int | None:
        """The bytes of all ids of both ends, estimated in the same way; None if these are numbers."""
        sample = self._expected[2]
        return None if sample is None else sample.text_bytes(self.max_edges)

    def label_sample(self, most: int = LABEL_PLACES) -> LabelSample | None:
        """Return the ids in some places of the file; None if these are numbers."""
        return self._expected[2]

    @property
    def _expected(self) -> tuple[int, int | None, LabelSample | None]:
        return _expected(self, identity(self.path.stat()))

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        """Read the lines that begin in part k of the file."""
        lo = self.begin + k * self.piece_bytes
        with placing_errors(self.path, self.path):
            at, size, text = _lines(self, lo, min(lo + self.piece_bytes, self.end))
            edges = parsed_on_device(backend, self.syntax, text[:size], at) or parsed(self.syntax, text, size, at)
        where = partial(_where, self, lo)
        return EdgePiece(edges.sources, edges.targets, edges.weights, where, None, self._doubt(edges))

    def _doubt(self, edges: LineEdges) -> InputError | None:
        if edges.beyond is None:
            return None
        at, token = edges.beyond
        problem = (
            f"weight {token[:40]} is beyond 64 signed bits, and no weight of the file is a float: write it as "
            f"{token[:40]}.0 where the nearest float will do"
        )
        return placed(self.path, self.path, at, problem)

    def release(self) -> None:
        """Delete the decompressed copy; the next piece makes another."""
        release(self.path)


@kept_with_table
def _expected(table: TextTable, _: Identity) -> tuple[int, int | None, LabelSample | None]:
    """Estimate the edges and vertices from a few samples, or from all of a small file; return strings as they are."""
    size = table.end - table.begin
    length = min(size, SAMPLE_BYTES)
    starts = [table.begin + (size - length) * k // (SAMPLES - 1) for k in range(SAMPLES)]
    if size <= SAMPLES * SAMPLE_BYTES:
        length = size
        starts = [table.begin]
    taken = edges = 0
    top = -1
    strings = []
    for lo in starts:
        try:
            at, num_bytes, text = _lines(table, lo, lo + length)
            part = parsed(table.syntax, text, num_bytes, at)
        except BadLine:
            continue  # found again, and reported, when the piece is read
        taken += num_bytes
        edges += len(part.sources)
        if isinstance(part.sources, Strings) and isinstance(part.targets, Strings):
            strings.append((part.sources, part.targets))
        else:
            top = max(top, largest_of([part.sources, part.targets]))
    whole = size / max(taken, 1)
    is_text = table.syntax.is_text
    return (
        max(int(whole * edges), 1),
        None if is_text else top + 1 - table.base,
        LabelSample.of(strings) if is_text else None,
    )


def read_text(
    path: InputFile,
    *,
    columns: Columns = NO_COLUMNS,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
    base: int = 0,
    sep: str | None = None,
) -> TextTable:
    """Look at the first lines of a text edge list and return it as a table.

    If the first line names the columns, `mgraph.io.columns` finds the ends and the weight; else the first two fields
    are the ends. Of three unnamed columns the third is the weight in a .wel file; elsewhere `columns` must say what it
    is. `sep` is the character between fields, by default what the first line has
    outside of quotes: of a .tsv file a tab, else a comma, of a .csv file a tab, else blanks.
    """
    if sep is not None:
        sep = sep.replace("\\t", "\t")
        if len(sep) != 1 or not sep.isascii() or sep.isalnum() or sep in '\r\n".+-':
            raise UsageError(f"sep {sep!r} is not one character between fields, such as ';' or a tab")
    name = path.name.lower()
    layout = find_layout(path, path, name, columns, bool(directed), as_text=labels == "string", separator=sep)
    end = max(path.stat().st_size, layout.begin)
    n = check_num_vertices(num_vertices)
    return TextTable(path, layout.begin, end, layout.syntax, bool(directed), n, labels, base)


def _where(table: TextTable, lo: int, i: int) -> str:
    """Name the line of edge i of the piece that begins at byte `lo`."""
    at, size, text = _lines(table, lo, min(lo + table.piece_bytes, table.end))
    state = np.zeros(parse.NUM_WORDS, np.int64)
    nth_edge(text, size, table.syntax.words, table.syntax.skipped, i, state)
    return f"{table.path}:{line_of(table.path, at + int(state[parse.AT]))}"


def _lines(table: TextTable, lo: int, hi: int) -> tuple[int, int, np.ndarray]:
    """Return (offset, size, bytes) of the lines that begin in lo..hi, with padding.

    The bytes are valid until this thread reads other lines.
    """
    # A line begins after the end of another: the search for both ends of the piece starts a byte before them.
    first = max(lo - 1, table.begin)
    num_bytes = hi - first + MAX_LINE_BYTES + SEEK_BYTES + PADDING
    buffer = getattr(_buffers, "text", None)
    if buffer is None or len(buffer) < num_bytes:
        buffer = _buffers.text = np.empty(num_bytes, np.uint8)
    with table.path.open("rb", buffering=0) as raw:
        raw.seek(first)
        filled = _fill(table, raw, buffer, first, 0, min(hi + SEEK_BYTES, table.end) - first)
        begin = 0 if lo <= table.begin else _next_line(buffer, 0, filled)
        # A line longer than SEEK_BYTES is rare.
        end = filled if hi == table.end else _next_line(buffer, hi - 1 - first, filled)
        while end is None and first + filled < table.end and filled <= hi - first + MAX_LINE_BYTES:
            more = min(filled + MAX_LINE_BYTES // 4, len(buffer) - PADDING, table.end - first)
            filled = _fill(table, raw, buffer, first, filled, more)
            end = _next_line(buffer, hi - 1 - first, filled)
    if begin is None:
        # The line that contains the whole piece belongs to one before.
        if first + filled < table.end:
            raise BadLine(first, TOO_LONG)
        begin = filled
    end = filled if end is None else end
    begin = min(begin, end)
    buffer[end : end + PADDING] = 0
    return first + begin, end - begin, buffer[begin:]


def _fill(table: TextTable, raw: IO[bytes], buffer: np.ndarray, first: int, filled: int, size: int) -> int:
    """Read up to buffer[:size], of which `filled` bytes are there."""
    view = buffer.data
    while filled < size:
        count = raw.readinto(view[filled:size])  # type: ignore[attr-defined]
        if not count:
            raise InputError(f"{table.path} ended at byte {first + filled} while being read: it has changed")
        filled += count
    return size


def _next_line(buffer: np.ndarray, at: int, filled: int) -> int | None:
    """Return where a line begins after the first end of a line from `at` on."""
    found = _END_OF_LINE.search(buffer.data, at, filled)
    return None if found is None else found.end()
