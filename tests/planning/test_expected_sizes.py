"""Plan graphs of tables: their sizes are estimated before they are read."""

from __future__ import annotations

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from cli_runs import run

import mgraph as mg
from mgraph.backends.host_memory import FreeMemory
from mgraph.io.formats import read_source
from mgraph.io.memory import edges_table
from mgraph.io.partitions import distinct_of, sample_of, sizes_of
from mgraph.planning.expected_sizes import as_planned
from mgraph.planning.labels import LABELS
from mgraph.planning.memory import plan_graph
from mgraph.planning.parts import KEPT
from mgraph.planning.placement import place_graph


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    ids = np.random.default_rng(1).integers(0, 5000, (100_000, 2))
    path = tmp_path_factory.mktemp("tables") / "edges.wel"
    path.write_text("".join(f"{u} {v} {u % 9}\n" for u, v in ids.tolist()))
    return path


@pytest.mark.ci
def test_edges_of_text_are_estimated_from_samples(path, tmp_path):
    planned = as_planned(read_source(path, num_vertices=5000))
    assert (planned.num_vertices, planned.weight_dtype) == (5000, np.float32)
    assert planned.num_input_edges == pytest.approx(100_000, rel=0.05)
    assert as_planned(read_source(path)).num_vertices == pytest.approx(5000, rel=0.01)
    (tmp_path / "names.csv").write_text("source,target\n" + "a,b\n" * 800)
    assert as_planned(read_source(tmp_path / "names.csv")).num_vertices == 2
    (tmp_path / "small.el").write_text("0 1\n1 2")
    small = as_planned(read_source(tmp_path / "small.el"))
    assert (small.num_vertices, small.num_input_edges) == (3, 2)
    (tmp_path / "none.el").write_text("")
    assert as_planned(read_source(tmp_path / "none.el")).num_input_edges <= 1


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_plan_counts_the_edges_that_are_kept(path, kind):
    table = read_source(path, num_vertices=5000)
    one, four = (plan_graph(table, num_ranks, kind, 1 << 30) for num_ranks in (1, 4))
    assert one.is_estimate
    assert one.parts[KEPT] == pytest.approx(1.2e6, rel=0.05)
    assert four.parts[KEPT] == one.parts[KEPT] // 4
    # On a GPU they are no part of its memory.
    assert (one.parts["while it is built"] > plan_graph(table, 1, kind, 1 << 10).parts["while it is built"]) == (
        kind == "cpu"
    )
    assert place_graph(table, 4, "cuda", 1 << 30).num_ranks == 1


def test_plan_of_a_file_says_that_it_is_an_estimate(path):
    table = run("plan", path).stdout
    assert "edges: about 5,000 vertices" in table
    assert KEPT in table


def test_table_that_cannot_fit_is_refused_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 1 << 10)
    monkeypatch.setattr("mgraph.backends.cpu.CpuBackend.free_memory", lambda self: FreeMemory(1 << 18))
    monkeypatch.setattr("mgraph.io.text.TextTable.piece", lambda *args: pytest.fail("a piece was read"))
    with mg.connect(backend="cpu") as cluster, pytest.raises(mg.WouldNotFit):
        mg.read(path, num_vertices=5000, cluster=cluster)


NAMES = [f"record/{i:0{5 + i % 20}}" for i in range(1000)]
NAME_BYTES = sum(map(len, NAMES)) / len(NAMES)


def names_of(num_edges):
    """Return a table of edges between a thousand names."""
    ids = np.random.default_rng(1).integers(0, 1000, (2, num_edges))
    names = np.array(NAMES)
    return pyarrow.table({"source": names[ids[0]], "target": names[ids[1]]})


