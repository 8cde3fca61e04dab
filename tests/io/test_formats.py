"""File formats: written edges are read back; readers are found by name or first bytes; no file is half-written."""

from __future__ import annotations

import gzip
import io
import pathlib
import pickle
import re
import sys
import types

import numpy as np
import pyarrow.parquet
import pytest
from binary_graphs import gap_bytes
from edge_checks import BACKEND, as_rows, assert_chunks_agree, edges_source, mkgraph_bytes, read_edges, whole

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.uniform import FixedOutDegree
from mgraph.io.formats import FORMATS, READERS, SUFFIXES, read_source
from mgraph.io.write import write_columns, write_edges

SOURCES = [
    Rmat(8, edge_factor=4),
    Rmat(7, weights=None),
    Grid(9, 12, weights="float32"),
    FixedOutDegree(100, 3),
    edges_source([0, 3, 3], [1, 2, 2], [0.1, 1e-30, 2.5], num_vertices=9),
    edges_source([], [], num_vertices=4),
]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_written_edges_are_read_back(tmp_path, source, suffix):
    path = tmp_path / f"graph{suffix}"
    write_edges(path, source)
    back = read_edges(path, num_vertices=source.num_vertices, directed=source.directed)
    assert as_rows(whole(back)) == as_rows(whole(source))
    assert_chunks_agree(back)
    if suffix == ".npz":
        kept = read_edges(path)
        assert (kept.num_vertices, kept.directed) == (source.num_vertices, source.directed)
        assert kept.weight_dtype == source.weight_dtype
        assert kept.name == "graph"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("source", [Rmat(8), Rmat(8, weights="float32"), Grid(20, 30)], ids=lambda source: source.name)
def test_csr_files_equal_those_of_mkgraph(tmp_path, source):
    path = tmp_path / "graph.csr"
    write_edges(path, source)
    assert path.read_bytes() == mkgraph_bytes(source)
    back = read_edges(path)
    assert (back.num_vertices, back.weight_dtype, back.directed) == (source.num_vertices, np.float32, False)
    assert_chunks_agree(back)
    again = tmp_path / "again.csr"
    write_edges(again, back)
    assert again.read_bytes() == path.read_bytes()
    assert read_edges(path, weight=False).weight_dtype is None
    table = read_source(path)
    assert pickle.loads(pickle.dumps(table)) == table


def test_csr_of_a_directed_graph_keeps_the_lightest_arc(tmp_path):
    path = tmp_path / "graph.csr"
    write_edges(path, edges_source([1, 1, 0, 2], [0, 0, 1, 2], [5, 3, 4, 1], num_vertices=5, directed=True))
    back = read_edges(path)
    assert back.directed
    assert as_rows(whole(back)) == [(0, 1, 4.0), (1, 0, 3.0)]
    write_edges(path, edges_source([1], [0], directed=True))
    assert as_rows(whole(read_edges(path))) == [(1, 0)]


def test_csr_refuses_weights_that_are_not_float32(tmp_path):
    for weight in (2**24 + 1, 2**53 + 1, 2**63 - 1, 0.1, 1e300):
        with pytest.raises(InputError, match=re.escape(f"weight {weight} is no float32")):
            write_edges(tmp_path / "graph.csr", edges_source([0], [1], [weight]))
    assert not list(tmp_path.iterdir())
    for weight in (2**24, 2**62, -(2**63), 2.0**100):
        write_edges(tmp_path / "graph.csr", edges_source([0], [1], [weight]))
        assert whole(read_edges(tmp_path / "graph.csr")).weights.tolist() == [weight] * 2


