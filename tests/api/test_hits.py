"""hits as users call it: every graph, rank count and order against the oracle, and a dense eigenvector."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hits_checks import OF_HUBS, check_hits
from hypothesis import assume, given
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import ORDERS, graph_of
from zoo import make_case

import mgraph as mg

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

# Each dtype of weights takes seconds to compile.
OF_FLOATS = [case for case in OF_HUBS if case.weights.dtype == np.float32]
# The third vertex has two arcs in, the last none at all.
SMALL = make_case("small", 5, [(0, 1), (0, 2), (1, 2), (2, 0)], directed=True)


@pytest.mark.widens
@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", OF_FLOATS, ids=lambda case: case.name)
def test_scores_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_hits(case, cluster, order)


@examples(25)
@given(graphs(dtypes=("float32",)), orders, rank_counts)
def test_scores_are_what_the_start_becomes_in_the_space_of_largest_growth(clusters, case, order, num_ranks):
    """By the eigenvectors of a dense matrix: power iteration projects its start on those of the largest value."""
    arcs = oracles.arcs_of(case)
    least = min((weight for weight in arcs.values() if weight > 0), default=0)
    assume(least and max(arcs.values()) < 1000 * least)
    matrix = np.zeros((case.num_vertices, case.num_vertices))
    for (u, v), weight in arcs.items():
        matrix[u, v] = weight
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    is_top = values > values[-1] * (1 - 1e-9)
    # Otherwise many iterations are needed.
    assume(is_top.all() or values[~is_top][-1] < 0.5 * values[-1])
    hubs = vectors[:, is_top] @ (vectors[:, is_top].T @ np.ones(case.num_vertices))
    authorities = hubs @ matrix
    with (
        graph_of(case, clusters[num_ranks], order) as g,
        mg.hits(g, tolerance=1e-14, max_iterations=1000) as found,
    ):
        np.testing.assert_allclose(found.hubs.to_numpy(), hubs / hubs.sum(), rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.authorities.to_numpy(), authorities / authorities.sum(), rtol=0, atol=1e-11)
        mg.validate(found)


def test_labels_name_the_vertices(clusters):
    for num_ranks in (1, 3):
        with mg.from_edges(["x", "b", "b"], ["a", "a", "c"], directed=True, cluster=clusters[num_ranks]) as g:
            found = mg.hits(g)
            assert (found.hubs.argmax(), found.authorities.argmax()) == ("b", "a")


def test_result_says_how_it_was_found_and_is_written(clusters, tmp_path):
    with graph_of(SMALL.unweighted, clusters[3]) as g:
        found = mg.hits(g)
        assert found.iterations == len(found.stats.supersteps) and found.stats.variant == "hits.pull"
        assert {*found.stats.seconds} - {"compile"} == {"prepare", "iterate", "translate"}
        assert 0 < found.change < 1e-8 and max(found.stats.bytes_sent) > 0
        assert repr(found).startswith(f"<hits of edges: 5 vertices, {found.iterations} iterations, ")
        found.write(tmp_path / "scores.npz")
        with np.load(tmp_path / "scores.npz") as archive:
            np.testing.assert_array_equal(archive["hubs"], found.hubs.to_numpy())
            np.testing.assert_array_equal(archive["authorities"], found.authorities.to_numpy())
        found.close()
        assert repr(found) == "<hits of edges: closed>"


def test_exactly_the_iterations_requested_are_made(clusters):
    with graph_of(SMALL, clusters[1]) as g:
        assert mg.hits(g, tolerance=None, max_iterations=7).iterations == 7
        with pytest.raises(mg.NotConverged, match="hits has not converged in 2 iterations: the last changed all hub"):
            mg.hits(g, max_iterations=2)


REFUSED = {
    "tolerance is -1: give a number that is 0 or more": {"tolerance": -1},
    "tolerance is inf: give a number": {"tolerance": np.inf},
    "max_iterations is 0: give 1 or more": {"max_iterations": 0},
    "normalized 'no' is not True or False": {"normalized": "no"},
    "the graph has no weights: leave out weighted": {"weighted": True},
}


@pytest.mark.parametrize("message", REFUSED)
def test_invalid_arguments_are_refused(message, clusters):
    with graph_of(SMALL.unweighted, clusters[1]) as g, pytest.raises(mg.UsageError, match=message):
        mg.hits(g, **REFUSED[message])


def test_graphs_without_hubs_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.hits([(0, 1)])
    for edges in ([], []), ([1], [1]):
        with mg.from_edges(*edges, cluster=clusters[1]) as g, pytest.raises(mg.UsageError, match="has no edge, and no"):
            mg.hits(g)
    for weights, message in (
        ([1.0, -1.0], "hits needs weights that are not negative, and one is -1"),
        ([0.0, 0.0], "the greatest weight is 0.0, and hits needs one between"),
        ([1e-300, 1e-280], "the greatest weight is 1e-280, and hits needs one between"),
    ):
        with (
            mg.from_edges([0, 1], [1, 2], weights, directed=True, cluster=clusters[3]) as g,
            pytest.raises(mg.InputError, match=message),
        ):
            mg.hits(g)
