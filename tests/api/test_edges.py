"""The edges of a graph come back out: once each, sorted, the same for any number of ranks and order."""

from __future__ import annotations

import dask
import numpy as np
import pandas
import pytest
import tiers
from edges_back import assert_edges
from hypothesis import given
from strategies import graphs, orders, rank_counts
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.shard import edges_by_user


@pytest.fixture(scope="module")
def clusters():
    made = {p: InProcessCluster(p) for p in (1, 2, 3, 4, 7)}
    yield made
    for cluster in made.values():
        cluster.close()


@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_edges_are_those_given(case, clusters):
    for p, order in ((1, "degree"), (3, "degree"), (3, "natural")):
        with graph_of(case, clusters[p], order) as g:
            assert_edges(g, case)


@tiers.examples(40)
@given(case=graphs(), p=rank_counts, order=orders)
def test_edges_of_random_graphs(clusters, case, p, order):
    with graph_of(case, clusters[p], order) as g:
        assert_edges(g, case)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("directed", [False, True])
def test_small_batches_give_the_same_edges(clusters, monkeypatch, order, directed):
    case = random_case(2)
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, None, directed)
    monkeypatch.setattr("mgraph.rank_jobs.table_rows.BATCH_ROWS", 5)
    monkeypatch.setattr("mgraph.rank_jobs.table_rows.PART_ROWS", 3)
    for buckets in (1 << 16, 4):
        monkeypatch.setattr(edges_by_user, "BUCKETS", buckets)
        for p in (1, 3):
            with graph_of(case, clusters[p], order) as g:
                assert_edges(g, case)
                frame = g.edges.to_dask_dataframe()
                assert frame.npartitions == p
                with dask.config.set(scheduler="synchronous"):
                    found = frame.compute().reset_index(drop=True)
                pandas.testing.assert_frame_equal(found, g.edges.to_pandas())
                assert list(found) == ["source", "target"]


def test_graph_built_from_its_edges_is_the_same(clusters, tmp_path):
    case = random_case(1)
    with graph_of(case, clusters[3]) as g:
        for name in ("edges.npz", "edges.parquet", "edges.csv", "edges.mtx"):
            g.edges.write(tmp_path / name)
            with mg.read(tmp_path / name, directed=case.directed, num_vertices=case.num_vertices) as again:
                for a, b in zip(g.edges.to_numpy(), again.edges.to_numpy(), strict=True):
                    np.testing.assert_array_equal(a, b)
        g.edges.write(tmp_path / "parts")
        parts = sorted((tmp_path / "parts").iterdir())
        assert [part.name for part in parts] == [f"part-0000{k}.parquet" for k in range(3)]
        frame = pandas.concat([pandas.read_parquet(part) for part in parts], ignore_index=True)
        pandas.testing.assert_frame_equal(frame, g.edges.to_pandas())
        with mg.from_edges(*g.edges.to_numpy(), directed=case.directed, num_vertices=case.num_vertices) as again:
            assert again.num_edges == g.num_edges


def test_vertices_kept_for_edges_are_freed(clusters):
    cluster = clusters[3]
    with graph_of(ZOO["grid"], cluster) as g:
        before = cluster.run(_num_objects)
        edges = g.edges
        edges.to_numpy()
        assert cluster.run(_num_objects) == [count + 1 for count in before]
        del edges
        assert cluster.run(_num_objects) == before
        assert repr(g.edges) == f"<Edges of edges: {g.num_edges} edges>"
        edges = g.edges
    with pytest.raises(mg.GraphClosed):
        edges.to_numpy()


def _num_objects(rank) -> int:
    return len(rank.objects)


def test_compact_graph_has_no_edges_to_read(clusters):
    match = "edges needs rows, and rmat6 has the compact layout: build it with layout='rows'"
    with mg.rmat(6, cluster=clusters[1], layout="compact") as g, pytest.raises(mg.UsageError, match=match):
        _ = g.edges
