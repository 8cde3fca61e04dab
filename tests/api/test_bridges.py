"""bridges as users call it: every graph, rank count and order against the oracle, and NetworkX."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import oracles
import pytest
from bridge_checks import check_bridges
from hypothesis import given
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import GRAPHS, ORDERS
from zoo import make_case

import mgraph as mg

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

UNDIRECTED = [case for case in GRAPHS if not case.directed and case.num_vertices]
# Two triangles, a bridge between them, a path, and a vertex alone.
SMALL = make_case("small", 9, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (6, 7)], directed=False)


@pytest.mark.widens
@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", [SMALL, *UNDIRECTED], ids=lambda case: case.name)
def test_bridges_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    case = case.unweighted
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_bridges(case, cluster, order)


@examples(60)
@given(graphs(dtypes=("float32",)), orders, rank_counts)
def test_bridges_equal_networkx(clusters, case, order, num_ranks):
    case = replace(case, directed=False).unweighted
    graph = nx.Graph(list(oracles.arcs_of(case)))
    wanted = sorted(tuple(sorted(edge)) for edge in nx.bridges(graph, backend="networkx"))
    assert oracles.bridges(case) == wanted
    check_bridges(case, clusters[num_ranks], order)


def test_long_path_with_a_chord_has_bridges_outside_of_it(clusters):
    n = 3000
    ends = np.arange(n - 1)
    sources = np.append(ends, 1000)
    targets = np.append(ends + 1, 2000)
    for num_ranks in FEW_RANKS:
        with mg.from_edges(sources, targets, cluster=clusters[num_ranks]) as g, mg.bridges(g) as found:
            outside = ends[(ends < 1000) | (ends >= 2000)]
            np.testing.assert_array_equal(found.sources.to_numpy(), outside)
            mg.validate(found)


def test_parallel_edges_are_one_and_labels_name_the_ends(clusters, tmp_path):
    sources = ["a", "b", "a", "c", "c"]
    targets = ["b", "a", "c", "d", "a"]
    with mg.from_edges(sources, targets, cluster=clusters[3]) as g:
        found = mg.bridges(g)
        ends, others = (column.to_numpy().tolist() for column in found)
        assert {*map(frozenset, zip(ends, others, strict=True))} == {*map(frozenset, ("ab", "ac", "cd"))}
        assert found.stats.variant == "bridges.cover" and "cover" in found.stats.seconds
        assert repr(found).startswith("<bridges of edges: 3 edges, ")
        found.write(tmp_path / "bridges.csv")
        assert (tmp_path / "bridges.csv").read_text().splitlines()[0] == "source,target"
        found.close()
        assert repr(found) == "<bridges of edges: closed>"


def test_graphs_without_bridges_give_none(clusters):
    for edges in ([0, 1, 2], [1, 2, 0]), ([1], [1]):
        with mg.from_edges(*edges, cluster=clusters[3]) as g, mg.bridges(g) as found:
            assert not found and found.num_edges == 0 and len(found.sources.to_numpy()) == 0
            mg.validate(found)


def test_graphs_that_cannot_have_bridges_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.bridges([(0, 1)])
    for how, message in (
        ({"directed": True}, "the graph is directed: bridges needs an undirected one"),
        ({"layout": "compact"}, "bridges"),
    ):
        with mg.from_edges([0], [1], cluster=clusters[1], **how) as g, pytest.raises(mg.UsageError, match=message):
            mg.bridges(g)
    with mg.from_edges([], [], cluster=clusters[1]) as g, pytest.raises(mg.UsageError, match="has no vertex, and no"):
        mg.bridges(g)
