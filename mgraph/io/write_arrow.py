"""Write Parquet and Arrow (Feather) files by pyarrow, a row group or record batch at a time."""

from __future__ import annotations

import itertools
import json
from typing import Any, BinaryIO

import numpy as np

from mgraph.io.output_tables import Batch, Table, Values, num_rows
from mgraph.io.pyarrow_module import require_pyarrow
from mgraph.labels.strings import Strings

# Strings of a column that are compressed first, and the share of their bytes that may be left.
SAMPLE_BYTES = 1 << 16
WORTH_COMPRESSING = 0.8


def write_parquet(file: BinaryIO, table: Table) -> None:
    """Write a table as Parquet, one row group for each batch; edges with the metadata `mgraph`."""
    arrow = require_pyarrow("Parquet needs", "parquet")

    schema = _schema(arrow, table)
    # A vertex has one row: a dictionary of vertices would take a third of the time, in vain.
    repeated = [name for name in table.columns if name != "vertex"]
    batches = filter(num_rows, table.all_batches())
    first = next(batches, {})
    compression = {name: "snappy" if _shrinks(arrow, first.get(name)) else "none" for name in table.columns}
    with arrow.parquet.ParquetWriter(file, schema, use_dictionary=repeated, compression=compression) as writer:
        for batch in itertools.chain([first] if first else [], batches):
            writer.write_table(arrow.Table.from_arrays(_columns(arrow, batch, table), schema=schema))


def _shrinks(arrow: Any, values: Values | None) -> bool:
    """Return whether values are worth compressing: all but strings such as UUIDs and hashes, as the first of them say.

    Snappy takes half of the time of writing strings of 16 hexadecimal digits, which become no shorter.
    """
    if not isinstance(values, Strings):
        return True
    begin = int(values.offsets[0])
    sample = values.data[begin : min(begin + SAMPLE_BYTES, int(values.offsets[-1]))].tobytes()
    return len(arrow.compress(sample, codec="snappy", asbytes=True)) < WORTH_COMPRESSING * len(sample)


def write_arrow(file: BinaryIO, table: Table) -> None:
    """Write a table as an Arrow file (Feather 2), uncompressed, so that it can be mapped into memory."""
    arrow = require_pyarrow("Arrow needs", "ipc")
    schema = _schema(arrow, table)
    with arrow.ipc.new_file(file, schema) as writer:
        for batch in filter(num_rows, table.all_batches()):
            writer.write_batch(arrow.RecordBatch.from_arrays(_columns(arrow, batch, table), schema=schema))


def _schema(arrow: Any, table: Table) -> Any:
    fields = [
        (name, arrow.large_string() if kind is None else arrow.from_numpy_dtype(kind))
        for name, kind in table.columns.items()
    ]
    about = {}
    if table.edges is not None:
        facts = {"num_vertices": table.edges.num_vertices, "directed": table.edges.directed}
        about["mgraph"] = json.dumps({name: fact for name, fact in facts.items() if fact is not None})
    if table.missing:
        about["pandas"] = json.dumps(_for_pandas(table))
    return arrow.schema(fields, metadata=about)


def _for_pandas(table: Table) -> dict:
    """Return metadata by which pandas reads integers with nulls as such: by default they become floats, which round."""
    kinds = [(name, str(kind)) for name, kind in table.columns.items() if name in table.missing]
    nullable = {"int64": "Int64", "uint64": "UInt64"}
    columns = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": nullable[kind], "metadata": None}
        for name, kind in kinds
    ]
    return {"index_columns": [], "columns": columns, "column_indexes": []}


def _columns(arrow: Any, batch: Batch, table: Table) -> list:
    """Return the columns of a batch as Arrow arrays, with nulls for missing values."""
    return [_with_nulls(arrow, values, table.missing.get(name)) for name, values in batch.items()]


def _with_nulls(arrow: Any, values: Values, missing: int | None) -> Any:
    """Return a column as an Arrow array with nulls for an integer, and for empty strings: no label is empty."""
    if not isinstance(values, Strings):
        return arrow.array(values, mask=None if missing is None else values == missing)
    column = to_arrow(arrow, values)
    if (there := values.lengths > 0).all():
        return column
    bitmap = arrow.py_buffer(np.packbits(there, bitorder="little"))
    _, offsets, data = column.buffers()
    return arrow.LargeStringArray.from_buffers(len(values), offsets, data, bitmap)


def to_arrow(arrow: Any, values: Values) -> Any:
    """Return a column as an Arrow array."""
    if not isinstance(values, Strings):
        return arrow.array(values)
    offsets = arrow.py_buffer(np.ascontiguousarray(values.offsets, np.int64))
    data = arrow.py_buffer(np.ascontiguousarray(values.data))
    return arrow.LargeStringArray.from_buffers(len(values), offsets, data)
