"""Tables with named columns in memory: frames of pandas, Polars and cuDF, Arrow's tables, structured arrays, dicts.

`mgraph.io.columns` finds the ends of the edges and the weight among the names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgraph.errors import InputError
from mgraph.io.checks import refuse_lazy
from mgraph.io.columns import Columns, find_columns
from mgraph.io.memory import IdOptions, MemoryTable, columns_table
from mgraph.io.pyarrow_module import require_pyarrow

# Returns the columns of these numbers.
Choose = Callable[[Sequence[int]], list[Any]]


def frame_table(frame: Any, columns: Columns, how: IdOptions, *, name: str = "table", row: str = "row") -> MemoryTable:
    """Return a table of any library as a table of edges."""
    refuse_lazy(frame, "table")
    names, choose = columns_of(frame)
    chosen = choose_columns(names, columns, how, name)
    sources, targets, *weights = choose(chosen)
    titles = [f"{name}: {names[k]}" for k in chosen] + [""]
    return columns_table(
        sources,
        targets,
        weights[0] if weights else None,
        names=(titles[0], titles[1], titles[2]),
        name=name,
        row=f"{name}: {row}",
        how=how,
    )


def choose_columns(names: Sequence[str], columns: Columns, how: IdOptions, name: str) -> list[int]:
    """Return the numbers of the columns of the ends, and of the weight if there is one."""
    if not names:
        raise InputError(f"the {name} has no columns")
    found = find_columns(f"the {name}", columns, len(names), names, how.directed)
    return [k for k in found if k >= 0]


def columns_of(frame: Any) -> tuple[list[str], Choose]:
    """Return the names of the columns, and how to get some of them."""
    if isinstance(frame, dict):
        return _named(frame), lambda chosen: [list(frame.values())[k] for k in chosen]
    if isinstance(frame, np.ndarray) and frame.dtype.names:
        return list(frame.dtype.names), lambda chosen: [frame[frame.dtype.names[k]] for k in chosen]
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):  # pandas and cuDF
        return _named(frame.columns), lambda chosen: [frame.iloc[:, k] for k in chosen]
    if hasattr(frame, "column_names") and hasattr(frame, "column"):  # a table or a record batch of Arrow
        return _named(frame.column_names), lambda chosen: [frame.column(k) for k in chosen]
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(f"the table is a lazy {type(frame).__name__}: call its collect() first")
    if hasattr(frame, "__arrow_c_stream__"):  # a frame of Polars, a record batch reader
        return _of_stream(frame)
    raise InputError(
        f"{type(frame).__name__} is no table with named columns: give a DataFrame, an Arrow table or a dict of columns"
    )


def _named(names: Any) -> list[str]:
    return [name if isinstance(name, str) else str(name) for name in names]


def _of_stream(frame: Any) -> tuple[list[str], Choose]:
    """Return the columns of whatever exports record batches; of all batches only the chosen columns are kept."""
    pyarrow = require_pyarrow("tables of this kind need")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(frame)
    except pyarrow.ArrowException as error:
        raise InputError(f"the table cannot be read by pyarrow: {error}: leave out or cast the column") from None

    def choose(chosen: Sequence[int]) -> list[Any]:
        fields = [reader.schema.field(k) for k in chosen]
        batches = [pyarrow.record_batch([batch.column(k) for k in chosen], pyarrow.schema(fields)) for batch in reader]
        return pyarrow.Table.from_batches(batches, pyarrow.schema(fields)).columns

    return reader.schema.names, choose
