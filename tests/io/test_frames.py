"""Tables with named columns: the columns are chosen by name, whatever library made the table."""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow
import pytest
from memory_checks import ArrowStream, read_back

from mgraph.errors import InputError, UsageError
from mgraph.io.columns import Columns
from mgraph.io.frames import frame_table
from mgraph.io.memory import IdOptions, id_options

ROWS = {"dst": [1, 2, 0], "cost": [0.5, 1.5, 2.5], "src": [0, 1, 2]}
ARROW = pyarrow.table(ROWS)
TABLES = {
    "dict": ROWS,
    "pandas": pandas.DataFrame(ROWS),
    "arrow": ARROW,
    "batch": ARROW.to_batches()[0],
    "exported": ArrowStream(ARROW),
    "structured": np.array(list(zip(*ROWS.values(), strict=True)), [("dst", "i4"), ("cost", "f8"), ("src", "i8")]),
}
EDGES = 3, [(0, 1, 0.5), (1, 2, 1.5), (2, 0, 2.5)]


@pytest.mark.parametrize("kind", TABLES)
def test_columns_are_found_by_their_names(kind):
    assert read_back(frame_table(TABLES[kind], Columns(weight="cost"), IdOptions())) == EDGES
    swapped = frame_table(TABLES[kind], Columns("dst", "src", False), IdOptions())
    assert read_back(swapped) == (3, sorted((v, u) for u, v, _ in EDGES[1]))


def test_record_batches_are_read_as_they_come():
    table = pyarrow.table(ROWS)
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=1)))
    assert read_back(frame_table(reader, Columns(weight="cost"), IdOptions()), 2) == EDGES


def test_strings_of_a_frame_are_labels():
    frame = pandas.DataFrame({"a": ["x", "y"], "b": ["z", "x"]})
    assert read_back(frame_table(frame, Columns("a", "b"), IdOptions())) == (3, [("x", "z"), ("y", "x")])


class Unreadable:
    """A stand-in for a frame with a type that pyarrow does not know, as Polars' integers of 128 bits."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise pyarrow.ArrowInvalid("unsupported format string: '_pli128'")


@pytest.mark.parametrize(
    ("frame", "columns", "error", "message"),
    [
        (ROWS, Columns(), UsageError, r"the table has 3 columns \(dst, cost, src\): say which is the weight"),
        (
            {"a": [1], "b": [2], "c": [3]},
            Columns(),
            InputError,
            "the table has the columns a, b, c, and no two of them are known",
        ),
        (ROWS, Columns("src", "to"), UsageError, "the table has no column 'to', only dst, cost, src"),
        (ROWS, Columns("src"), UsageError, "give both ends"),
        ({"u": [1], "v": [None]}, Columns(), InputError, r"table: v\[0\] is missing, as are all others"),
        ({"u": [1.0], "v": [2]}, Columns(), InputError, "table: u are float64, not integers"),
        ({"u": [1, 2], "v": [2]}, Columns(), InputError, "there are 2 table: u and 1 table: v"),
        ({}, Columns(), InputError, "the table has no columns"),
        (
            Unreadable(),
            Columns(),
            InputError,
            "the table cannot be read by pyarrow: unsupported .*: leave out or cast the column",
        ),
        (5, Columns(), InputError, "int is no table with named columns"),
    ],
)
def test_wrong_table_is_refused(frame, columns, error, message):
    with pytest.raises(error, match=message):
        frame_table(frame, columns, IdOptions())


def test_wrong_id_is_named_by_its_row():
    with pytest.raises(InputError, match=r"table: row 1: vertex 9 is not in 0\.\.4"):
        read_back(frame_table({"u": [1, 9], "v": [2, 3]}, Columns(), id_options(5)))


def test_lazy_frame_is_refused_with_the_way_out():
    class LazyFrame:
        collect = collect_schema = None

    with pytest.raises(InputError, match=r"the table is a lazy LazyFrame: call its collect\(\) first"):
        frame_table(LazyFrame(), Columns(), IdOptions())
