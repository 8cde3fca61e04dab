"""pagerank as users call it: every graph, rank count and order against the oracle, exact fractions and NetworkX."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import oracles
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import FEW_RANKS, RANKS
from pagerank_checks import check_pagerank, check_pagerank_by_bins
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import ORDERS, STARTABLE, graph_of
from zoo import make_case

import mgraph as mg
from mgraph.algorithms.pagerank.fixed_point import ONE
from mgraph.cluster.in_process import InProcessCluster

# Each dtype of weights takes seconds to compile.
OF_FLOATS = [case for case in STARTABLE if case.weights.dtype == np.float32]
# The third vertex has two arcs in, the last none at all.
SMALL = make_case("small", 5, [(0, 1), (0, 2), (1, 2), (2, 0)], directed=True)


def networkx_of(case, *, weighted=True):
    """Return a graph of NetworkX without the loops and the heavier parallel edges."""
    graph = (nx.DiGraph if case.directed else nx.Graph)()
    graph.add_nodes_from(range(case.num_vertices))
    arcs = oracles.arcs_of(case, weighted=weighted)
    graph.add_weighted_edges_from((u, v, float(w)) for (u, v), w in arcs.items())
    return graph


@pytest.mark.widens
@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", OF_FLOATS, ids=lambda case: case.name)
def test_scores_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_pagerank(case, cluster, order)


@pytest.mark.ci
@pytest.mark.covering(ci_every=2)
@pytest.mark.parametrize("case", [case for case in STARTABLE if case not in OF_FLOATS], ids=lambda case: case.name)
def test_scores_by_weights_of_other_dtypes_equal_the_oracle(case, clusters):
    for num_ranks in FEW_RANKS:
        check_pagerank(case, clusters[num_ranks], "degree")


@pytest.mark.covering(every=6)
@pytest.mark.parametrize(
    "case", [one for one in OF_FLOATS if (one.sources != one.targets).any()], ids=lambda case: case.name
)
def test_scores_by_bins_on_an_emulated_gpu_equal_the_oracle(case):
    with InProcessCluster(1, make_backend=lambda: EmulatedBackend(seed=3, block=32)) as cluster:
        check_pagerank_by_bins(case, cluster, "degree")


@examples(150)
@given(graphs(dtypes=("float32",)), orders, rank_counts, st.sampled_from([0.0, 0.3, 0.85, 1.0]), st.data())
def test_scores_equal_networkx(clusters, case, order, num_ranks, damping, data):
    """As far as NetworkX's own floats are exact, with its iterations."""
    values = st.sampled_from([0, 1, 2.5, 1e-3])
    given = data.draw(st.none() | st.lists(values, min_size=case.num_vertices, max_size=case.num_vertices))
    if given is not None and not any(given):
        given = None
    dict_of = None if given is None else dict(enumerate(given))
    with graph_of(case, clusters[num_ranks], order) as g:
        try:
            wanted = nx.pagerank(networkx_of(case), damping, dict_of, max_iter=50, backend="networkx")
        except nx.PowerIterationFailedConvergence:
            with pytest.raises(mg.NotConverged, match="pagerank has not converged in 50 iterations: the last changed"):
                mg.pagerank(g, damping, personalization=given, max_iterations=50)
            return
        with mg.pagerank(g, damping, personalization=given, max_iterations=50) as found:
            np.testing.assert_allclose(found.scores.to_numpy(), list(wanted.values()), rtol=0, atol=1e-14)
            # Without damping, rounded totals of weights may bring a little more than all.
            assert abs(found.scores.sum() - 1) < 1e-14
            mg.validate(found)


def exact_scores(case, damping, iterations):
    """Return the fractions that iterations without rounding find."""
    n = case.num_vertices
    rows = oracles.rows_of(oracles.arcs_of(case, weighted=False), n)
    scores = [Fraction(1, n)] * n
    for _ in range(iterations):
        received = [Fraction(0)] * n
        for u, row in enumerate(rows):
            for v, _ in row:
                received[v] += damping * scores[u] / len(row)
        rest = (1 - sum(received)) / n
        scores = [part + rest for part in received]
    return scores


@examples(60)
@given(graphs(max_vertices=9, max_edges=20))
def test_error_is_within_its_bound(case):
    damping = Fraction(0.85)
    found = oracles.pagerank(case, 0.85, 6, weighted=False)
    exact = exact_scores(case, damping, 6)
    error = sum(abs(Fraction(a, ONE) - b) for a, b in zip(found, exact, strict=True))
    num_arcs = len(oracles.arcs_of(case))
    assert error <= Fraction(2 * num_arcs + 3 * case.num_vertices, ONE) / (1 - damping)


