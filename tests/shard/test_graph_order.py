"""Results in the graph's own order have, beside each vertex, the values that columns by user id have."""

from __future__ import annotations

import pytest
from emulator.backend import EmulatedBackend
from traversal_checks import check_both_orders
from user_graphs import ORDERS, SEARCHES, graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

CASES = [ZOO["isolated"], *map(random_case, (3, 4, 5))]


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_beside_their_vertices_equal_the_columns_by_user_id(case, num_ranks, order, clusters):
    with graph_of(case, clusters[num_ranks], order) as g:
        for algorithm in ["bfs"] if case.weights is None else SEARCHES:
            check_both_orders(g, case, algorithm, int(case.sources[0]), order)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_source_without_arcs_has_no_row_and_reaches_itself_by_user_id(num_ranks, clusters):
    with mg.from_edges([0, 1], [1, 2], num_vertices=5, cluster=clusters[num_ranks], order="degree") as g:
        found = mg.bfs(g, [4, 2], in_graph_order=True)
        assert found.stats.num_reached == 4
        vertices, hops, _ = found.in_graph_order()
        assert sorted(zip(vertices.to_numpy().tolist(), hops.to_numpy().tolist(), strict=True)) == [
            (0, 2),
            (1, 1),
            (2, 0),
        ]
        assert found.distances.to_numpy().tolist() == [2, 1, 0, -1, 0]
        assert found.predecessors.to_numpy().tolist() == [1, 2, 2, -1, 4]
        assert found.nearest_source.to_numpy().tolist() == [2, 2, 2, -1, 4]
        alone = mg.bfs(g, 4, in_graph_order=True, return_predecessors=False)
        vertices, hops, parents = alone.in_graph_order()
        assert (hops.is_missing().sum(), parents) == (3, None)
        assert alone.distances.to_numpy().tolist() == [-1, -1, -1, -1, 0]


def columns_on_ranks(found):
    """Return the names of the columns that ranks have by user id."""
    return [sorted(objects[found._stored.key].columns) for objects in found.graph.cluster._objects]


def test_nothing_is_put_in_the_order_of_user_ids_before_it_is_read(clusters):
    with mg.rmat(6, cluster=clusters[2]) as g:
        found = mg.bfs(g, 1, in_graph_order=True)
        mg.validate(found)
        sent = found.in_graph_order().predecessors.sum()
        assert columns_on_ranks(found) == [[], []]
        assert found.path_to(1) == [1]
        assert columns_on_ranks(found) == 2 * [["distances", "predecessors"]]
        assert sent == found.predecessors.sum()
        assert found.to_pandas().columns.tolist() == ["vertex", "distances", "predecessors"]


def test_rows_in_the_graphs_own_order_are_selected_and_named_by_vertex(clusters):
    digests = set()
    for num_ranks in (1, 3):
        g = mg.from_edges(["a", "b", "b"], ["b", "c", "d"], num_vertices=None, cluster=clusters[num_ranks])
        found = mg.bfs(g, "a", in_graph_order=True)
        vertices, hops, parents = found.in_graph_order()
        assert repr(parents) == "<Column predecessors: 4 places, object>"
        assert sorted(vertices[hops == 2].tolist()) == sorted((hops == 2).vertices().tolist()) == ["c", "d"]
        assert parents[hops == 2].tolist() == ["b", "b"]
        assert (hops.max(), hops.sum()) == (2, 5)
        assert vertices[hops.argmin()] == "a"
        digests.add((hops.digest(), parents.digest()))
        # Not about the same rows, though there are as many.
        with pytest.raises(mg.UsageError, match="not about the same rows"):
            hops[found.distances == 2]
    assert digests == {(found.distances.digest(), found.predecessors.digest())}


def test_columns_by_user_id_need_the_open_graph(clusters):
    g = mg.bfs(mg.rmat(5, cluster=clusters[2]), 1, in_graph_order=True).graph
    found = mg.bfs(g, 1, in_graph_order=True)
    vertices = found.in_graph_order().vertices
    g.close()
    assert len(vertices.to_numpy()) == len(vertices)
    for use in (lambda: found.distances, found.in_graph_order):
        with pytest.raises(mg.GraphClosed, match="build the graph and compute the result again"):
            use()
    with pytest.raises(mg.UsageError, match="in_graph_order"):
        mg.bfs(mg.rmat(5, cluster=clusters[2]), 1, in_graph_order=1)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_emulated_gpus_leave_a_result_in_the_graphs_own_order(num_ranks):
    case = random_case(1, num_vertices=150)
    emulated = InProcessCluster(num_ranks, make_backend=lambda: EmulatedBackend(block=32, blocks=2))
    with emulated as cluster, graph_of(case, cluster, "degree") as g:
        assert mg.bfs(g, 0).stats.variant.startswith("bfs.persistent")
        for algorithm in SEARCHES:
            check_both_orders(g, case, algorithm, int(case.sources[0]), "degree")
