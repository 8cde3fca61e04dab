"""Every graph of the zoo on CUDA: ranks that share a GPU as threads, and ranks on several GPUs over NCCL."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import oracles
import pytest
from backends import gpu_count
from bridge_checks import check_bridges
from component_checks import check_components, check_strong_components, planted_components
from core_checks import check_core_numbers, check_cuts
from edges_back import assert_edges
from forest_checks import FORESTS
from forest_checks import check as check_forest
from hits_checks import OF_HUBS, check_hits
from pagerank_checks import check_pagerank, check_pagerank_by_bins
from side_checks import check_sides
from steiner_checks import check_steiner_tree
from traversal_checks import check_both_orders, check_traversal
from user_graphs import GRAPHS, METHODS, SEARCHES, STARTABLE, graph_of

import mgraph as mg
from mgraph.algorithms.pagerank import bins
from mgraph.cluster.in_process import InProcessCluster

# Ranks on one GPU, and one rank on each GPU: NCCL allows no two ranks on one.
SHARED = [("threads", 1), ("threads", 3)]
APART = [("nccl", num_ranks) for num_ranks in (2, 3, 4) if num_ranks <= gpu_count()]


# Vertices of the largest component whose eccentricities are compared.
MEASURED = 64
# Without a giant, undirected and directed; dense enough for a search, without a giant; and with a giant.
PLANTED = [
    planted_components(1, 5, 2000, 3),
    planted_components(2, 3, 5000, 30, directed=True),
    planted_components(3, 3, 5000, 30),
    planted_components(4, 1, 9000, 12),
]


@pytest.fixture(scope="module", params=SHARED + APART, ids=lambda param: f"{param[0]}-{param[1]}")
def cluster(request):
    how, num_ranks = request.param
    made = InProcessCluster(num_ranks, backend="cuda") if how == "threads" else None
    with made or mg.connect(num_ranks=num_ranks, backend="cuda") as cluster:
        assert (cluster.num_ranks, cluster.backend) == (num_ranks, "cuda")
        yield cluster


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", STARTABLE, ids=lambda case: case.name)
def test_searches_on_gpus_equal_the_oracles(cluster, case, order):
    algorithms = ["bfs"] if case.weights is None else SEARCHES
    with graph_of(case, cluster, order) as g:
        for algorithm in algorithms:
            for method in METHODS:
                check_traversal(SEARCHES[algorithm](g, 0, method=method), case, [0], order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_results_stay_in_the_graphs_own_order_on_gpus(cluster, order):
    for case in STARTABLE:
        # A source without arcs has no row.
        starts = case.sources[case.sources != case.targets]
        if len(starts):
            with graph_of(case, cluster, order) as g:
                for algorithm in ["bfs"] if case.weights is None else SEARCHES:
                    check_both_orders(g, case, algorithm, int(starts[0]), order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*GRAPHS, *PLANTED], ids=lambda case: case.name)
def test_components_on_gpus_equal_the_oracle(cluster, case, order):
    check_components(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*GRAPHS, *PLANTED], ids=lambda case: case.name)
def test_strong_components_on_gpus_equal_the_oracle(cluster, case, order):
    check_strong_components(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", STARTABLE, ids=lambda case: case.name)
def test_pagerank_on_gpus_equals_the_oracle(cluster, case, order):
    check_pagerank(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("num_ranks", [num_ranks for _, num_ranks in SHARED])
@pytest.mark.parametrize(
    "case", [case for case in STARTABLE if (case.sources != case.targets).any()], ids=lambda case: case.name
)
def test_pagerank_by_bins_on_a_gpu_equals_the_oracle(case, num_ranks):
    with InProcessCluster(num_ranks, backend="cuda") as cluster:
        check_pagerank_by_bins(case, cluster, "degree")


@pytest.mark.gpu
def test_pagerank_of_many_arcs_by_bins_equals_that_of_a_pull():
    """In tiles of a whole GPU's size, by several units each, and in several groups."""
    found = []
    with mg.connect(num_ranks=1, backend="cuda") as cluster, mg.read("rmat:21,weights=none", cluster=cluster) as g:
        for change in ({"MIN_ARCS": 1 << 62}, {"MIN_ARCS": 0}):
            with mock.patch.multiple(bins, **change), mg.pagerank(g, tolerance=None, max_iterations=3) as scores:
                found.append((scores.stats.variant, scores.scores.to_numpy()))
    assert [variant for variant, _ in found] == ["pagerank.pull", "pagerank.bins"]
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [case for case in STARTABLE if not case.directed], ids=lambda case: case.name)
def test_bridges_on_gpus_equal_the_oracle(cluster, case, order):
    check_bridges(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [case for case in STARTABLE if not case.directed], ids=lambda case: case.name)
