"""Spanning forests as users call them: every graph, number of ranks and order against naive Kruskal, to the bit."""

from __future__ import annotations

import networkx
import numpy as np
import oracles
import pytest
import scipy.sparse
from forest_checks import FORESTS, STAIRS, WIDE, check, undirected
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import ORDERS, graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.algorithms.common.exact_sum import as_float, exact_sum
from mgraph.algorithms.spanning_forest import filter_boruvka as loop
from mgraph.algorithms.spanning_forest import local_edges as own_edges


@pytest.fixture
def filtering(monkeypatch):
    """Make small graphs filter, from few samples, in lists that are too short at first."""
    monkeypatch.setattr(loop, "LIGHT", 1)
    monkeypatch.setattr(loop, "SHARE", 10**6)
    monkeypatch.setattr(own_edges, "SAMPLES", 16)
    monkeypatch.setattr(own_edges, "MIN_LIGHT", 0)
    monkeypatch.setattr(own_edges.Sample, "capacity", lambda *_: 5)


@pytest.mark.covering(every=6)
@pytest.mark.widens
@pytest.mark.parametrize("case", FORESTS, ids=lambda case: case.name)
def test_forests_equal_kruskals_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                for maximum in (False, True):
                    with mg.minimum_spanning_forest(g, maximum=maximum) as forest:
                        check(forest, case, order, maximum)
                        mg.validate(forest)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("case", [case for case in FORESTS if case.num_vertices >= 200], ids=lambda case: case.name)
def test_light_edges_first(case, num_ranks, clusters, filtering, monkeypatch):
    for order in ORDERS:
        for few_outside, method in (0, "outside"), (10**6, "heavy"):
            monkeypatch.setattr(loop, "FEW_OUTSIDE", few_outside)
            with graph_of(case, clusters[num_ranks], order) as g:
                forest = mg.minimum_spanning_forest(g)
                check(forest, case, order)
                if len(case.sources) > 8 * case.num_vertices - 1:
                    assert method in [step["method"] for step in forest.stats.supersteps]


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_weight_and_arc_that_do_not_fit_one_word(num_ranks, clusters, filtering, monkeypatch):
    monkeypatch.setattr(own_edges, "KEY_BITS", {})
    for case in (random_case(0, directed=False), random_case(4, directed=False), ZOO["complete"], STAIRS):
        for order in ORDERS:
            with graph_of(case, clusters[num_ranks], order) as g:
                check(mg.minimum_spanning_forest(g), case, order)


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_positions_beyond_31_bits_are_compared_apart(num_ranks, clusters, monkeypatch):
    monkeypatch.setattr(own_edges, "PACKED_POSITIONS", 0)
    case = random_case(2, directed=False)
    with graph_of(case, clusters[num_ranks]) as g:
        check(mg.minimum_spanning_forest(g), case, g.info.order)


def test_forests_with_hubs_equal_kruskals(clusters, monkeypatch):
    monkeypatch.setattr(loop, "HUB", 8)
    for case in (random_case(5, directed=False), ZOO["star"], ZOO["star-of-stars"]):
        for order in ORDERS:
            with graph_of(case, clusters[2], order) as g:
                check(mg.minimum_spanning_forest(g), case, order)


@examples(60, suppress_health_check=list(HealthCheck))
@given(case=graphs(max_vertices=30, max_edges=120), num_ranks=rank_counts, order=orders, maximum=st.booleans())
def test_many_equal_weights(case, num_ranks, order, maximum, clusters):
    case = undirected(case)
    with graph_of(case, clusters[num_ranks], order) as g:
        forest = mg.minimum_spanning_forest(g, maximum=maximum)
        check(forest, case, order, maximum)
        mg.validate(forest)


def test_forests_have_the_same_bytes_for_any_number_of_ranks(clusters):
    # Said once without an oracle.
    case = random_case(1, directed=False)
    results = set()
    for cluster in clusters.values():
        with graph_of(case, cluster) as g:
            forest = mg.minimum_spanning_tree(g)
            columns = tuple(np.asarray(column).tobytes() for column in forest)
            results.add((columns, forest.total_weight, forest.sources.digest(), forest.weights.digest()))
    assert len(results) == 1


@pytest.mark.parametrize("case", [random_case(s, directed=False) for s in range(6)], ids=lambda case: case.name)
def test_totals_are_those_of_scipy_and_networkx(case, clusters):
    arcs = oracles.arcs_of(case)
    edges = {(u, v): float(w) for (u, v), w in arcs.items() if u < v}
    # Older SciPy takes no indices of 64 bits.
    rows, columns = np.array(list(edges), np.int32).reshape(-1, 2).T
    # To SciPy an explicit zero is no edge; weights increased by one have the same forests.
    values = np.array(list(edges.values())) + 1
    matrix = scipy.sparse.csr_array((values, (rows, columns)), shape=(case.num_vertices,) * 2)
    theirs = scipy.sparse.csgraph.minimum_spanning_tree(matrix)
    tree = networkx.Graph()
    tree.add_weighted_edges_from((u, v, w) for (u, v), w in edges.items())
    with graph_of(case, clusters[2]) as g:
        forest = mg.minimum_spanning_forest(g)
        heaviest = mg.minimum_spanning_forest(g, maximum=True)
    assert forest.num_edges == theirs.nnz
    assert forest.total_weight == pytest.approx(theirs.sum() - theirs.nnz, rel=1e-9)
    least = networkx.minimum_spanning_tree(tree).size("weight")
    most = networkx.maximum_spanning_tree(tree).size("weight")
    assert forest.total_weight == pytest.approx(least, rel=1e-9)
    assert heaviest.total_weight == pytest.approx(most, rel=1e-9)


