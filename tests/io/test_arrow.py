"""Arrow and Feather files: record batches as pieces, columns by name, damage and missing values refused."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest
from edge_checks import BACKEND, read_edges
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, MgraphError, UnknownFormat, UsageError
from mgraph.io import arrow
from mgraph.io.formats import read_source

COLUMNS = {"weight": [5.0, 6, 7, 8, 9], "src": [0, 1, 2, 3, 4], "dst": [1, 2, 3, 4, 0]}
ROWS = [(k, (k + 1) % 5, k + 5.0) for k in range(5)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "g.arrow"


def save(path, columns, batch_rows=2, metadata=None, **options):
    table = pa.table(columns).replace_schema_metadata(metadata)
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch_rows)


@pytest.mark.parametrize("batch_rows", [1, 2, 5])
@pytest.mark.parametrize("piece_bytes", [1, 1 << 25])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_record_batches_are_pieces(path, monkeypatch, batch_rows, piece_bytes, compression):
    monkeypatch.setattr(arrow, "PIECE_BYTES", piece_bytes)
    save(path, COLUMNS, batch_rows, compression=compression)
    table = read_source(path)
    assert (table.name, table.directed, table.num_vertices, table.has_weights) == ("g", False, None, True)
    assert table.num_pieces == (-(-5 // batch_rows) if piece_bytes == 1 else 1)
    assert table.max_edges >= 5 or compression
    assert rows_of(table) == ROWS
    assert rows_in(path, weight=False) == [row[:2] for row in ROWS]


def test_feather_files_are_read(tmp_path):
    path = tmp_path / "g.feather"
    pyarrow.feather.write_feather(pa.table(COLUMNS), path)
    assert rows_in(path) == ROWS
    path.write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(UnknownFormat, match="is of Feather's version 1"):
        read_source(path)


def test_metadata_of_written_graphs_count(path):
    save(path, COLUMNS, metadata={"mgraph": '{"num_vertices": 9, "directed": true}'})
    table = read_source(path)
    assert (table.num_vertices, table.directed) == (9, True)


def test_stream_is_refused_with_what_to_do(path):
    table = pa.table(COLUMNS)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(UnknownFormat, match="is a stream of Arrow, which has no index"):
        read_source(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"src": [0, 1, 2, None, 4]}, "row 1 of record batch 1: src is missing"),
        ({"src": [0.0, 1, 2, 3, 4]}, "src is double, and ids are integers or strings: cast the column to int64 if"),
        ({"src": [0, 1, 2, 3, -4]}, "row 0 of record batch 2: vertex -4 is negative"),
        ({"weight": [1.0, 2, 3, np.nan, 4]}, "row 1 of record batch 1: weight = nan is not a finite number"),
        ({"cost": [1, 2, 3, 4, 5], "weight": None}, "has 3 columns"),
    ],
)
def test_wrong_columns_are_refused(path, changes, message):
    save(path, {name: column for name, column in (COLUMNS | changes).items() if column is not None})
    with pytest.raises(MgraphError, match=message):
        read_edges(path)


def test_damaged_file_is_refused_or_read(path):
    save(path, COLUMNS)
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"g\.arrow"):
            rows_in(path, format="arrow")
    random = np.random.default_rng(1)
    for _ in range(300):
        changed = bytearray(data)
        changed[random.integers(len(data))] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        try:
            rows_in(path, format="arrow")
        except MgraphError as error:
            assert str(path) in str(error)  # noqa: PT017  in a loop


def test_arrow_without_pyarrow(path, monkeypatch):
    save(path, COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="is an Arrow file, which needs pyarrow: pip install pyarrow"):
        read_source(path)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_ids_may_be_strings(path, kind):
    ends = {name: pa.array(column, pa.string()).cast(kind) for name, column in NAMES.items()}
    save(path, ends)
    piece = read_source(path).piece(0, BACKEND)
    assert [strings_of(ids) for ids in (piece.sources, piece.targets)] == list(NAMES.values())
    save(path, {"src": ends["src"], "dst": COLUMNS["dst"]})
    with pytest.raises(InputError, match=r"src is .* and dst int64: both ends are of one kind"):
        read_source(path)


def test_missing_value_in_a_dictionary_is_refused(path):
    for values in (["a", None], [7, None]):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(values))
        save(path, {"src": column, "dst": column})
        with pytest.raises(InputError, match="row 1 of record batch 0: src is missing"):
            read_edges(path)


NAMES = {"src": ["a", "", "ä", "a", "zz"], "dst": ["b", "a", "", "x", "y"]}


def strings_of(found):
    return [bytes(found.data[lo:hi]).decode() for lo, hi in zip(found.offsets[:-1], found.offsets[1:], strict=True)]