def test_csr_refuses_damaged_files(tmp_path):
    path = tmp_path / "graph.csr"
    write_edges(path, Rmat(5))
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    with pytest.raises(InputError, match=rf"is {len(data) - 4} bytes, but 32 vertices and \d+ arcs need {len(data)}"):
        read_edges(path)
    path.write_bytes(data[:20])
    with pytest.raises(InputError, match=r"does not begin as a \.csr file does"):
        read_edges(path)
    offsets = bytearray(data)
    offsets[40:48] = (2**40).to_bytes(8, "little")
    path.write_bytes(offsets)
    with pytest.raises(InputError, match=r"offsets\[2\] = \d+ is below .*offsets\[1\] = 1099511627776"):
        read_edges(path)
    targets = bytearray(data)
    targets[32 + 8 * 33 : 32 + 8 * 33 + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(targets)
    with pytest.raises(InputError, match=r"graph\.csr: arc 0: vertex 4294967295 is not in 0\.\.31"):
        read_edges(path).chunk(0, 1, BACKEND)
    path.write_bytes(data[:-4] + np.float32(np.nan).tobytes())
    with pytest.raises(InputError, match=r"graph\.csr: arc \d+: weight = nan is not a finite number"):
        whole(read_edges(path))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_is_read_compressed_or_not(tmp_path, save):
    path = tmp_path / "graph.npz"
    save(path, sources=[0, 1, 2], targets=[1, 2, 0], weights=[5, 6, 7], length=[0.5, 1, 2])
    source = read_edges(path)
    assert as_rows(whole(source)) == [(0, 1, 5), (1, 2, 6), (2, 0, 7)]
    assert_chunks_agree(source)
    assert as_rows(whole(read_edges(path, weight="length"))) == [(0, 1, 0.5), (1, 2, 1.0), (2, 0, 2.0)]
    assert whole(read_edges(path, weight=False)).weights is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": [1]}, "has no array 'sources', only a"),
        ({"sources": [0]}, "has no array 'targets', only sources"),
        ({"sources": [0], "targets": [0, 1]}, "has 1 sources and 2 targets"),
        ({"sources": [0.0], "targets": [1.0]}, "sources are float64, not integers"),
        ({"sources": [0], "targets": [5], "num_vertices": 5}, r"edge 0: vertex 5 is not in 0\.\.4"),
        ({"sources": [0], "targets": [1], "weights": [np.nan]}, "edge 0: weight = nan is not a finite number"),
        (
            {"sources": [0], "targets": [1], "weights": np.array([2**63], np.uint64)},
            "edge 0: weight = 9223372036854775808 is beyond 64 signed bits",
        ),
        ({"sources": [0], "targets": [1], "num_vertices": [5, 6]}, "num_vertices must be one integer"),
        ({"sources": [0], "targets": [1], "num_vertices": -1}, r"graph\.npz: num_vertices is -1, which is not a count"),
    ],
)
def test_npz_refuses_wrong_arrays(tmp_path, arrays, message):
    path = tmp_path / "graph.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_edges(path)


def test_npz_refuses_damaged_or_missing_arrays(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, sources=[0], targets=[1])
    with pytest.raises(UsageError, match="has no array 'cost' of weights, only sources, targets"):
        read_edges(path, weight="cost")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="is no NumPy archive, or truncated"):
        read_edges(path)


def test_format_is_found_by_first_bytes(tmp_path):
    write_edges(tmp_path / "a.csr", Rmat(4))
    write_edges(tmp_path / "b.npz", Rmat(4))
    (tmp_path / "c.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    for name in ("a.csr", "b.npz", "c.mtx"):
        path = (tmp_path / name).rename(tmp_path / f"{name[0]}.dat")
        assert read_edges(path).num_vertices in (2, 16)
    (tmp_path / "d.dat").write_text("0 1\n")
    with pytest.raises(UnknownFormat, match=r"d.dat is of no format known by name \(.*\.parquet.*\.txt, \.el.*\)"):
        read_edges(tmp_path / "d.dat")
    assert len(whole(read_edges(tmp_path / "d.dat", format="text"))) == 1
    assert set(SUFFIXES.values()) <= set(READERS)


def test_path_that_is_not_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.csv: no such file"):
        read_edges(tmp_path / "none.csv")
    with pytest.raises(UsageError, match=r"format 'gml' is not one of mtx, npz, parquet, .*text"):
        read_edges(tmp_path / "a.gml", format="gml")


def test_standard_input_is_read_once(monkeypatch, tmp_path):
    write_edges(tmp_path / "a.npz", Rmat(4))
    for data, edges in ((b"0 1 5\n1 2 6\n", 2), (gzip.compress(b"0 1\n"), 1), ((tmp_path / "a.npz").read_bytes(), 256)):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))
        source = read_edges("-", weight=2 if b" 5" in data else None)
        assert source.name == "stdin"
        assert len(whole(source)) == edges
        assert_chunks_agree(source)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_parquet_edges(tmp_path, source):
    path = tmp_path / "graph.parquet"
    write_edges(path, source)
    table = pyarrow.parquet.read_table(path)
    edges = whole(source)
    columns = [edges.sources, edges.targets] + ([] if edges.weights is None else [edges.weights])
    assert table.column_names == ["source", "target", "weight"][: len(columns)]
    for found, expected in zip(table.columns, columns, strict=True):
        np.testing.assert_array_equal(found.to_numpy(), expected)
        assert found.to_numpy().dtype == expected.dtype
    about = table.schema.metadata[b"mgraph"].decode()
    assert f'"num_vertices": {source.num_vertices}' in about


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for write in (lambda path: write_edges(path, Rmat(3)), lambda path: write_columns(path, {"a": [1]})):
        with pytest.raises(UsageError, match="Parquet needs pyarrow: pip install pyarrow"):
            write(tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_written_columns_are_read_back(tmp_path):
    columns = {"vertex": np.arange(4), "distance": np.array([0, 0.1, np.inf, 1e-30], np.float64)}
    for suffix in (".npz", ".csv", ".parquet"):
        write_columns(tmp_path / f"a{suffix}", columns)
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["distance"], columns["distance"])
    assert (tmp_path / "a.csv").read_text().split() == ["vertex,distance", "0,0.0", "1,0.1", "2,inf", "3,1e-30"]
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pydict()["vertex"] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="columns must be one-dimensional and equally long"):
        write_columns(tmp_path / "b.csv", {"a": [1], "b": [1, 2]})
    with pytest.raises(UsageError, match=r"'.csr' is not one of .npz, .csv, .csv.gz, .*parquet"):
        write_columns(tmp_path / "b.csr", columns)


