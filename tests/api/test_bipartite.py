"""is_bipartite as users call it: sides and odd cycles against the oracle, for any number of ranks and order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from on_ranks import FEW_RANKS
from side_checks import check_sides
from strategies import graphs, orders
from tiers import examples
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, make_case

import mgraph as mg

UNDIRECTED = [case for case in GRAPHS if not case.directed]


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", UNDIRECTED, ids=lambda case: case.name)
def test_sides_and_cycles_are_right_and_equal_for_any_number_of_ranks(case, order, clusters):
    first, *others = (check_sides(case, clusters[num_ranks], order) for num_ranks in (1, 2, 3))
    assert all(other == first for other in others)


@examples(60)
@given(graphs(max_vertices=12, max_edges=14), orders)
def test_sides_of_drawn_graphs_equal_the_oracle(clusters, case, order):
    case = replace(case, directed=False)
    assert check_sides(case, clusters[1], order) == check_sides(case, clusters[3], order)


def test_long_odd_cycle_is_found_whole(clusters):
    ring = make_case("ring", 301, [(v, (v + 1) % 301) for v in range(301)])
    for num_ranks in FEW_RANKS:
        assert sorted(check_sides(ring, clusters[num_ranks], "natural")) == list(range(301))


def test_labels_are_given_and_the_result_prints_itself(clusters, tmp_path):
    with mg.from_edges(["a", "b", "c", "c"], ["b", "c", "a", "d"], cluster=clusters[3]) as g:
        found = mg.is_bipartite(g)
        assert found.odd_cycle == ["a", "b", "c"]
        assert repr(found).startswith("<edges is not bipartite: 4 vertices, ")
    with mg.from_edges([0, 1], [1, 2], cluster=clusters[3]) as g:
        found = mg.is_bipartite(g)
        assert repr(found).startswith("<edges is bipartite: 3 vertices, ")
        found.write(tmp_path / "sides.csv")
        assert (tmp_path / "sides.csv").read_text().split() == ["vertex,sides", "0,0", "1,1", "2,0"]


def test_directed_and_compact_graphs_are_refused(clusters):
    with (
        graph_of(replace(ZOO["path"], directed=True), clusters[1]) as g,
        pytest.raises(mg.UsageError, match="the graph is directed: is_bipartite needs an undirected one"),
    ):
        mg.is_bipartite(g)
    with (
        graph_of(ZOO["path"], clusters[1], layout="compact") as g,
        pytest.raises(mg.UsageError, match="is_bipartite needs rows, and edges has the compact"),
    ):
        mg.is_bipartite(g)
