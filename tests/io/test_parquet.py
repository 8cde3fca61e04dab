"""Read Parquet files: mgraph's own, and any others with two columns of vertices."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from edge_checks import BACKEND, as_rows, assert_chunks_agree, read_edges, whole

from mgraph.comm.threads import open_threads
from mgraph.errors import InputError, UsageError
from mgraph.generate.rmat import Rmat
from mgraph.generate.uniform import FixedOutDegree
from mgraph.ingest.read import read_table
from mgraph.io import output_tables, write
from mgraph.io.formats import read_source

EDGES = {"u": [0, 1, 2, 5], "v": [1, 2, 0, 0], "w": [0.5, 1.5, 2.5, 0.0]}


def save(path, columns, **options):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


@pytest.mark.parametrize("source", [Rmat(6), Rmat(5, weights="float64"), FixedOutDegree(90, 3, weights=None)])
def test_written_edges_are_read_back(tmp_path, source, monkeypatch):
    monkeypatch.setattr(output_tables, "BATCH_ROWS", 50)  # several row groups
    path = tmp_path / "graph.parquet"
    write.write_edges(path, source)
    table = read_source(path)
    assert pickle.loads(pickle.dumps(table)) == table
    back = read_edges(path)
    assert (back.name, back.num_vertices, back.directed) == ("graph", source.num_vertices, source.directed)
    assert back.weight_dtype == source.weight_dtype
    assert as_rows(whole(back)) == as_rows(whole(source))
    assert_chunks_agree(back)


@pytest.mark.parametrize("groups", [1, 3, 100])
def test_columns_are_found_by_number_or_name(tmp_path, groups):
    path = save(tmp_path / "a.parquet", EDGES, row_group_size=groups)
    edges = list(zip(*EDGES.values(), strict=True))
    source = read_edges(path)
    assert (source.num_vertices, source.directed, source.weight_dtype) == (6, False, np.float64)
    assert as_rows(whole(source)) == edges
    assert_chunks_agree(source)
    assert as_rows(whole(read_edges(path, weight=False))) == [edge[:2] for edge in edges]
    assert read_edges(path, num_vertices=9, directed=True).num_vertices == 9
    more = {"length": [7, 8, 9, 1], "target": EDGES["v"], "w": EDGES["w"], "source": EDGES["u"]}
    path = save(tmp_path / "b.dat", more)
    assert as_rows(whole(read_edges(path))) == edges
    lengths = as_rows(whole(read_edges(path, weight="length")))
    assert lengths == [(u, v, length) for (u, v, _), length in zip(edges, more["length"], strict=True)]


def test_frames_and_files_without_rows_are_read(tmp_path):
    pandas.DataFrame(EDGES, index=[4, 5, 6, 7]).to_parquet(tmp_path / "frame.parquet")
    assert len(whole(read_edges(tmp_path / "frame.parquet", weight="w"))) == 4
    empty = save(tmp_path / "empty.parquet", {"u": np.empty(0, np.int64), "v": np.empty(0, np.int64)})
    source = read_edges(empty, num_vertices=3)
    assert (source.num_vertices, source.num_input_edges) == (3, 0)
    assert len(source.chunk(0, 1, BACKEND)) == 0


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"u": [0]}, InputError, "has the columns u, and no two of them are known as the ends"),
        ({"u": [0, 1, -7], "v": [1, 1, 1]}, InputError, "row 2: vertex -7 is negative"),
        ({"u": [0, 1], "v": [1, None]}, InputError, "v of row 1 is missing"),
        ({"u": [0.0, 1.0], "v": [1, 2]}, InputError, "u is double, and ids are integers or strings: cast"),
        ({"u": ["a", "b"], "v": [1, 2]}, InputError, "u is string and v int64: both ends are of one kind"),
        ({"u": [[0], [1]], "v": [1, 2]}, InputError, "u is list<.*>, and ids are integers or strings: cast"),
        ({"u": ["a", None], "v": ["a", "b"]}, InputError, "u of row 1 is missing"),
        ({"u": [0, 1], "v": [1, 2], "w": [1.0, np.inf]}, InputError, "w of row 1 = inf is not a finite number"),
        (
            {"u": [0, 1], "v": [1, 2], "w": pyarrow.array([1, 2**63], pyarrow.uint64())},
            InputError,
            "w of row 1 = 9223372036854775808 is beyond 64 signed bits",
        ),
        (
            {"u": [0], "v": [1], "w": pyarrow.array([2**63], pyarrow.decimal128(20))},
            InputError,
            r"w is decimal128\(20, 0\), and weights are integers or floats: cast the column, as to float64",
        ),
        ({"u": [0, 1], "v": [1, 2], "w": ["x", "y"]}, InputError, "w is string, and weights are integers or floats"),
        ({"u": [0, 1], "v": [1, 2], "w": [{"x": 1}] * 2}, InputError, "w is struct<.*>, and weights are integers"),
        (
            {"u": [0, 1], "v": [1, 2], "w": pyarrow.array(["x", "y"]).dictionary_encode()},
            InputError,
            "w is dictionary<.*>, and weights are integers or floats",
        ),
        ({"u": [0], "v": [1], "a": [1], "b": [1]}, UsageError, r"4 columns \(u, v, a, b\): say which is the weight"),
    ],
)
def test_invalid_edges_are_refused(tmp_path, columns, error, message):
    with pytest.raises(error, match=message):
        read_edges(save(tmp_path / "bad.parquet", columns, row_group_size=2))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_integers_are_no_strings_of_a_text(tmp_path, suffix):
    write = {"parquet": pyarrow.parquet.write_table, "arrow": pyarrow.feather.write_feather}[suffix]
    write(pyarrow.table({"u": [1], "v": [2]}), tmp_path / f"a.{suffix}")
    with pytest.raises(UsageError, match="u is int64, and labels='string' is for ids of a text: labels=True maps"):
        read_source(tmp_path / f"a.{suffix}", labels="string")


UUIDS = pyarrow.array([bytes(16)] * 2, pyarrow.binary(16))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (UUIDS, r"u is fixed_size_binary\[16\], and ids are .*: write its bytes as text, as value\.hex\(\) does"),
        (pyarrow.array([1, 2], pyarrow.decimal128(20)), r"u is decimal128\(20, 0\), .*: cast the column to int64 if"),
        (pyarrow.array([1, 2], pyarrow.date32()), r"u is date32\[day\], .*: cast the column to int64 or to strings"),
        (pyarrow.array([True, False]), "u is bool, and ids are integers or strings: cast the column"),
        (pyarrow.array([0.5, 1.0]).dictionary_encode(), "u is (dictionary<values=)?double.*: cast the column"),
        (pyarrow.nulls(2), "u is null, and ids are integers or strings"),
        (pyarrow.array([b"ok", b"\xff"]), r"row 1.*: b'\\xff' is not UTF-8"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pyarrow.Array) else "",
)
def test_columns_of_other_types_say_what_to_do(tmp_path, suffix, ids, message):
    table = pyarrow.table({"u": ids, "v": pyarrow.array(["a", "b"])})
    path = tmp_path / f"a.{suffix}"
    if suffix == "arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    with pytest.raises(InputError, match=message):
        read_table(read_source(path), BACKEND, open_threads(1)[0])


def test_damaged_file_is_refused(tmp_path):
    path = save(tmp_path / "a.parquet", EDGES)
    data = path.read_bytes()
    for damaged in (data[:-10], data[: len(data) // 2], b"PAR1 and no more"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.parquet is no Parquet file, or truncated"):
            read_edges(path)
    with pytest.raises(UsageError, match="no column 'length', only u, v, w"):
        read_edges(save(path, EDGES), weight="length")
    with pytest.raises(InputError, match=r"row 3: vertex 5 is not in 0\.\.4"):
        read_edges(path, num_vertices=5)
    for about in (b"nonsense", b"[1]", b'{"num_vertices": -1}', b'{"num_vertices": "6"}'):
        table = pyarrow.table(EDGES).replace_schema_metadata({"mgraph": about})
        pyarrow.parquet.write_table(table, path)
        with pytest.raises(InputError, match="have no valid number of vertices"):
            read_edges(path)


def test_missing_pyarrow_is_reported_with_how_to_install_it(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet", EDGES)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="Parquet needs pyarrow: pip install pyarrow"):
        read_edges(path)


STRING_TYPES = (
    pyarrow.string(),
    pyarrow.large_string(),
    pyarrow.binary(),
    pyarrow.large_binary(),
    pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string()),
)


@pytest.mark.parametrize("kind", STRING_TYPES, ids=str)
@pytest.mark.parametrize("groups", [1, 3, 100])
def test_strings_are_read_without_objects(tmp_path, kind, groups):
    names = ["ab", "", "ü", "c" * 50, "ab", "zz"]
    columns = {"u": pyarrow.array(names, pyarrow.string()).cast(kind), "v": pyarrow.array(names[::-1]).cast(kind)}
    table = read_source(save(tmp_path / "a.parquet", columns, row_group_size=groups))
    pieces = [table.piece(k, BACKEND) for k in range(table.num_pieces)]
    assert [name for piece in pieces for name in piece.sources.tolist()] == names
    assert [name for piece in pieces for name in piece.targets.tolist()] == names[::-1]
    empty = read_source(save(tmp_path / "b.parquet", {name: column[:0] for name, column in columns.items()}))
    assert len(empty.piece(0, BACKEND)) == 0


def test_columns_are_named_or_numbered(tmp_path):
    path = save(tmp_path / "a.parquet", {"n": [9, 9], "b": [2, 3], "a": [0, 1]})
    for options in ({"source": "a", "target": "b"}, {"source": 2, "target": 1}, {"source": "2", "target": "b"}):
        assert as_rows(whole(read_edges(path, **options, weight=False))) == [(0, 2), (1, 3)]
        assert as_rows(whole(read_edges(path, **options, weight="n"))) == [(0, 2, 9), (1, 3, 9)]
    message = r"has the columns n, b, a, .*: give the columns as source= and target="
    with pytest.raises(InputError, match=message):
        read_edges(path)
    with pytest.raises(UsageError, match="give both ends of the edges, source= and target= "):
        read_edges(path, source="a")
    with pytest.raises(UsageError, match="source and target are the same column, 'a'"):
        read_edges(path, source="a", target=2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_of_every_width_are_ids(tmp_path, dtype):
    path = save(tmp_path / "a.parquet", {"u": np.array([0, 1], dtype), "v": np.array([2, 3], dtype)})
    assert as_rows(whole(read_edges(path))) == [(0, 2), (1, 3)]
