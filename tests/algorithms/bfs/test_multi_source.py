"""Multi-source BFS: the levels of each root equal those of its own search, for any ranks and depth."""

from __future__ import annotations

import json

import numpy as np
import oracles
import pytest
from click.testing import CliRunner
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards, positions_of
from on_ranks import run_on_ranks
from rank_programs import nothing
from strategies import graphs, orders, rank_counts
from sweep_checks import of_users
from tiers import examples
from user_graphs import graph_of
from zoo import CASES, ZOO, make_case, random_case

import mgraph as mg
from mgraph.algorithms.bfs.level_counts import count_levels
from mgraph.algorithms.bfs.multi_source import MAX_ROOTS, MultiSourceLevels, bfs_together
from mgraph.algorithms.common.traversal import Trace
from mgraph.api.graph500 import Graph500, run_graph500
from mgraph.cli.main import main
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import GraphClosed, UsageError
from mgraph.types import LEVEL, unreached_of


def rank_program(shard, comm, roots, limit):
    """Return a rank's levels of every root, and its supersteps."""
    trace = Trace(shard.backend, comm)
    found = bfs_together(shard, comm, roots, trace, limit)
    return [shard.backend.to_host(found.levels(shard, bit)) for bit in range(len(roots))], trace.supersteps


def check(case, roots, num_ranks, order="degree", backend=None, limit=None):
    """Compare every root's levels with the oracles'; return the supersteps of all ranks."""
    shards = build_shards(case, num_ranks, order, backend)
    positions = positions_of(shards)[roots].tolist() if roots else []
    with_arcs = [p if p < shards[0].partition.num_positions else None for p in positions]
    results = run_on_ranks(rank_program, shards, with_arcs, limit)
    for bit, root in enumerate(roots):
        levels = of_users(shards, [root], [parts[bit] for parts, _ in results])
        np.testing.assert_array_equal(levels, oracles.bfs(case, [root], limit))
    return [steps for _, steps in results]


def some_roots(case, count=9):
    """Return random vertices of a case, some of them repeated."""
    return (np.random.default_rng(7).integers(0, case.num_vertices, count)).tolist() if case.num_vertices else []


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 300) for seed in range(4))], ids=lambda case: case.name)
def test_levels_equal_the_oracle(case, order):
    for num_ranks in (1, 3):
        check(case, some_roots(case), num_ranks, order)


@examples(40)
@given(graphs(), st.integers(1, MAX_ROOTS), rank_counts, orders, st.none() | st.integers(0, 3))
def test_levels_of_drawn_graphs_equal_the_oracle(case, count, num_ranks, order, limit):
    check(case, some_roots(case, count), num_ranks, order, limit=limit)


def counting_program(shard, comm, roots):
    """Return the vertices at each level from each root."""
    return count_levels(shard, comm, roots, Trace(shard.backend, comm))


@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", [*CASES, random_case(2, 300)], ids=lambda case: case.name)
def test_counts_of_levels_equal_those_of_the_oracle(case):
    roots = some_roots(case, MAX_ROOTS)
    levels = [oracles.bfs(case, [root]) for root in roots]
    for num_ranks, backend in ((1, None), (3, None), (2, EmulatedBackend(seed=6, block=64, blocks=2))):
        shards = build_shards(case, num_ranks, backend=backend)
        positions = positions_of(shards)[roots].tolist() if roots else []
        with_arcs = [p if p < shards[0].partition.num_positions else None for p in positions]
        for counts in run_on_ranks(counting_program, shards, with_arcs):
            for column, position, found in zip(counts.T, with_arcs, levels, strict=True):
                wanted = np.bincount(found[found >= 0], minlength=len(column)) if position is not None else 0
                np.testing.assert_array_equal(column, wanted)


@pytest.mark.parametrize("case", [ZOO["grid"], ZOO["dag"], random_case(3, 150)], ids=lambda case: case.name)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_levels_on_the_emulator_equal_the_oracle(case, num_ranks):
    check(case, some_roots(case, MAX_ROOTS), num_ranks, backend=EmulatedBackend(seed=5, block=32, blocks=3))


def test_levels_of_a_deep_graph_equal_the_oracle():
    path = make_case("path", 300, [(v, v + 1) for v in range(299)])
    for num_ranks in (1, 2):
        check(path, [0, 299, 150], num_ranks, "natural")


def test_search_pulls_in_a_small_world_and_pushes_on_a_path():
    case = random_case(1, 300)
    (steps,) = check(case, list(range(64)), 1)
    assert "pull" in [step["method"] for step in steps]
    path = make_case("path", 300, [(v, v + 1) for v in range(299)])
    (steps,) = check(path, [0], 1, "natural")
    assert [step["method"] for step in steps].count("push") > 100


