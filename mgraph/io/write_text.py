"""Write tables as lines of text: CSV, TSV, and edges separated by blanks.

Numbers have all digits that reading needs to restore them, and a float is never written as an integer. Text is quoted
where a reader would take it for something else, by the rules of CSV. With pyarrow blocks of rows are formatted in
compiled code, by several threads; without it in Python, where some floats look otherwise (1e-07 for 1e-7).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from mgraph.errors import InputError
from mgraph.io.ahead import mapped_ahead
from mgraph.io.output_tables import Batch, Table, Values, as_objects, num_rows
from mgraph.io.write_arrow import to_arrow
from mgraph.labels.strings import Strings

# Rows formatted at a time: the text of one block fits the cache.
BLOCK_ROWS = 1 << 16
# What a string must not have unless it is quoted: separators, quotes, ends of lines, blanks, and signs of comments.
SPECIAL = rb'[\x00-\x20,;|"\'#%]'


def write_csv(file: BinaryIO, table: Table) -> None:
    """Write a line of names and a line for each row, separated by commas."""
    _write_separated(file, table, ",")


def write_tsv(file: BinaryIO, table: Table) -> None:
    """Write a line of names and a line for each row, separated by tabs."""
    _write_separated(file, table, "\t")


def _write_separated(file: BinaryIO, table: Table, separator: str) -> None:
    file.write((separator.join(table.columns) + "\n").encode())
    # Edges are written to be read again, in pieces that begin at any end of a line, as if none were in quotes.
    is_read_again = bool(table.edges is not None and table.strings)
    write_lines(file, table, separator, _of_one_line if is_read_again else None)


def _of_one_line(batch: Batch) -> Batch:
    """Refuse strings with ends of lines, or with zero bytes, which no line of edges has."""
    for strings in (values.compact() for values in batch.values() if isinstance(values, Strings)):
        bad = (strings.data == ord("\n")) | (strings.data == ord("\r")) | (strings.data == 0)
        if bad.any():
            i = int(np.searchsorted(strings.offsets, bad.argmax(), "right")) - 1
            (label,) = strings[i : i + 1].tolist()
            raise InputError(
                f"vertex {label[:40]!r} has the end of a line or a zero byte in it, and edges are read as lines: "
                "write .parquet or .arrow instead"
            )
    return batch


def write_plain(file: BinaryIO, table: Table) -> None:
    """Write a line for each row, separated by blanks, without names."""
    if table.strings:
        raise InputError(
            "a file of plain lines holds numbers, and the vertices are strings: write .csv, .tsv, .parquet or .arrow"
        )
    write_lines(file, table, " ")


def compressed(write: Callable[[BinaryIO, Table], None]) -> Callable[[BinaryIO, Table], None]:
    """Return a writer of the same text, packed by gzip."""

    def write_packed(file: BinaryIO, table: Table) -> None:
        # Without a time or a name, so that equal tables make equal files. Level 1: more takes 3 times as long for 20 %.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=1, mtime=0) as packed:
            write(packed, table)  # type: ignore[arg-type]

    return write_packed


def write_lines(
    file: BinaryIO, table: Table, separator: str, convert: Callable[[Batch], Batch] | None = None, prefix: str = ""
) -> None:
    """Write a line for each row, after `convert` of each batch; every line begins with `prefix`."""
    blocks = _blocks(table.all_batches() if convert is None else map(convert, table.all_batches()))
    for text in mapped_ahead(partial(_formatter(), separator=separator, prefix=prefix), blocks):
        file.write(text)


def _blocks(batches: Iterator[Batch]) -> Iterator[list[Values]]:
    for batch in batches:
        rows = num_rows(batch)
        for lo in range(0, rows, BLOCK_ROWS):
            yield [values[lo : min(lo + BLOCK_ROWS, rows)] for values in batch.values()]


def _formatter() -> Callable[..., Any]:
    try:
        import pyarrow.compute  # noqa: F401
    except ImportError:
        return _format_in_python
    return _format_by_arrow


def _format_by_arrow(columns: Sequence[Values], separator: str, prefix: str) -> Any:
    """Return the lines of a block, made by pyarrow."""
    import pyarrow
    import pyarrow.compute as compute

    text = partial(pyarrow.scalar, type=pyarrow.large_string())
    fields = [_arrow_field(pyarrow, compute, values) for values in columns]
    fields[0] = compute.binary_join_element_wise(text(prefix), fields[0], text("")) if prefix else fields[0]
    fields[-1] = compute.binary_join_element_wise(fields[-1], text("\n"), text(""))
    lines = compute.binary_join_element_wise(*fields, text(separator))
    # Arrow stores the lines one after another: their bytes are the text.
    _, offsets, text_of_lines = lines.buffers()
    return text_of_lines.slice(0, int(np.frombuffer(offsets, np.int64)[len(lines)]))


def _arrow_field(pyarrow: Any, compute: Any, values: Values) -> Any:
    """Return a column as strings, quoted where needed."""
    text = partial(pyarrow.scalar, type=pyarrow.large_string())
    if isinstance(values, Strings):
        column = to_arrow(pyarrow, values)
        special = compute.match_substring_regex(column, SPECIAL.decode())
        odd = compute.or_(special, compute.equal(compute.binary_length(column), 0))
        if not compute.any(odd).as_py():
            return column
        doubled = compute.replace_substring(column, '"', '""')
        return compute.if_else(odd, compute.binary_join_element_wise(text('"'), doubled, text('"'), text("")), column)
    if values.dtype.kind != "f":
        return compute.cast(pyarrow.array(values), pyarrow.large_string())
    # Readers parse text as float64: a float32 needs the digits that restore it there.
    exact = values.astype(np.float64, copy=False)
    column = compute.cast(pyarrow.array(exact), pyarrow.large_string())
    if not (np.trunc(exact) == exact).any():
        return column
    bare = compute.match_substring_regex(column, r"^-?\d+$")
    return compute.if_else(bare, compute.binary_join_element_wise(column, text(".0"), text("")), column)


def _format_in_python(columns: Sequence[Values], separator: str, prefix: str) -> bytes:
    """Return the lines of a block, made without pyarrow."""
    fields = [map(_field, as_objects(values).tolist()) for values in columns]
    lines = map(separator.join, zip(*fields, strict=True))
    return "".join(f"{prefix}{line}\n" for line in lines).encode()


def _field(value: Any) -> str:
    if value is None:
        return '""'
    if not isinstance(value, str):
        return str(value)
    if value and not re.search(SPECIAL, value.encode()):
        return value
    return '"' + value.replace('"', '""') + '"'