def test_steiner_trees_on_gpus_equal_the_oracle(cluster, case, order):
    check_steiner_tree(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", OF_HUBS, ids=lambda case: case.name)
def test_hits_on_gpus_equal_the_oracle(cluster, case, order):
    check_hits(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*GRAPHS, *PLANTED], ids=lambda case: case.name)
def test_core_numbers_on_gpus_equal_the_oracle(cluster, case, order):
    check_core_numbers(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [case for case in GRAPHS if not case.directed], ids=lambda case: case.name)
def test_sides_on_gpus_equal_the_oracle(cluster, case, order):
    check_sides(case, cluster, order)


@pytest.mark.gpu
@pytest.mark.parametrize("case", FORESTS, ids=lambda case: case.name)
def test_cuts_on_gpus_equal_the_oracle(cluster, case):
    check_cuts(case, cluster)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", FORESTS, ids=lambda case: case.name)
def test_forests_on_gpus_equal_the_oracle(cluster, case, order):
    with graph_of(case, cluster, order) as g:
        for maximum in (False, True):
            with mg.minimum_spanning_forest(g, maximum=maximum) as forest:
                check_forest(forest, case, order, maximum)
                mg.validate(forest)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_edges_come_back_from_gpus(cluster, case, order):
    with graph_of(case, cluster, order) as g:
        assert_edges(g, case)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", STARTABLE, ids=lambda case: case.name)
def test_measures_on_gpus_equal_the_oracles(cluster, case, order):
    labels = oracles.components(case)
    with graph_of(case, cluster, order) as g:
        for direction in ("out", "in", "both"):
            np.testing.assert_array_equal(mg.degrees(g, direction), oracles.degrees(case, direction))
        hops = mg.bfs(g, 0).distances
        wanted = oracles.bfs(case, [0])
        known = wanted[wanted >= 0]
        assert (hops.max(), hops.min(), hops.sum(), hops.argmax()) == (known.max(), 0, known.sum(), wanted.argmax())
        near = (hops < 2) & ~hops.is_missing()
        assert near.vertices().tolist() == np.flatnonzero((wanted >= 0) & (wanted < 2)).tolist()
        assert hops[near].tolist() == wanted[(wanted >= 0) & (wanted < 2)].tolist()
        assert hops[[0, case.num_vertices - 1]].tolist() == wanted[[0, -1]].tolist()
        _, sizes = mg.connected_components(g).sizes()
        np.testing.assert_array_equal(sizes, np.unique(labels, return_counts=True)[1])
        with g.reversed() as back:
            turned = replace(case, sources=case.targets, targets=case.sources)
            np.testing.assert_array_equal(mg.bfs(back, 0).distances, oracles.bfs(turned, [0]))
        for target in range(0, case.num_vertices, 1 + case.num_vertices // 4):
            assert mg.shortest_path(g, 0, target, weighted=False).distance == wanted[target]
            if case.weights is not None:
                path = mg.shortest_path(g, 0, target)
                assert path.distance == oracles.sssp(case, [0])[target]
        with mg.largest_component(g) as part:
            kept = np.flatnonzero(labels == np.bincount(labels).argmax())
            assert part.labels.to_numpy().tolist() == kept.tolist()
            # Many searches, for which ranks on one GPU wait one after the other.
            if not case.directed and len(kept) <= MEASURED:
                rows = mg.bfs_together(part, kept.tolist()).distances
                assert mg.eccentricity(part, weighted=False).to_numpy().tolist() == rows.max(axis=1).tolist()
                assert mg.radius(part, weighted=False) == rows.max(axis=1).min()


@pytest.mark.gpu
def test_filtered_forests_on_gpus_equal_those_on_the_cpu(cluster):
    # Large enough for hubs, for a filter of light edges, and for several thread blocks.
    with mg.rmat(14, cluster=cluster) as g, mg.rmat(14, cluster=InProcessCluster(1, backend="cpu")) as same:
        forest = mg.minimum_spanning_forest(g)
        wanted = mg.minimum_spanning_forest(same)
        assert "outside" in [step["method"] for step in forest.stats.supersteps]
        for column, other in zip(forest, wanted, strict=True):
            assert column.digest() == other.digest()
        mg.validate(forest)