@pytest.fixture(scope="module", params=[1, 3])
def cluster(request):
    with InProcessCluster(request.param) as cluster:
        yield cluster


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_results_equal_those_of_single_searches(cluster, order):
    with mg.rmat(9, cluster=cluster, order=order) as g:
        # More roots than a word has bits, isolated vertices among them, and one root twice.
        roots = [*range(70), 3]
        with mg.bfs_together(g, roots) as found:
            assert len(found) == 71
            assert repr(found).startswith("<bfs of rmat9 from 71 roots together: ")
            for i in (0, 63, 64, 70, -1):
                alone = mg.bfs(g, roots[i])
                result = found.answer(i)
                mg.validate(result)
                for one, other in zip(result.columns, alone.columns, strict=True):
                    np.testing.assert_array_equal(one, other)
                assert (result.stats.num_reached, result.stats.num_edges) == (
                    alone.stats.num_reached,
                    alone.stats.num_edges,
                )
                assert found[i].predecessors is None
            rows = found.distances
            assert rows.shape == (71, 512)
            np.testing.assert_array_equal(rows[3], rows[70])
            np.testing.assert_array_equal(rows, mg.bfs_many(g, roots).distances)
        assert "closed" in repr(found)
        with pytest.raises(GraphClosed):
            found.answer(0)
        # A result taken before remains.
        assert result.distances[roots[-1]] == 0


def test_limited_levels_of_a_directed_graph_equal_the_oracle(cluster):
    case = ZOO["dag"]
    with graph_of(case, cluster) as g, mg.bfs_together(g, range(case.num_vertices), depth_limit=2) as found:
        for root, result in enumerate(found):
            np.testing.assert_array_equal(result.distances, oracles.bfs(case, [root], 2))


def test_invalid_arguments_are_refused(cluster):
    with mg.rmat(5, cluster=cluster) as g:
        for roots, error, text in (
            ([], UsageError, "there is no root"),
            (3, UsageError, "roots 3 are not a list of vertices"),
            ([32], UsageError, "root 32 is not a vertex"),
        ):
            with pytest.raises(error, match=text):
                mg.bfs_together(g, roots)
        with pytest.raises(UsageError, match="depth_limit is -1"):
            mg.bfs_together(g, [0], depth_limit=-1)
        with mg.bfs_together(g, [0]) as found, pytest.raises(IndexError):
            found.answer(1)
        with (
            mg.bfs_together(g, [0, 1]) as found,
            pytest.raises(UsageError, match=r"root slice\(0, 1, None\) is not an"),
        ):
            found[0:1]
    cluster.run(nothing)
    assert not any(cluster._objects)
    with mg.rmat(5, cluster=cluster, layout="compact") as g, pytest.raises(UsageError, match="needs rows"):
        mg.bfs_together(g, [0])


@pytest.mark.ci
def test_graph500_reports_multi_source_searches_beside_single_ones(cluster, monkeypatch):
    run = run_graph500(Graph500(8, num_roots=70, kernels=("bfs",), roots_at_once=True), cluster=cluster)
    searched = run.searches["bfs"]
    assert run.at_once.num_roots == len(searched) == 70
    assert run.at_once.num_edges == sum(search.num_edges for search in searched)
    assert run.at_once.total_s > run.at_once.search_s > 0
    assert "once" not in run.output_block()
    assert run_graph500(Graph500(5, num_roots=2), cluster=cluster).at_once is None


def test_graph500_prints_multi_source_searches():
    def run(*options):
        arguments = ["graph500", "--scale", "6", "--roots", "5", "--kernel", "bfs", "--backend", "cpu", *options]
        result = CliRunner().invoke(main, arguments, prog_name="mgraph", env={"CUDA_VISIBLE_DEVICES": ""})
        assert result.exit_code == 0, result.output
        return result.stdout

    line = run("--roots-at-once").splitlines()[-1]
    assert line.startswith("5 roots at once, levels only, all validated: ")
    assert "roots/s" in line
    assert json.loads(run("--roots-at-once", "--json"))["at_once"]["num_roots"] == 5
    assert "at once" not in run()


def test_graph500_validates_multi_source_levels(cluster, monkeypatch):
    levels = MultiSourceLevels.levels

    def too_few(self, shard, root):
        found = levels(self, shard, root)
        found[found > 1] = unreached_of(LEVEL)
        return found

    monkeypatch.setattr(MultiSourceLevels, "levels", too_few)
    with pytest.raises(mg.ValidationFailed):
        run_graph500(Graph500(6, num_roots=3, kernels=("bfs",), roots_at_once=True), cluster=cluster)
