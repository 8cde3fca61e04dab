"""Placement: the number of ranks on which a graph is stored when the user gives none."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest
import rank_programs as programs
from click.testing import CliRunner
from worker_processes import worker_processes

import mgraph as mg
from mgraph.api import graph
from mgraph.cli.main import main
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import ClusterError, UsageError, WouldNotFit
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.planning import placement
from mgraph.planning.memory import plan_graph
from mgraph.planning.placement import Placement, place_graph

LARGE = 139 << 30
SMALL_ARCS = 1 << 10


@pytest.fixture(scope="module")
def workers():
    with worker_processes(3) as workers:
        yield workers


@pytest.fixture
def ranks_count(monkeypatch):
    """Place graphs of a few hundred arcs on several ranks."""
    monkeypatch.setitem(placement.ARCS_PER_RANK, "cpu", SMALL_ARCS)


@pytest.mark.parametrize(("scale", "wanted"), [(10, 1), (24, 1), (25, 2), (26, 4), (28, 4), (30, 4)])
def test_graph_of_few_arcs_is_placed_on_few_ranks(scale, wanted):
    placed = place_graph(Rmat(scale), 4, "cuda", LARGE)
    assert placed.num_ranks == wanted
    assert str(placed).startswith("4 ranks" if wanted == 4 else f"{wanted} of 4 ranks: ")
    assert place_graph(Rmat(scale), 1, "cuda", LARGE) == Placement(1, 1)


@pytest.mark.parametrize(("scale", "wanted"), [(10, 1), (21, 1), (23, 2), (24, 4)])
def test_graph_of_few_arcs_is_placed_on_few_cpu_ranks(scale, wanted):
    assert place_graph(Rmat(scale), 4, "cpu", LARGE).num_ranks == wanted
    # As many as hold it.
    memory = plan_graph(Rmat(scale), 3, "cpu", LARGE).needed_bytes
    assert place_graph(Rmat(scale), 4, "cpu", memory).num_ranks == max(wanted, 3)


def test_small_graph_on_cpu_workers_is_placed_on_one_and_says_so(client, monkeypatch):
    monkeypatch.setattr(graph, "place_graph", place_graph)
    with DaskCluster(client) as cluster, mg.rmat(8, cluster=cluster) as g:
        assert repr(g).endswith("1 of 3 cpu ranks>")
        assert str(g.placement) == mg.bfs(g, 0).stats.placement == "1 of 3 ranks: 8,192 arcs are few"
        with mg.from_edges([0, 1], [1, 2], cluster=cluster) as edges:
            assert edges.num_ranks == 1
    with DaskCluster(client, 3) as cluster, mg.rmat(8, cluster=cluster) as g:
        assert str(g.placement) == "3 ranks"


def test_deep_graph_is_placed_on_the_fewest_ranks_that_hold_it():
    road_map = Grid(1 << 15, 1 << 15)
    assert place_graph(road_map, 4, "cuda", LARGE).num_ranks == 1
    assert "levels" in str(place_graph(road_map, 4, "cuda", LARGE))
    enough_for_three = plan_graph(road_map, 3, "cuda", LARGE).needed_bytes
    few = place_graph(road_map, 8, "cuda", enough_for_three)
    assert few.num_ranks == 3
    assert "hold it" in str(few)
    assert place_graph(road_map, 2, "cuda", 1 << 30) == Placement(2, 2)


def test_auto_layout_is_compact_only_if_rows_fit_on_no_number_of_ranks():
    road_map = Grid(1 << 14, 1 << 14)
    rows, compact = (plan_graph(road_map, 1, "cuda", LARGE, layout).needed_bytes for layout in ("rows", "compact"))
    assert compact < rows
    # Rows fit on several ranks, so one rank with the compact layout is not chosen.
    for layout, fewest in (("rows", 2), ("auto", 2), ("compact", 1)):
        assert place_graph(road_map, 3, "cuda", rows - 1, layout).num_ranks == fewest
    # Rows fit on no number of ranks. On GPUs they may fit in the layout split, for which each brings memory and a link.
    for layout in ("rows", "auto", "split"):
        assert place_graph(road_map, 2, "cuda", compact, layout).num_ranks == 2
    in_blocks = plan_graph(road_map, 1, "cpu", LARGE, "compact").needed_bytes
    for layout, fewest in (("rows", 2), ("auto", 1)):
        assert place_graph(road_map, 2, "cpu", in_blocks, layout).num_ranks == fewest


def test_explicit_number_of_ranks_is_used(client, ranks_count):
    with DaskCluster(client, 3) as cluster, mg.rmat(4, cluster=cluster) as g:
        assert g.num_ranks == 3
        assert g.cluster is cluster
    with InProcessCluster(2) as cluster, mg.rmat(4, cluster=cluster) as g:
        assert g.num_ranks == 2


def test_small_graph_is_placed_on_one_of_three_workers_with_a_reason(client, ranks_count):
    with DaskCluster(client) as cluster, mg.rmat(4, cluster=cluster) as g:
        assert cluster.num_ranks == 3
        assert g.num_ranks == len(g.build_stats) == 1
        assert "1 of 3 cpu ranks>" in repr(g)
        result = mg.bfs(g, 0)
        assert result.stats.placement == "1 of 3 ranks: 512 arcs are few"
        for other in (mg.connected_components(g), mg.minimum_spanning_forest(g)):
            assert other.stats.placement == result.stats.placement
        with mg.rmat(4, cluster=InProcessCluster(1)) as same:
            np.testing.assert_array_equal(result.distances, mg.bfs(same, 0).distances)
            assert mg.bfs(same, 0).stats.placement == "1 rank"
        with mg.rmat(10, cluster=cluster) as larger:
            assert larger.num_ranks == 3
            assert "3 cpu ranks>" in repr(larger)


def test_graphs_of_different_ranks_share_a_cluster(client, ranks_count):
    with DaskCluster(client) as cluster:
        small, middle, large = (mg.rmat(scale, cluster=cluster) for scale in (4, 6, 8))
        assert [g.num_ranks for g in (small, middle, large)] == [1, 2, 3]
        for g in (large, small, middle):
            mg.validate(mg.bfs(g, 0))
        assert mg.rmat(4, cluster=cluster).cluster is small.cluster


def test_narrowed_cluster_of_all_ranks_places_every_graph_on_all(client, ranks_count):
    with DaskCluster(client) as cluster:
        all_ranks = cluster.narrowed(3)
        assert all_ranks is not cluster and all_ranks.narrowed(3) is all_ranks
        with mg.rmat(4, cluster=cluster) as small, mg.rmat(4, cluster=all_ranks) as spread:
            assert (small.num_ranks, spread.num_ranks) == (1, 3)
            assert mg.bfs(small, 0).distances.digest() == mg.bfs(spread, 0).distances.digest()


def test_graph_that_exceeds_its_plan_is_placed_on_all_ranks(client, ranks_count, monkeypatch):
    with DaskCluster(client) as cluster:
        build = graph.Graph._build

        def too_much(source, chosen, *args):
            if chosen.num_ranks < 3:
                raise WouldNotFit("more than was planned")
            return build(source, chosen, *args)

        monkeypatch.setattr(graph.Graph, "_build", too_much)
        with mg.rmat(4, cluster=cluster) as g:
            assert g.num_ranks == 3
            assert str(g.placement) == "3 ranks"
        with pytest.raises(WouldNotFit), mg.rmat(4, cluster=cluster.narrowed(1)):
            pass


def test_narrowed_cluster_is_closed_with_its_cluster(client):
    cluster = DaskCluster(client)
    part = cluster.narrowed(2)
    assert cluster.narrowed(2) is part
    assert part.narrowed(1).run(programs.total)[0][:2] == (0, 1)
    assert [r[:2] for r in part.run(programs.total)] == [(0, 2), (1, 2)]
    # The same processes; their number of threads depends on the number of ranks.
    assert [where[0] for where in cluster.run(programs.where)[:2]] == [where[0] for where in part.run(programs.where)]
    for num_ranks in (0, 4):
        with pytest.raises(UsageError, match=f"num_ranks is {num_ranks}: the cluster has 3"):
            cluster.narrowed(num_ranks)
    cluster.close()
    for closed in (cluster, part):
        with pytest.raises(ClusterError, match="closed"):
            closed.run(programs.nothing)


def test_graph_keeps_its_cluster_open(workers, ranks_count):
    g = mg.rmat(4, cluster=mg.connect(scheduler=workers.scheduler_address))
    gc.collect()
    assert mg.bfs(g, 0).distances[0] == 0
    # Close the session that it has opened.
    g.cluster._whole.close()
    with pytest.raises(ClusterError, match="closed"):
        mg.bfs(g, 0)


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_in_process_cluster_can_be_narrowed(num_ranks):
    with InProcessCluster(3) as cluster:
        part = cluster.narrowed(num_ranks)
        assert cluster.narrowed(num_ranks) is part
        assert cluster.narrowed(3) is cluster
        assert [r[:2] for r in part.run(programs.total)] == [(r, num_ranks) for r in range(num_ranks)]
    with pytest.raises(ClusterError, match="closed"):
        part.run(programs.nothing)


@pytest.mark.ci
def test_commands_print_the_placement(workers, ranks_count):
    def run(*arguments):
        result = CliRunner().invoke(main, [*arguments, "--scheduler", workers.scheduler_address], prog_name="mgraph")
        assert result.exit_code == 0, result.output
        return result

    assert json.loads(run("info", "rmat:4", "--json").stdout)["placement"] == "1 of 3 ranks: 512 arcs are few"
    assert json.loads(run("info", "rmat:4", "--json", "--workers", "2").stdout)["placement"] == "2 ranks"
    stats = json.loads(run("bfs", "rmat:4", "-s", "0", "--json").stdout)["stats"]
    assert stats["placement"] == "1 of 3 ranks: 512 arcs are few"
    assert "1 of 3 cpu ranks" in run("bfs", "rmat:4", "-s", "0").stderr
    official = run("graph500", "--scale", "4", "--roots", "2")
    assert "building rmat4 on 1 of 3 ranks: 512 arcs are few" in official.stderr
    assert "1 cpu rank," in official.stdout
