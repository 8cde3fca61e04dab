"""Test the Graph500 run: roots, statistics, validation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from rank_programs import nothing

import mgraph as mg
from mgraph.api import graph500
from mgraph.api.graph import Graph
from mgraph.api.graph500 import Graph500, Graph500Run, Search, clocked, random_roots, run_graph500
from mgraph.api.traversal_results import Stats
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.rmat import Rmat
from mgraph.rank_jobs import traversal


@pytest.fixture(scope="module", params=[1, 3])
def cluster(request):
    with InProcessCluster(request.param) as cluster:
        yield cluster


def test_run_records_graph_roots_searches_and_progress(cluster):
    lines = []
    run = run_graph500(Graph500(10, num_roots=5), cluster=cluster, progress=lines.append)
    assert (run.graph, run.launcher, run.backend) == ("rmat10", "in-process", "cpu")
    assert (run.num_ranks, run.num_vertices, run.num_edges) == (cluster.num_ranks, 1024, 10_459)
    assert run.validated
    assert run.construction_s > 0
    assert run.generation_s > 0
    assert len(set(run.roots)) == 5
    assert lines[0] == "building rmat10"
    assert lines[1:3] == ["bfs 1 of 5", "bfs 2 of 5"]
    assert lines[-1] == "sssp 5 of 5"
    for kernel in ("bfs", "sssp"):
        assert len(run.searches[kernel]) == len(run.in_user_order[kernel]) == 5
        # Almost all edges are in one component; every search counts them once.
        searches = run.searches[kernel] + run.in_user_order[kernel]
        assert all(0.9 * run.num_edges < search.stats.num_edges <= run.num_edges for search in searches)
        assert all(search.num_edges == edges_from(root) for search, root in zip(searches, 2 * run.roots, strict=True))
        assert all(search.validate_s > 0 for search in searches)
        for in_user_order in (True, False):
            assert run.summary(kernel, in_user_order=in_user_order)["harmonic_mean_TEPS"] > 0
    cluster.run(nothing)
    assert not any(cluster._objects)


def test_run_has_only_the_requested_kernels_and_roots(cluster):
    spec = Graph500(6, edge_factor=4, num_roots=100, root_seed=5, kernels=("sssp",), check=False)
    run = run_graph500(spec, cluster=cluster)
    assert list(run.searches) == list(run.in_user_order) == ["sssp"]
    assert not run.validated
    with mg.rmat(6, 4, cluster=cluster) as g:
        assert len(run.roots) == 64 - g.info.num_isolated < 64
        assert sorted(run.roots) == np.flatnonzero(degrees(6, 4)).tolist()


@pytest.mark.parametrize("is_small", [True, False])
def test_warm_up_searches_are_not_timed(cluster, is_small, monkeypatch):
    searched = []

    def recorded(g, kernel, root, *, in_graph_order):
        searched.append(root)
        return clocked(g, kernel, root, in_graph_order=in_graph_order)

    monkeypatch.setattr(graph500, "clocked", recorded)
    monkeypatch.setattr(graph500, "SMALL_GRAPH_EDGES", 16 << 7 if is_small else 16 << 6)
    run = run_graph500(Graph500(7, num_roots=4, kernels=("bfs",), check=False), cluster=cluster)
    assert searched[::2] == searched[1::2] == (run.roots if is_small else run.roots[:1]) + run.roots


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
def test_clock_ends_with_the_arrays_that_the_specification_asks_for(cluster, kernel):
    with mg.rmat(7, cluster=cluster) as g:
        for in_graph_order in (False, True):
            found, seconds = clocked(g, kernel, 1, in_graph_order=in_graph_order)
            assert seconds >= found.stats.total_s > 0
            for objects in cluster._objects:
                stored = objects[found._stored.key]
                # What is made when it is read is not there yet.
                wanted = [] if in_graph_order else ["distances", "predecessors"][kernel == "bfs" :]
                assert sorted(dict(stored.columns)) == wanted
                assert (stored.owned_predecessors is not None) == in_graph_order
            whole = graph500.KERNELS[kernel](g, 1)
            assert [column.digest() for column in found.columns] == [column.digest() for column in whole.columns]
            found.close()


def edges_from(root):
    """Count by SciPy the generated edges of scale 10 in a root's component."""
    chunk = Rmat(10).chunk(0, 1, CpuBackend(1))
    matrix = scipy.sparse.coo_array((np.ones(len(chunk)), (chunk.sources, chunk.targets)), (1024, 1024))
    labels = scipy.sparse.csgraph.connected_components(matrix, directed=False)[1]
    return (labels[chunk.sources] == labels[root]).sum()


def test_edges_are_counted_in_every_component():
    # A sparse graph has many components; each search counts the generated edges of its component.
    with InProcessCluster(2) as cluster:
        run = run_graph500(Graph500(9, edge_factor=1, num_roots=200, kernels=("bfs",), check=False), cluster=cluster)
    chunk = Rmat(9, 1).chunk(0, 1, CpuBackend(1))
    matrix = scipy.sparse.coo_array((np.ones(len(chunk)), (chunk.sources, chunk.targets)), (512, 512))
    labels = scipy.sparse.csgraph.connected_components(matrix, directed=False)[1]
    edges = np.bincount(labels[chunk.sources], minlength=labels.max() + 1)
    assert len(set(labels[run.roots])) > 3
    assert [search.num_edges for search in run.searches["bfs"]] == edges[labels[run.roots]].tolist()


def degrees(scale, edge_factor):
    chunk = Rmat(scale, edge_factor).chunk(0, 1, CpuBackend(1))
    proper = chunk.sources != chunk.targets
    ends = np.concatenate([chunk.sources[proper], chunk.targets[proper]])
    return np.bincount(ends, minlength=1 << scale)