def numbered(kind, num_edges):
    """Return the ends of edges between strings, as many as `kind` says."""
    random = np.random.default_rng(1)
    ids = {
        "pairs": lambda: random.integers(0, num_edges // 2, (2, num_edges)),
        "sixteen edges each": lambda: random.integers(0, num_edges // 16, (2, num_edges)),
        "chain": lambda: np.arange(num_edges) + np.array([[0], [1]]),
        "sorted": lambda: np.stack([np.arange(num_edges) // 8, random.integers(0, num_edges // 8, num_edges)]),
    }[kind]()
    return np.char.add("record/", ids.astype(str)), len(np.unique(ids))


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("kind", ["pairs", "sixteen edges each", "chain", "sorted"])
@pytest.mark.parametrize("where", ["file.parquet", "folder", "file.csv", "memory"])
def test_distinct_strings_are_estimated_from_a_sample(kind, where, tmp_path):
    (sources, targets), num_vertices = numbered(kind, 1 << 18)
    table = pyarrow.table({"source": sources, "target": targets})
    if where == "memory":
        source = edges_table(sources, targets)
    elif where == "file.csv":
        pyarrow.csv.write_csv(table, tmp_path / where)
        source = read_source(tmp_path / where)
    elif where == "file.parquet":
        pyarrow.parquet.write_table(table, tmp_path / where, row_group_size=1 << 14)
        source = read_source(tmp_path / where)
    else:
        for k in range(8):
            pyarrow.parquet.write_table(table[k << 15 : (k + 1) << 15], tmp_path / f"{k}.parquet")
        source = read_source(tmp_path)
    planned = as_planned(source)
    assert planned.num_vertices == pytest.approx(num_vertices, rel=0.2)
    # Far from the number of ends where labels are repeated beside each other.
    assert num_vertices <= 1.05 * planned.labels.most
    assert planned.labels.most <= 1.05 * (num_vertices if kind == "chain" else 2 << 18)


@pytest.mark.ci
@pytest.mark.covering
@pytest.mark.parametrize("is_dictionary", [False, True])
@pytest.mark.parametrize("compression", ["lz4", "uncompressed"])
@pytest.mark.parametrize("rows", [7, 4096, 1 << 17])
def test_rows_and_labels_of_arrow_files_are_estimated_from_batches(tmp_path, rows, compression, is_dictionary):
    table = names_of(1 << 17)
    if is_dictionary:
        table = pyarrow.table({name: table[name].dictionary_encode() for name in table.column_names})
    pyarrow.feather.write_feather(table, tmp_path / "names.arrow", compression=compression, chunksize=rows)
    found = read_source(tmp_path / "names.arrow")
    assert found.max_edges == pytest.approx(1 << 17, rel=0.01)
    # The fewer rows a batch has, the fewer are read.
    assert found.text_bytes == pytest.approx(NAME_BYTES * 2**18, rel=0.02 if rows > 7 else 0.2)
    assert LABELS in plan_graph(found, 1, "cpu", 1 << 34).parts


def test_labels_of_large_batches_are_bounded_by_the_file(tmp_path, monkeypatch):
    table = names_of(1 << 14)
    pyarrow.feather.write_feather(table, tmp_path / "names.arrow", compression="uncompressed")
    monkeypatch.setattr("mgraph.io.arrow.SAMPLE_BYTES", 1 << 10)
    monkeypatch.setattr("mgraph.io.arrow._batch", lambda *args: pytest.fail("a batch was read"))
    found = read_source(tmp_path / "names.arrow")
    assert found.max_edges >= 1 << 14
    assert found.text_bytes >= len(table) > 0
    if hasattr(pyarrow.ipc.RecordBatchFileReader, "count_rows"):
        assert (found.max_edges, found.text_bytes) == (1 << 14, pytest.approx(NAME_BYTES * 2**15, rel=0.02))


def test_labels_of_parquet_count_each_use_of_a_word_of_a_dictionary(tmp_path):
    table = names_of(1 << 17)
    expected = pytest.approx(NAME_BYTES * 2**18, rel=0.05)
    for name, options in (("plain", {"use_dictionary": False}), ("words", {}), ("groups", {"row_group_size": 1 << 14})):
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet", **options)
    for name in ("plain", "words", "groups"):
        assert read_source(tmp_path / f"{name}.parquet").text_bytes == expected
    many = [tmp_path / "groups.parquet"] * 40
    assert read_source(many).text_bytes == pytest.approx(40 * NAME_BYTES * 2**18, rel=0.05)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_vertices_of_columns_of_integers_are_known(tmp_path, suffix):
    ids = np.random.default_rng(1).integers(0, 5000, (2, 50_000))
    table = pyarrow.table({"source": ids[0], "target": ids[1]})
    write = pyarrow.parquet.write_table if suffix == "parquet" else pyarrow.feather.write_feather
    write(table, tmp_path / f"ids.{suffix}")
    assert as_planned(read_source(tmp_path / f"ids.{suffix}")).num_vertices == 5000
    write(table.slice(0, 0), tmp_path / f"none.{suffix}")
    assert as_planned(read_source(tmp_path / f"none.{suffix}")).num_vertices == 0


@pytest.mark.parametrize("kind", ["list", "objects", "numpy", "arrow", "dask"])
def test_labels_in_memory_are_estimated(kind):
    table = names_of(20_000)
    lists = [table[name].to_pylist() for name in table.column_names]
    columns = {
        "list": lists,
        "objects": [np.array(values, object) for values in lists],
        "numpy": [np.array(values) for values in lists],
        "arrow": [table["source"], table["target"]],
    }
    if kind == "dask":
        sizes = [sizes_of([values[:100] for values in lists]), sizes_of([values[100:] for values in lists])]
        assert sum(rows for rows, _ in sizes) == 20_000
        found = sum(num_bytes for _, num_bytes in sizes)
        samples = [sample_of([values[:100] for values in lists]), sample_of([values[100:] for values in lists])]
        expected, most = distinct_of(samples, sizes)
        assert 500 < expected <= most <= 40_000
        assert distinct_of([sample_of(np.zeros((3, 2), np.int64))], [(3, None)]) is None
    else:
        found = edges_table(*columns[kind]).text_bytes
    assert found == pytest.approx(NAME_BYTES * 40_000, rel=0.05)
    assert edges_table([0, 1], [1, 2]).text_bytes is None
    assert edges_table(["é"] * 3, ["日本"] * 3).text_bytes == 3 * 2 + 3 * 6
    assert edges_table(["a", None], ["b", "c"]).text_bytes is None
