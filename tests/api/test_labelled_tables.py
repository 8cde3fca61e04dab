"""Tables of labelled graphs have labels where results have vertices: strings, and integers with gaps."""

from __future__ import annotations

import dask
import numpy as np
import pandas
import pytest
from user_graphs import ORDERS, graph_of
from zoo import random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.labels.strings import Strings
from mgraph.labels.table import LabelTable, stride_of

CASE = random_case(3)
N = CASE.num_vertices
LABELS = {
    "string": np.array([f'v{v:03}, "{v}"' for v in range(N)], object),
    "integer": np.arange(N) * 10**12 - 7,
}


def plant(rank, graph, kind) -> None:
    """Give this rank its part of the labels."""
    shard = rank.objects[graph]
    stride = stride_of(N, rank.size)
    part = LABELS[kind][rank.index * stride : (rank.index + 1) * stride]
    labels = Strings.of(part.tolist()) if kind == "string" else part
    shard.labels = LabelTable(N, kind, labels, missing=-1 if kind == "string" else -(2**63))


@pytest.fixture(params=[(1, "string"), (3, "string"), (3, "integer")], ids=lambda p: f"{p[1]}-{p[0]}")
def kind(request):
    return request.param


@pytest.fixture(params=ORDERS)
def graphs(kind, request):
    num_ranks, kind = kind
    with InProcessCluster(num_ranks) as cluster, graph_of(CASE, cluster, request.param) as g:
        with mg.sssp(g, [0, 1]) as plain, mg.connected_components(g) as components:
            wanted = plain.to_pandas(), components.to_pandas(), g.edges.to_pandas()
        cluster.run(plant, g._key, kind)
        yield g, LABELS[kind], wanted


def labelled(frame: pandas.DataFrame, labels: np.ndarray, names: tuple[str, ...]) -> pandas.DataFrame:
    """Return the frame with labels for vertices."""
    missing = None if labels.dtype == object else -(2**63)
    vertices = {name: [missing if v < 0 else labels[v] for v in frame[name]] for name in names if name in frame}
    return frame.assign(**vertices)


ENDS = ("source", "target")
VERTICES = ("vertex", "predecessors", "nearest_source", "labels")


def assert_same(found: pandas.DataFrame, wanted: pandas.DataFrame) -> None:
    assert list(found) == list(wanted)
    for name in found:
        # pandas and Dask have several nulls, and text has an empty field for both.
        values, expected = (
            [None if pandas.isna(value) or value == "" else value for value in frame[name].tolist()]
            for frame in (found, wanted)
        )
        assert values == expected


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("part_rows", [1 << 21, 11])
def test_results_are_in_labels(graphs, tmp_path, monkeypatch, part_rows):
    monkeypatch.setattr("mgraph.rank_jobs.table_rows.PART_ROWS", part_rows)
    g, labels, (paths, components, _) = graphs
    for result, plain in ((mg.sssp(g, [0, 1]), paths), (mg.connected_components(g), components)):
        wanted = labelled(plain, labels, VERTICES)
        assert_same(result.to_pandas(), wanted)
        with dask.config.set(scheduler="synchronous"):
            assert_same(result.to_dask_dataframe().compute(), wanted)
        for suffix, read in ((".csv", pandas.read_csv), (".parquet", pandas.read_parquet)):
            result.write(tmp_path / f"a{suffix}", overwrite=True)
            options = {"keep_default_na": False} if suffix == ".csv" else {}
            assert_same(read(tmp_path / f"a{suffix}", **options), wanted)
        result.write(tmp_path / "a", overwrite=True)
        frames = [pandas.read_parquet(part) for part in sorted((tmp_path / "a").iterdir())]
        assert_same(pandas.concat(frames, ignore_index=True), wanted)
        if labels.dtype == object:
            with pytest.raises(mg.InputError, match=r"npz file holds numbers, and vertex is strings: write \.csv"):
                result.write(tmp_path / "a.npz")


def test_result_keeps_its_labels_when_the_graph_is_closed(graphs):
    g, labels, (_, components, _) = graphs
    result = mg.connected_components(g)
    g.close()
    assert_same(result.to_pandas(), labelled(components, labels, VERTICES))


def test_edges_are_in_labels_and_on_demand_in_numbers(graphs, tmp_path):
    g, labels, (*_, edges) = graphs
    assert_same(g.edges.to_pandas(), labelled(edges, labels, ENDS))
    (batch,) = g.edges._numbered().all_batches()
    assert batch["source"].tolist() == edges["source"].tolist()
    g.edges.write(tmp_path / "e.parquet")
    assert_same(pandas.read_parquet(tmp_path / "e.parquet"), labelled(edges, labels, ENDS))
    if labels.dtype == object:
        with pytest.raises(mg.InputError, match=r"numbers vertices, and these are strings: write \.csv"):
            g.edges.write(tmp_path / "e.mtx")


def test_forest_is_in_labels(kind):
    num_ranks, kind = kind
    case = type(CASE)("undirected", N, CASE.sources, CASE.targets, CASE.weights, False)
    with InProcessCluster(num_ranks) as cluster, graph_of(case, cluster) as g:
        plain = mg.minimum_spanning_forest(g).to_pandas()
        cluster.run(plant, g._key, kind)
        assert_same(mg.minimum_spanning_forest(g).to_pandas(), labelled(plain, LABELS[kind], ENDS))