def test_totals_are_exact(clusters):
    line = [(v, v + 1) for v in range(9)]
    # Summed from the left, float64 forgets the small ones, and integers wrap.
    floats = make_case(
        "floats", 10, [(*e, w) for e, w in zip(line, [1e16, 1.0, -1e16, 1.0] * 3, strict=False)], np.float64
    )
    integers = make_case("integers", 10, [(*e, 2**62) for e in line], np.int64)
    negative = make_case("negative", 10, [(*e, -(2**62) - 1) for e in line], np.int64)
    tiny = make_case("tiny", 3, [(0, 1, 5e-324), (1, 2, 5e-324)], np.float64)
    totals = {floats: 1e16 + 4.0, integers: 9 * 2**62, negative: -9 * (2**62 + 1), tiny: 1e-323}
    for case, total in totals.items():
        for num_ranks in (1, 3):
            with graph_of(case, clusters[num_ranks]) as g:
                assert mg.minimum_spanning_forest(g).total_weight == total
    assert as_float(2 * exact_sum(np, np.array([1.7e308]))) == np.inf
    assert as_float(-2 * exact_sum(np, np.array([1.7e308]))) == -np.inf


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (ZOO["dag"], "the graph is directed: a spanning forest needs an undirected one"),
        (ZOO["grid"].unweighted, "the graph has no weights: a spanning forest needs them"),
    ],
)
def test_graph_without_a_forest_is_refused(case, message, clusters):
    source = (case.sources, case.targets, case.weights)
    g = mg.from_edges(*source, num_vertices=case.num_vertices, directed=case.directed, cluster=clusters[2])
    with pytest.raises(mg.UsageError, match=message):
        mg.minimum_spanning_forest(g)
    g.close()
    with pytest.raises(mg.GraphClosed):
        mg.minimum_spanning_forest(g)


def test_forest_is_a_result_like_any_other(clusters, tmp_path):
    case = ZOO["isolated"]
    with graph_of(case, clusters[3]) as g:
        forest = mg.minimum_spanning_forest(g)
        assert repr(forest).startswith("<minimum spanning forest of edges: 4 edges in 5 trees, total weight 7, ")
        assert repr(forest.sources) == "<Column sources: 4 edges, int64>"
        assert forest.sources[1] == 1
        assert forest.weights[-1] == 1
        assert forest.targets[:2].tolist() == [2, 7]
        with pytest.raises(IndexError, match=r"edge 4 is not in 0\.\.3"):
            forest.sources[4]
        assert list(forest.to_pandas()) == ["source", "target", "weight"]
        forest.write(tmp_path / "f.csv")
        assert (tmp_path / "f.csv").read_text().splitlines()[1] == "1,2,4"
        array = forest.weights.to_dask_array()
        assert array.compute(scheduler="synchronous").tolist() == np.asarray(forest.weights).tolist()
        assert [step["method"] for step in forest.stats.supersteps][:2] == ["rows", "light"]
        assert forest.stats.total_s > 0
        assert all(sent > 0 for sent in forest.stats.bytes_sent)
        forest.close()
        assert repr(forest) == "<minimum spanning forest of edges: closed>"
        with pytest.raises(mg.GraphClosed):
            forest.sources.to_numpy()
        with mg.minimum_spanning_forest(g, maximum=True) as heaviest:
            assert repr(heaviest).startswith("<maximum spanning forest of edges: ")


def test_bytes_exchanged_are_proportional_to_trees(clusters):
    sent = {}
    for edge_factor in (4, 32):
        with mg.rmat(10, edge_factor=edge_factor, cluster=clusters[4]) as g:
            forest = mg.minimum_spanning_forest(g)
            sent[edge_factor] = max(forest.stats.bytes_sent) / (g.num_vertices - g.info.num_isolated)
    # Eight times the edges, and not even as much.
    assert sent[32] < 1.2 * sent[4] + 1


def test_too_short_list_is_allocated_again(clusters):
    with graph_of(random_case(2, directed=False), clusters[1]) as g:
        shard = clusters[1]._objects[0][g._key]
    own = own_edges.OwnEdges(shard, shard.rows.weights)
    labels = np.arange(shard.num_owned, dtype=shard.partition.dtype)
    short, long = (own.up_to(labels, own_edges.ALL, room) for room in (1, own.num_arcs))
    assert len(short) == len(long) == own.num_arcs // 2
    assert sorted(short.keys.tolist()) == sorted(long.keys.tolist())
    rows = own.rows_outside(labels)
    short, long = (own.outside(labels, rows, room) for room in (1, own.num_arcs))
    assert sorted(short.tolist()) == sorted(long.tolist())


def test_wide_weights_are_as_they_are(clusters):
    with graph_of(WIDE, clusters[1]) as g:
        assert g.info.weight_dtype == "int64"
        assert mg.minimum_spanning_forest(g).weights.to_numpy().min() == -(2**63)
