"""strongly_connected_components as users call it: every graph, rank count and order against the oracle and SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
import scipy.sparse
from component_checks import check_strong_components, planted_components
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from scipy.sparse import csgraph
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, make_case

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.strong_components import coloring
from mgraph.algorithms.strong_components.labels import labels_of_users
from mgraph.shard.in_rows import require_in_rows

NAMES = ["kiwi", "fig", "apple", "plum", "pear", "date", "lime", "sloe", "nut"]
# Vertices of the graphs with a number of rounds that is checked.
LONG = 20_000


def by_scipy(case):
    """Return the smallest vertex of each vertex's strong component, computed by SciPy."""
    n = case.num_vertices
    arcs = scipy.sparse.coo_array((np.ones(len(case.sources)), (case.sources, case.targets)), shape=(n, n))
    if not case.directed:
        arcs = arcs + arcs.T
    number, of_vertex = csgraph.connected_components(arcs, directed=True, connection="strong")
    smallest = np.full(number, n)
    np.minimum.at(smallest, of_vertex, np.arange(n))
    return smallest[of_vertex]


def named(name, sources, targets, names=None):
    """Return a directed graph of these arcs between LONG vertices, with ids permuted by `names`."""
    case = make_case(name, LONG, [], directed=True)
    ends = [np.asarray(end) if names is None else names[end] for end in (sources, targets)]
    return replace(case, sources=ends[0].astype(np.uint32), targets=ends[1].astype(np.uint32), weights=None)


def two_cycles():
    """Return the arcs of a chain of cycles of two."""
    first = np.arange(0, LONG, 2)
    return np.concatenate([first, first + 1, first[:-1] + 1]), np.concatenate([first + 1, first, first[1:]])


def dag(width):
    """Return random arcs that lead from a smaller to a larger number, at most `width` larger."""
    random = np.random.default_rng(width)
    first = random.integers(0, LONG - 1, 5 * LONG)
    return first, np.minimum(first + random.integers(1, width, len(first)), LONG - 1)


@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_labels_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_strong_components(case, cluster, order)


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize(("num_parts", "size", "degree"), [(5, 200, 3), (2, 700, 8), (40, 30, 2), (1, 1500, 2)])
def test_labels_of_random_arcs_equal_scipy(num_parts, size, degree, num_ranks, clusters):
    case = planted_components(num_ranks, num_parts, size, degree, directed=True)
    for order in ORDERS:
        with graph_of(case, clusters[num_ranks], order) as g, mg.strongly_connected_components(g) as found:
            np.testing.assert_array_equal(found.labels.to_numpy(), by_scipy(case))
            mg.validate(found)


def rank_program(shard, comm):
    require_in_rows(shard, comm)
    return labels_of_users(shard, comm, coloring.find_strong_components(shard, comm, Trace(shard.backend, comm)))