def test_scores_do_not_depend_on_weights_that_are_in_proportion(clusters):
    case = replace(SMALL, weights=np.full(len(SMALL.sources), 3.0, np.float32))
    with graph_of(case, clusters[1]) as g:
        a, b = (mg.pagerank(g, weighted=flag).scores.to_numpy() for flag in (True, False))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-16)


def test_labels_name_the_vertices_of_personalization(clusters):
    for num_ranks in (1, 3):
        with mg.from_edges(["x", "b", "b"], ["b", "a", "x"], directed=True, cluster=clusters[num_ranks]) as g:
            found = mg.pagerank(g, 0.5, personalization={"b": 2}, tolerance=1e-12)
            # b has 1/2 and 1/2 of the score of x, x has 1/4 of that of b.
            np.testing.assert_allclose(found.scores[["a", "b", "x"]], [1 / 6, 2 / 3, 1 / 6], rtol=0, atol=1e-11)
            assert found.scores.argmax() == "b"


def test_result_says_how_it_was_found_and_is_written(clusters, tmp_path):
    with graph_of(SMALL, clusters[3]) as g:
        found = mg.pagerank(g)
        assert found.iterations == len(found.stats.supersteps) and found.stats.variant == "pagerank.pull"
        assert {*found.stats.seconds} - {"compile"} == {"prepare", "iterate", "translate"}
        assert 0 < found.change < 1e-6 * 5 and max(found.stats.bytes_sent) > 0
        assert repr(found).startswith(f"<pagerank of edges: 5 vertices, {found.iterations} iterations, ")
        found.write(tmp_path / "scores.npz")
        with np.load(tmp_path / "scores.npz") as archive:
            np.testing.assert_array_equal(archive["scores"], found.scores.to_numpy())
        found.close()
        assert repr(found) == "<pagerank of edges: closed>"


def test_exactly_the_iterations_requested_are_made(clusters):
    with graph_of(SMALL, clusters[1]) as g:
        assert mg.pagerank(g, tolerance=None, max_iterations=7).iterations == 7
        # Integers come to rest.
        with mg.pagerank(g, tolerance=None, max_iterations=1000) as found:
            assert found.change == 0
            mg.validate(found)


REFUSED = {
    "damping is 1.5: give a number from 0 to 1": {"damping": 1.5},
    "damping is -0.1: give a number that is 0 or more": {"damping": -0.1},
    "damping is 'a': give a number": {"damping": "a"},
    "tolerance is nan: give a number that is 0 or more": {"tolerance": np.nan},
    "max_iterations is 0: give 1 or more": {"max_iterations": 0},
    "vertex of personalization 7 is not": {"personalization": {7: 1}},
    "a value of personalization is -1: give numbers that are 0 or more": {"personalization": {1: 2, 2: -1}},
    "a value of personalization is nan": {"personalization": {1: np.nan}},
    "the values of personalization sum up to 0: give one that is more than 0": {"personalization": {1: 0}},
    "the values of personalization sum up to 0": {"personalization": {}},
    "personalization has the shape .4,.: give a number for each of the 5 vertices": {"personalization": [1, 2, 3, 4]},
    "personalization 'abc' is not made of numbers": {"personalization": "abc"},
    "the graph has no weights: leave out weighted": {"weighted": True},
    "weighted 3 is not True or False": {"weighted": 3},
}


@pytest.mark.parametrize("message", REFUSED)
def test_invalid_arguments_are_refused(message, clusters):
    with graph_of(SMALL.unweighted, clusters[1]) as g, pytest.raises(mg.UsageError, match=message):
        mg.pagerank(g, **REFUSED[message])


def test_graphs_without_scores_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.pagerank([(0, 1)])
    with mg.from_edges([], [], cluster=clusters[1]) as g, pytest.raises(mg.UsageError, match="has no vertex, and no"):
        mg.pagerank(g)
    for weights, message in (
        ([1.0, -1.0], "pagerank needs weights that are not negative, and one is -1"),
        ([1.0, 1e-280], "the weights out of 1 vertices sum up to less than 2.-900 or more than"),
        ([1e308, 1.0], "the weights out of 1 vertices sum up to less than 2.-900 or more than"),
    ):
        with (
            mg.from_edges([0, 1], [1, 2], weights, directed=True, cluster=clusters[3]) as g,
            pytest.raises(mg.InputError, match=message),
        ):
            mg.pagerank(g)
