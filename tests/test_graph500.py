"""The Graph500 run: its roots, its sums, and that it does validate."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import mgraph as mg
from mgraph import jobs
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.rmat import Rmat
from mgraph.graph500 import Graph500, Graph500Run, random_roots, run_graph500
from mgraph.kernels.backend import CpuBackend
from mgraph.results import Stats


@pytest.fixture(scope="module", params=[1, 3])
def cluster(request):
    with InProcessCluster(request.param) as cluster:
        yield cluster


def test_a_run_of_scale_10(cluster):
    said = []
    run = run_graph500(Graph500(10, num_roots=5), cluster=cluster, progress=said.append)
    assert (run.graph, run.launcher, run.backend) == ("rmat10", "in-process", "cpu")
    assert (run.num_ranks, run.num_vertices, run.num_edges) == (cluster.num_ranks, 1024, 10_459)
    assert run.validated
    assert run.construction_s > 0
    assert len(set(run.roots)) == 5
    assert said[0] == "building rmat10"
    assert said[1:3] == ["bfs 1 of 5", "bfs 2 of 5"]
    assert said[-1] == "sssp 5 of 5"
    for kernel in ("bfs", "sssp"):
        assert len(run.searches[kernel]) == 5
        # Almost all edges are in one component, and every search counts them once.
        assert all(0.9 * run.num_edges < stats.num_edges <= run.num_edges for stats in run.searches[kernel])
        assert run.summary(kernel)["harmonic_mean_teps"] > 0
    assert not any(cluster._objects)


def test_only_the_kernels_and_roots_asked_for(cluster):
    spec = Graph500(6, edge_factor=4, num_roots=100, root_seed=5, kernels=("sssp",), check=False)
    run = run_graph500(spec, cluster=cluster)
    assert list(run.searches) == ["sssp"]
    assert not run.validated
    with mg.rmat(6, 4, cluster=cluster) as g:
        assert len(run.roots) == 64 - g.info.num_isolated < 64
        assert sorted(run.roots) == np.flatnonzero(degrees(6, 4)).tolist()


def degrees(scale, edge_factor):
    chunk = Rmat(scale, edge_factor).chunk(0, 1, CpuBackend(1))
    proper = chunk.sources != chunk.targets
    ends = np.concatenate([chunk.sources[proper], chunk.targets[proper]])
    return np.bincount(ends, minlength=1 << scale)


def test_roots_are_distinct_have_edges_and_are_fresh(cluster):
    has_edges = degrees(9, 2) > 0
    assert 0 < has_edges.sum() < 512
    with mg.rmat(9, 2, cluster=cluster) as g:
        first, second = random_roots(g, 64, None), random_roots(g, 64, None)
        assert first != second
        assert random_roots(g, 64, 7) == random_roots(g, 64, 7) != random_roots(g, 64, 8)
        for roots in (first, second):
            assert len(set(roots)) == 64
            assert has_edges[roots].all()
        # Drawn from all of them alike: each is as likely to come first.
        drawn = {random_roots(g, 1, seed)[0] for seed in range(300)}
        assert len(drawn) > 100


def test_roots_do_not_depend_on_the_ranks():
    drawn = []
    for num_ranks in (1, 2, 4):
        with InProcessCluster(num_ranks) as cluster, mg.rmat(8, cluster=cluster) as g:
            drawn.append(random_roots(g, 10, 3))
    assert drawn[0] == drawn[1] == drawn[2]


def test_a_graph_without_edges_has_no_root(cluster):
    with (
        mg.from_edges([0, 1], [0, 1], cluster=cluster) as g,
        pytest.raises(mg.InputError, match="edges has no edges: there is no root"),
    ):
        random_roots(g, 1, None)


def stats_of(seconds, num_edges):
    phases = {"prepare": 100.0, "traverse": seconds / 2, "translate": seconds / 2}
    return Stats("frontier", "", phases, [], [], [], 2, num_edges)


def test_the_summary_has_harmonic_means():
    times, edges = [1.0, 2.0, 4.0, 8.0], [100, 100, 300, 0]
    searches = {"bfs": [*map(stats_of, times, edges)], "sssp": [stats_of(1.0, 0)]}
    run = Graph500Run("g", "here", "cpu", 1, 9, 9, 1.0, [1, 2, 3, 4], True, searches)
    summary = run.summary("bfs")
    assert (summary["min_s"], summary["median_s"], summary["max_s"]) == (1.0, 3.0, 8.0)
    rates = [100 / 1, 100 / 2, 300 / 4]
    assert summary["harmonic_mean_teps"] == pytest.approx(3 / sum(1 / rate for rate in rates))
    assert summary["harmonic_mean_teps"] == pytest.approx(statistics.harmonic_mean(rates))
    assert run.summary("sssp")["harmonic_mean_teps"] == 0.0


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
@pytest.mark.parametrize("check", [True, False])
def test_every_answer_is_validated(kernel, check, cluster, monkeypatch):
    def wrong(shard, rank, answer):
        # The third search goes wrong, on the last rank alone; of the two before it one warms up.
        translate(shard, rank, answer)
        searches[rank.index] += 1
        if searches[rank.index] == 3 and rank.index == rank.size - 1:
            dist = answer.traversal.distances
            dist[np.flatnonzero((dist > 0) & (dist != np.iinfo(dist.dtype).max))[-1]] += 1

    translate, searches = jobs._translate, [0] * cluster.num_ranks
    monkeypatch.setattr("mgraph.jobs._translate", wrong)
    spec = Graph500(7, num_roots=4, kernels=(kernel,), check=check)
    if check:
        with pytest.raises(mg.ValidationFailed, match=r"rule \d: "):
            run_graph500(spec, cluster=cluster)
        assert searches == [3] * cluster.num_ranks
    else:
        run_graph500(spec, cluster=cluster)
        assert searches == [5] * cluster.num_ranks
    assert not any(cluster._objects)