@pytest.mark.parametrize("list_share", [0, 8, 1 << 30])
@examples(100)
@given(graphs(max_vertices=40, max_edges=90), orders, rank_counts)
def test_labels_of_drawn_graphs_equal_the_oracle(list_share, case, order, num_ranks):
    """Whether ranks exchange lists of colors, all colors, or either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coloring, "LIST_SHARE", list_share)
        labels = np.concatenate(run_on_ranks(rank_program, build_shards(case, num_ranks, order)))
    np.testing.assert_array_equal(labels, oracles.strong_components(case))
    np.testing.assert_array_equal(labels, by_scipy(case))


@examples(50)
@given(graphs(max_vertices=9, max_edges=20), st.data())
def test_labels_are_smallest_labels_where_vertices_have_them(clusters, case, data):
    names = np.array(data.draw(st.permutations(NAMES)))
    names = names[: case.num_vertices]
    case = replace(case, directed=True)
    if not len(case.sources):
        return
    with mg.from_edges(names[case.sources], names[case.targets], directed=True, cluster=clusters[3]) as g:
        labels = g.labels.to_numpy().tolist()
        found = mg.strongly_connected_components(g).labels.to_numpy().tolist()
    components = oracles.strong_components(case)
    of_name = dict(zip(names.tolist(), components.tolist(), strict=True))
    assert dict(zip(labels, found, strict=True)) == {
        name: min(other for other in labels if of_name[other] == of_name[name]) for name in labels
    }


@pytest.mark.parametrize("num_ranks", [1, 3, 4])
def test_labels_of_an_undirected_graph_are_those_of_its_components(num_ranks, clusters):
    with mg.rmat(10, edge_factor=2, cluster=clusters[num_ranks]) as g:
        found = mg.strongly_connected_components(g)
        weak = mg.connected_components(g)
        mg.validate(found)
        assert found.labels.digest() == weak.labels.digest()
        assert (found.num_components, found.stats.variant) == (weak.num_components, weak.stats.variant)


shuffled = np.random.default_rng(7).permutation(LONG)
LONG_GRAPHS = {
    "ring": (named("ring", np.arange(LONG), (np.arange(LONG) + 1) % LONG), 200),
    "ring against the ids": (named("ring", (np.arange(LONG) + 1) % LONG, np.arange(LONG)), 200),
    "shuffled ring": (named("ring", np.arange(LONG), (np.arange(LONG) + 1) % LONG, shuffled), 300),
    "shuffled path": (named("path", np.arange(LONG - 1), np.arange(1, LONG), shuffled), 1500),
    "cycles of two": (named("cycles", *two_cycles()), 1500),
    "shuffled cycles of two": (named("cycles", *two_cycles(), shuffled), 2000),
    "acyclic": (named("acyclic", *dag(LONG)), 100),
    "deep acyclic": (named("acyclic", *dag(20), shuffled), 2000),
}


@pytest.mark.ci
@pytest.mark.covering(every=2)
@pytest.mark.widens
@pytest.mark.parametrize("name", LONG_GRAPHS)
def test_long_ways_take_few_rounds(name, clusters):
    """Far fewer than there are vertices on the longest way."""
    case, most = LONG_GRAPHS[name]
    for num_ranks in by_tier(FEW_RANKS, FEW_RANKS, RANKS):
        for order in ORDERS:
            with graph_of(case, clusters[num_ranks], order) as g, mg.strongly_connected_components(g) as found:
                np.testing.assert_array_equal(found.labels.to_numpy(), by_scipy(case))
                assert len(found.stats.supersteps) <= most


def test_ranks_agree_to_the_bit_and_report_what_they_did(clusters):
    case = planted_components(3, 4, 500, 5, directed=True)
    digests = set()
    for num_ranks in RANKS:
        with graph_of(case, clusters[num_ranks], "degree") as g:
            found = mg.strongly_connected_components(g)
            digests.add(found.labels.digest())
            assert found.num_components == len(set(found.labels))
            stats = found.stats
            methods = {"trim", "forward", "backward"} if num_ranks > 1 else {"depth"}
            assert stats.variant == f"strong_components.{'coloring' if num_ranks > 1 else 'depth_first'}"
            assert {*stats.seconds} - {"compile"} == {"prepare", "find", "translate"}
            assert {step["method"] for step in stats.supersteps} == methods
            assert stats.supersteps[0]["frontier"] == g.num_vertices - g.info.num_isolated
            assert (max(stats.bytes_sent) > 0) == (num_ranks > 1)
    assert len(digests) == 1


def test_result_prints_itself_and_is_written(clusters, tmp_path):
    with mg.from_edges([0, 1, 2, 2], [1, 2, 1, 3], num_vertices=5, directed=True, cluster=clusters[3]) as g:
        found = mg.strongly_connected_components(g)
        assert repr(found).startswith("<strong components of edges: 4 components of 5 vertices, ")
        found.write(tmp_path / "c.npz")
        with np.load(tmp_path / "c.npz") as archive:
            assert archive["labels"].tolist() == [0, 1, 1, 3, 4]


def test_invalid_arguments_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.strongly_connected_components([(0, 1)])
    with (
        graph_of(replace(ZOO["path"], directed=True), clusters[1], layout="compact") as g,
        pytest.raises(mg.UsageError, match="strongly_connected_components needs rows, and edges has the compact"),
    ):
        mg.strongly_connected_components(g)
