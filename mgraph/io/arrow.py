"""Arrow files, which Feather (version 2) files are too; read by pyarrow, which the extra `io` installs.

The columns are found as those of Parquet files. A piece is a run of record batches, of some PIECE_BYTES of the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, Labels
from mgraph.errors import InputError, MgraphError, UnknownFormat
from mgraph.io.arrow_columns import chunked, decoded
from mgraph.io.checks import check_num_vertices
from mgraph.io.columns import NO_COLUMNS, Columns, find_columns
from mgraph.io.input_file import Identity, InputFile, identity, release
from mgraph.io.parquet import as_end, check_types, declared_in
from mgraph.io.pieces import edge_piece
from mgraph.io.pyarrow_module import require_pyarrow
from mgraph.io.ranges import changed, num_bytes_of, opened
from mgraph.io.samples import LABEL_PLACES, PLACES, ROWS, LabelSample, kept_with_table, largest_of, places

PIECE_BYTES = 32 << 20
# Record batches up to this size are read to estimate the number of rows.
SAMPLE_BYTES = 16 << 20
# The offset of a string.
OFFSET_BYTES = 4
MAGIC = b"ARROW1"
FEATHER_1 = b"FEA1"
STREAM = b"\xff\xff\xff\xff"


@dataclass(frozen=True)
class ArrowTable:
    """A file as a table: the names of its columns, and its record batches."""

    path: InputFile
    columns: tuple[str, ...]  # the ends, and the weight if there is one
    num_vertices: int | None
    directed: bool
    row_bytes: int  # the least that a row takes, uncompressed
    num_batches: int
    piece_batches: int  # record batches of a piece
    is_text: bool
    labels: Labels = "auto"
    base: int = 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def has_weights(self) -> bool:
        return len(self.columns) > 2

    @property
    def max_edges(self) -> int:
        """The number of edges as some record batches suggest it."""
        return _expected(self, identity(self.path.stat()))[0]

    @property
    def text_bytes(self) -> int | None:
        """The bytes of all ids of both ends, estimated in the same way; None if these are numbers."""
        rows, found, _ = _expected(self, identity(self.path.stat()))
        return found.text_bytes(rows) if isinstance(found, LabelSample) else found

    def label_sample(self, most: int = LABEL_PLACES) -> LabelSample | None:
        """Return the ids in these batches; None if these are numbers, or not read."""
        found = _expected(self, identity(self.path.stat()))[1]
        return found if isinstance(found, LabelSample) else None

    @property
    def expected_vertices(self) -> int | None:
        """The number of vertices as ids in these batches suggest it; None if these are strings, or not read."""
        return _expected(self, identity(self.path.stat()))[2]

    @property
    def num_pieces(self) -> int:
        return max(1, -(-self.num_batches // self.piece_batches))

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        first = k * self.piece_batches
        with _opened(self.path) as (pyarrow, reader):
            if reader.num_record_batches != self.num_batches or not set(self.columns) <= set(reader.schema.names):
                raise changed(self.path, f"it has {reader.num_record_batches} record batches")
            last = min(first + self.piece_batches, self.num_batches)
            batches = [_batch(self.path, reader, number) for number in range(first, last)]
            table = pyarrow.Table.from_batches(batches, reader.schema)
        rows = np.cumsum([0, *(batch.num_rows for batch in batches)])
        where = partial(_where, self.path, first, rows)
        columns = [_complete(decoded(table.column(name)), name, where) for name in self.columns]
        sources, targets = map(as_end, columns[:2])
        return edge_piece(sources, targets, columns[2].to_numpy() if self.has_weights else None, where)

    def release(self) -> None:
        release(self.path)


def read_arrow(
    file: InputFile,
    *,
    columns: Columns = NO_COLUMNS,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
    base: int = 0,
) -> ArrowTable:
    """Look at the columns of a file and return it as a table.

    `columns` are as in a text file.
    """
    size = _size(file)
    with _opened(file) as (pyarrow, reader):
        schema = reader.schema
        names = schema.names
        num_batches = reader.num_record_batches
        about = declared_in(file, schema)
    directed = bool(about.get("directed")) if directed is None else directed
    *ends, weighted = find_columns(file, columns, len(names), names, directed)
    chosen = tuple(names[k] for k in (*ends, weighted) if k >= 0)
    is_text = check_types(file, schema, chosen, labels)
    n = check_num_vertices(about.get("num_vertices") if num_vertices is None else num_vertices)
    row_bytes = sum(_least_bytes(pyarrow, field.type) for field in schema if field.name in chosen)
    per_piece = max(1, num_batches * PIECE_BYTES // max(size, 1))
    return ArrowTable(file, chosen, n, directed, row_bytes, num_batches, per_piece, is_text, labels, base)


def _size(file: InputFile) -> int:
    with opened(file) as raw:
        return num_bytes_of(raw)


def _least_bytes(pyarrow: Any, kind: Any) -> int:
    """Return the bytes of a value without those of its string."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.index_type
    return kind.bit_width // 8 if pyarrow.types.is_primitive(kind) else OFFSET_BYTES


