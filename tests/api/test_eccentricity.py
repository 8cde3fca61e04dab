"""Eccentricities, diameters and radii by bounding searches, against the oracle's searches from every vertex."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs, orders
from tiers import by_tier, examples
from user_graphs import ORDERS, graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.api.eccentricity import bounded, slack_of
from mgraph.types import LEVEL


def oracle(case, *, weighted):
    """Return the eccentricity of every vertex, None if one is infinite."""
    search = oracles.sssp if weighted else oracles.bfs
    found = [search(case, [v]) for v in range(case.num_vertices)]
    if any((distances == -1).any() or (distances == np.inf).any() for distances in found):
        return None
    return np.array([distances.max() for distances in found])


def ringed(case):
    """Return a case with a ring through all vertices, of the heaviest weight: connected, strongly if it is directed."""
    n = case.num_vertices
    around = np.arange(n, dtype=case.sources.dtype)
    ends = np.concatenate([case.sources, around]), np.concatenate([case.targets, (around + 1) % n])
    heaviest = case.weights.max() if len(case.weights) else case.weights.dtype.type(3)
    weights = np.concatenate([case.weights, np.full(n, heaviest, case.weights.dtype)])
    return replace(case, sources=ends[0], targets=ends[1], weights=weights)


def check(g, case):
    """Compare all functions of a connected graph with the oracle."""
    for weighted in (False, True):
        wanted = oracle(case, weighted=weighted)
        found = mg.eccentricity(g, weighted=weighted)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == (oracles.state_dtype(case) if weighted else LEVEL)
        some = [0, case.num_vertices - 1, 0]
        assert mg.eccentricity(g, some, weighted=weighted).tolist() == wanted[some].tolist()
        assert mg.diameter(g, weighted=weighted) == wanted.max()
        assert mg.radius(g, weighted=weighted) == wanted.min()
        assert wanted.max() / 2 <= mg.diameter(g, weighted=weighted, exact=False) <= wanted.max() or case.directed


@pytest.mark.ci
@pytest.mark.covering(ci=1, every=2)
@pytest.mark.widens
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_values_equal_the_oracle_for_any_number_of_ranks_and_order(directed, dtype, clusters):
    random = np.random.default_rng(7)
    case = replace(random_case(1, num_vertices=60), directed=directed)
    weights = (
        random.integers(0, 50, len(case.sources)) if np.dtype(dtype).kind != "f" else random.random(len(case.sources))
    )
    case = ringed(replace(case, weights=weights.astype(dtype)))
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                check(g, case)


@examples(40)
@given(graphs(max_vertices=12, max_edges=30), orders, st.sampled_from(RANKS))
def test_values_of_drawn_graphs_equal_the_oracle_or_are_refused(clusters, case, order, num_ranks):
    if not case.num_vertices or case.weights is None:
        return
    with graph_of(case, clusters[num_ranks], order) as g:
        if oracle(case, weighted=False) is not None:
            check(g, case)
            return
        for refused in (mg.eccentricity, mg.diameter, mg.radius):
            with pytest.raises(mg.UsageError, match="connected, and eccentricities are infinite"):
                refused(g)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_few_searches_prove_the_values_of_large_graphs(directed, clusters):
    with mg.rmat(12, cluster=clusters[1]) as g:
        ends = g.edges.to_numpy()
    # A ring makes the directed graph strongly connected, and is too long to shorten other paths.
    ring = np.arange(4096)
    longer = ring, (ring + 1) % 4096, ring % 5 + 100
    ends = [np.concatenate(both) for both in zip(ends, longer, strict=True)]
    with mg.from_edges(*ends, directed=directed, cluster=clusters[2]) as g:
        for weighted in (False, True):
            for goal in ("diameter", "radius"):
                with bounded(g, weighted) as bounds:
                    bounds.narrow(goal)
                    assert bounds.num_searches < 200
    with mg.grid(40, 50, cluster=clusters[2]) as g:
        wanted = mg.bfs_together(g, range(2000)).distances.max(axis=1)
        assert mg.radius(g, weighted=False) == wanted.min()
        with bounded(g, False) as bounds:
            assert bounds.narrow("diameter") == wanted.max()
            assert bounds.num_searches < 20


def test_lower_bound_is_the_diameter_of_a_tree_and_takes_four_searches(clusters):
    random = np.random.default_rng(3)
    parents = [int(random.integers(0, v)) for v in range(1, 300)]
    with mg.from_edges(parents, range(1, 300), random.integers(1, 9, 299), cluster=clusters[3]) as g:
        for weighted in (False, True):
            with bounded(g, weighted) as bounds:
                assert bounds.sweep() == mg.diameter(g, weighted=weighted)
                assert bounds.num_searches == 4


def test_sums_of_floats_in_another_order_do_not_mislead(clusters):
    # From one end the path is longer than from the other, by rounding.
    tenths = [0.1] * 6 + [0.7, 1e-17, 0.3] * 5
    case = make_case("tenths", len(tenths) + 1, [(v, v + 1, w) for v, w in enumerate(tenths)], np.float64)
    wanted = oracle(case, weighted=True)
    assert wanted[0] != wanted[-1]
    with graph_of(case, clusters[2]) as g:
        np.testing.assert_array_equal(mg.eccentricity(g), wanted)
        assert (mg.diameter(g), mg.radius(g)) == (wanted.max(), wanted.min())


def test_bounds_are_not_used_where_sums_may_be_far_off(clusters, monkeypatch):
    assert slack_of(np.dtype(np.int64), 10**9) is None
    assert slack_of(np.dtype(np.float32), 10**8) == np.inf
    assert 1 < slack_of(np.dtype(np.float64), 10**8) < 1.0001
    monkeypatch.setattr("mgraph.api.eccentricity.slack_of", lambda dtype, n: np.inf)
    case = ringed(random_case(1, num_vertices=30).with_weights(np.float32))
    with graph_of(case, clusters[2]) as g, bounded(g, True) as bounds:
        assert bounds.narrow("diameter") == oracle(case, weighted=True).max()
        assert bounds.num_searches == 30


def test_columns_and_vertices_are_named_by_labels(clusters):
    with mg.from_edges(["a", "b", "c"], ["b", "c", "d"], [1, 9, 1], cluster=clusters[2]) as g:
        hops = mg.eccentricity(g, weighted=False)
        assert (hops["a"], (hops == hops.min()).vertices().tolist()) == (3, ["b", "c"])
        assert mg.eccentricity(g, ["d", "b"]).tolist() == [11, 10]


def test_results_do_not_stay_on_the_ranks(clusters):
    with graph_of(ZOO["grid"], clusters[2]) as g, mg.largest_component(g) as part:
        mg.bfs(part, part.labels[0]).close()
        before = [len(objects) for objects in clusters[2]._objects]
        assert mg.diameter(part) >= mg.radius(part)
        mg.bfs(part, part.labels[0]).close()
        assert [len(objects) for objects in clusters[2]._objects] == before


def test_wrong_graphs_and_arguments_are_refused(clusters):
    cluster = clusters[2]
    for case, message in (
        (ZOO["no-vertex"], "edges has no vertex, and no eccentricity"),
        (ZOO["isolated"], "edges is not connected, .* isolated vertices; mg.largest_component"),
        (make_case("two", 4, [(0, 1), (2, 3)]), "is not connected, .*: 2 of 4 vertices are reached from 0; mg.largest"),
        (
            make_case("arc", 2, [(0, 1)], directed=True),
            r"is not strongly connected, .*: 1 of 2 .*; mg.largest_component\(g, strong=True\) is",
        ),
    ):
        with graph_of(case, cluster) as g:
            for refused in (mg.diameter, mg.radius, mg.eccentricity, lambda g: mg.diameter(g, exact=False)):
                with pytest.raises(mg.UsageError, match=message):
                    refused(g)
    with graph_of(make_case("one", 1, []).unweighted, cluster) as g:
        assert (mg.diameter(g), mg.radius(g), mg.eccentricity(g).to_numpy().tolist()) == (0, 0, [0])
        with pytest.raises(mg.UsageError, match="the graph has no weights"):
            mg.diameter(g, weighted=True)
        with pytest.raises(mg.UsageError, match="exact 'no' is not True or False"):
            mg.diameter(g, exact="no")
        with pytest.raises(mg.UsageError, match="root 1 is not a vertex"):
            mg.eccentricity(g, [1])
    with graph_of(ZOO["path"], cluster, layout="compact") as g, pytest.raises(mg.UsageError, match="needs rows"):
        mg.radius(g)