def test_random_roots_are_distinct_and_have_edges(cluster):
    has_edges = degrees(9, 2) > 0
    assert 0 < has_edges.sum() < 512
    with mg.rmat(9, 2, cluster=cluster) as g:
        first = random_roots(g, 64, None)
        second = random_roots(g, 64, None)
        assert first != second
        assert random_roots(g, 64, 7) == random_roots(g, 64, 7) != random_roots(g, 64, 8)
        for roots in (first, second):
            assert len(set(roots)) == 64
            assert has_edges[roots].all()
        # Uniform draw: many different vertices are first.
        drawn = {random_roots(g, 1, seed)[0] for seed in range(300)}
        assert len(drawn) > 100


def test_random_roots_do_not_depend_on_the_number_of_ranks():
    drawn = []
    for num_ranks in (1, 2, 4):
        with InProcessCluster(num_ranks) as cluster, mg.rmat(8, cluster=cluster) as g:
            drawn.append(random_roots(g, 10, 3))
    assert drawn[0] == drawn[1] == drawn[2]


def test_graph_without_edges_has_no_root(cluster):
    with (
        mg.from_edges([0, 1], [0, 1], cluster=cluster) as g,
        pytest.raises(mg.InputError, match="edges has no edges: there is no root"),
    ):
        random_roots(g, 1, None)


def test_multi_source_search_without_rows_is_refused_before_the_build():
    with pytest.raises(mg.UsageError, match="all roots at once needs rows"):
        Graph500(5, layout="compact", roots_at_once=True)


def test_multi_source_search_uses_rows_with_layout_auto(cluster, monkeypatch):
    layouts = []
    build = Graph.from_source

    def recorded(*args, **options):
        layouts.append(options["layout"])
        return build(*args, **options)

    monkeypatch.setattr(Graph, "from_source", recorded)
    spec = Graph500(5, num_roots=2, kernels=("bfs",), layout="auto", roots_at_once=True)
    found = run_graph500(spec, cluster=cluster).at_once
    assert found is not None and found.num_roots == 2
    assert layouts == ["rows", "rows"]


def search_of(seconds, num_edges):
    return Search(Stats({}, [], [], [], "1 rank", "frontier", "", 2, 7), seconds, num_edges, None)


def test_summary_and_output_block_follow_the_specification():
    times = [1.0, 2.0, 4.0, 8.0, 16.0]
    edges = [100, 100, 300, 800, 100]
    searches = {"bfs": [*map(search_of, times, edges)]}
    doubled = {"bfs": [search_of(2 * seconds, count) for seconds, count in zip(times, edges, strict=True)]}
    run = Graph500Run("g", "here", "cpu", 3, 4, 5, 9, 9, 0.5, 1.0, [1, 2, 3, 4, 5], True, searches, doubled)
    summary = run.summary("bfs")
    names = ("min", "firstquartile", "median", "thirdquartile", "max")
    assert [summary[f"{name}_time"] for name in names] == times
    assert summary["mean_time"] == pytest.approx(31 / 5)
    assert summary["stddev_time"] == pytest.approx(np.std(times, ddof=1))
    assert [summary[f"{name}_nedge"] for name in names] == [100, 100, 100, 300, 800]
    rates = np.array([100, 50, 75, 100, 6.25])
    assert [summary[f"{name}_TEPS"] for name in names] == sorted(rates)
    assert summary["harmonic_mean_TEPS"] == pytest.approx(5 / (1 / rates).sum())
    spread = np.std(1 / rates, ddof=1) / np.mean(1 / rates) ** 2 / np.sqrt(4)
    assert summary["harmonic_stddev_TEPS"] == pytest.approx(spread)
    assert "mean_TEPS" not in summary
    assert not any("validate" in name for name in summary)
    lines = dict(line.split(":") for line in run.output_block().splitlines())
    assert list(lines)[:6] == [
        "SCALE", "edgefactor", "NBFS", "graph_generation", "num_mpi_processes", "construction_time",
    ]  # fmt: skip
    assert [float(value) for value in list(lines.values())[:6]] == [4, 5, 5, 0.5, 3, 1]
    assert lines["bfs  harmonic_mean_TEPS"].split() == ["!", f"{summary['harmonic_mean_TEPS']:.9g}"]
    assert {name.removeprefix("bfs  ") for name in list(lines)[6:-2]} == summary.keys()
    strict = lines["bfs_in_user_order  harmonic_mean_TEPS"].split()
    assert strict == [f"{summary['harmonic_mean_TEPS'] / 2:.9g}"]


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
@pytest.mark.parametrize("check", [True, False])
def test_every_result_is_validated(kernel, check, cluster, monkeypatch):
    def corrupt(shard, rank, result, isolated):
        # Corrupt the eleventh search on every rank with a reached vertex; the first eight are warm-ups.
        num_isolated = translate(shard, rank, result, isolated)
        searches[rank.index] += 1
        if searches[rank.index] == 11:
            dist = result.traversal.distances
            dist[np.flatnonzero((dist > 0) & (dist != np.iinfo(dist.dtype).max))[-1:]] += 1
        return num_isolated

    translate = traversal._translate
    searches = [0] * cluster.num_ranks
    monkeypatch.setattr("mgraph.rank_jobs.traversal._translate", corrupt)
    spec = Graph500(7, num_roots=4, kernels=(kernel,), check=check)
    if check:
        with pytest.raises(mg.ValidationFailed, match=r"rule \d: "):
            run_graph500(spec, cluster=cluster)
        assert searches == [11] * cluster.num_ranks
    else:
        run_graph500(spec, cluster=cluster)
        assert searches == [16] * cluster.num_ranks
    cluster.run(nothing)
    assert not any(cluster._objects)