class Breaks(Rmat):
    """Fails while it is written."""

    def chunk(self, k, num_chunks, backend):
        raise InputError("broken")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csr", ".parquet"])
def test_failed_write_leaves_no_file(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("old")
    with pytest.raises(InputError, match="broken"):
        write_edges(path, Breaks(4))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(path.name, "old")]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csr", ".parquet"])
def test_longest_file_name_can_be_written(tmp_path, suffix):
    path = tmp_path / f"{'a' * (255 - len(suffix))}{suffix}"
    write_edges(path, Rmat(4))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UsageError, match="File name too long"):
        write_edges(path.with_stem(path.stem + "a"), Rmat(4))


def test_unwritable_path_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"'.dat' is not one of .npz, .csv, .*parquet.*mtx"):
        write_edges(tmp_path / "a.dat", Rmat(3))
    with pytest.raises(UsageError, match="there is no folder"):
        write_edges(tmp_path / "none" / "a.csv", Rmat(3))
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        write_edges(tmp_path / "b.csv", Rmat(3))


def test_vertices_beyond_63_bits_are_refused(tmp_path):
    (tmp_path / "g.el").write_text("0 1\n")
    with pytest.raises(UsageError, match="num_vertices 99999999999999999999 is beyond 63 bits"):
        read_edges(tmp_path / "g.el", num_vertices=99999999999999999999)
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n" + 2 * "99999999999999999999 " + "0\n"
    )
    with pytest.raises(InputError, match=r"g\.mtx has 99999999999999999999 rows"):
        read_edges(tmp_path / "g.mtx")


def table_of_formats() -> str:
    """Return the table of docs/formats.md."""
    lines = ["| name | format | suffixes | begins with | weights | directed | first vertex |", "| --- " * 7 + "|"]
    for name, row in FORMATS.items():
        suffixes = " ".join(f"`{suffix}`" for suffix in row.suffixes)
        cells = [f"`{name}`", row.about, suffixes, row.begins, row.weights, row.directed, str(row.base)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_documents_list_every_format():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    assert table_of_formats() in text, f"docs/formats.md must have:\n{table_of_formats()}"


def test_format_without_first_bytes_is_known_by_its_suffix(tmp_path):
    # A directed graph without arcs begins as a Galois file does.
    path = tmp_path / "g.sg"
    path.write_bytes(gap_bytes([], 3, directed=True, weighted=False))
    assert read_source(path).directed
    (tmp_path / "g.graph").write_bytes(b"% sym unweighted\n2 1\n2\n1\n")
    assert read_source(tmp_path / "g.graph").num_vertices == 2


def test_option_that_a_format_does_not_know_is_refused(tmp_path):
    path = tmp_path / "g.sg"
    path.write_bytes(gap_bytes([], 3, directed=True, weighted=False))
    for option in ("source", "base", "sep"):
        with pytest.raises(UsageError, match=rf"g\.sg is of a format in which {option}= cannot be chosen"):
            read_source(path, **{option: 1})
    with pytest.raises(UsageError, match=r"g\.sg is of a format in which ids are integers: labels='string' applies"):
        read_source(path, labels="string")


def test_file_without_edges_or_vertices_is_refused(tmp_path):
    columns = {"source": np.empty(0, np.int64), "target": np.empty(0, np.int64)}
    for suffix in (".parquet", ".arrow", ".csv"):
        write_columns(tmp_path / f"header{suffix}", columns)
    for name, data in {"empty.csv": "", "blank.el": "\n\n", "comment.el": "# none\n", "l.e": "", "l.v": ""}.items():
        (tmp_path / name).write_text(data)
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 8
    for path in [*paths, [tmp_path / "empty.csv", tmp_path / "header.csv"]]:
        with pytest.raises(InputError, match=r"has no edges, and does not say how many vertices: give num_vertices="):
            read_edges(path)
    # As it is if the number of vertices is known.
    (tmp_path / "l.v").write_text("1\n2\n")
    (tmp_path / "declared.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 0\n")
    assert read_edges(tmp_path / "l.e").num_vertices == 3
    assert read_edges(tmp_path / "declared.mtx").num_vertices == 3
    assert read_edges(tmp_path / "header.csv", num_vertices=0).num_vertices == 0