@kept_with_table
def _expected(table: ArrowTable, _: Identity) -> tuple[int, LabelSample | int | None, int | None]:
    """Return rows, strings or their bytes, and vertices by some batches; large ones are not read twice."""
    if not table.num_batches:
        return (0, LabelSample.of(()), None) if table.is_text else (0, None, 0)
    if _size(table.path) > table.num_batches * SAMPLE_BYTES:
        return _bounds(table)
    most = rows = 0
    top = -1
    strings: list[Sequence[Any]] = []
    try:
        with _opened(table.path) as (_, reader):
            for number in places(table.num_batches - 1):
                batch = _batch(table.path, reader, number)
                ends = [as_end(decoded(chunked(batch.column(name)))) for name in table.columns[:2]]
                most = max(most, batch.num_rows)
                rows += batch.num_rows
                if table.is_text:
                    strings.append(tuple(end[: min(len(end), ROWS)] for end in ends))
                top = max(top, largest_of(ends))
    except (InputError, KeyError):
        # Found again, and reported, when the batch is read.
        return _bounds(table)
    expected = most * table.num_batches if table.num_batches > PLACES else rows
    if table.is_text:
        return expected, LabelSample.of(strings), None
    return expected, None, top + 1 - table.base


def _bounds(table: ArrowTable) -> tuple[int, int | None, int | None]:
    """Return the rows, and a bound of the bytes of strings if these are neither compressed nor in a dictionary."""
    size = _size(table.path)
    rows = size // table.row_bytes + 1
    with contextlib.suppress(InputError), _opened(table.path) as (_, reader):
        # Older pyarrow cannot count without reading everything.
        rows = reader.count_rows() if hasattr(reader, "count_rows") else rows
    return rows, max(size - rows * table.row_bytes, rows) if table.is_text else None, None


@contextlib.contextmanager
def _opened(file: InputFile) -> Iterator[tuple[Any, Any]]:
    """Open a file with pyarrow; what is wrong with it raises InputError."""
    pyarrow = require_pyarrow(f"{file} is an Arrow file, which needs", "ipc")
    with opened(file) as raw:
        first = raw.read(len(MAGIC))
        raw.seek(0)
        if not first.startswith(MAGIC):
            _refuse(file, first)
        try:
            yield pyarrow, pyarrow.ipc.open_file(pyarrow.PythonFile(raw, mode="r"))
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, MgraphError):
                raise
            raise InputError(f"{file} is no Arrow file, or truncated or damaged: {error}") from None


def _refuse(file: InputFile, first: bytes) -> None:
    if first.startswith(FEATHER_1):
        raise UnknownFormat(f"{file} is of Feather's version 1: pyarrow.feather reads it, and writes version 2")
    if first.startswith(STREAM):
        raise UnknownFormat(
            f"{file} is a stream of Arrow, which has no index: pyarrow.ipc.open_stream reads it, and "
            "pyarrow.feather.write_feather writes a file"
        )
    raise InputError(f"{file} does not begin as Arrow files do, with ARROW1: truncated?")


def _batch(file: InputFile, reader: Any, number: int) -> Any:
    """Return a record batch; its buffers are checked, as a damaged one may lead beyond them."""
    try:
        batch = reader.get_batch(number)
    except MemoryError as error:
        if str(error):
            raise
        # Before version 24 pyarrow asks Python for as many bytes as a damaged header says.
        raise InputError(f"{file}: record batch {number} needs more memory than there is: is it damaged?") from None
    batch.validate(full=True)
    return batch


def _complete(column: Any, name: str, where: Any) -> Any:
    """Return a column; refuse missing values."""
    if column.null_count:
        raise InputError(f"{where(int(np.argmax(column.is_null().to_numpy())))}: {name} is missing")
    return column


def _where(file: InputFile, first: int, rows: np.ndarray, i: int) -> str:
    """Name row i of the batches that begin with number `first`, of which `rows` are the first rows."""
    which = int(np.searchsorted(rows, i, "right")) - 1
    return f"{file}: row {i - rows[which]} of record batch {first + which}"
