"""Results over sockets equal the oracles', for every graph, method and number of ranks."""

from __future__ import annotations

import pytest
from bridge_checks import check_bridges
from component_checks import check_components, check_strong_components
from forest_checks import FORESTS
from forest_checks import check as check_forest
from hits_checks import check_hits
from pagerank_checks import check_pagerank
from socket_cluster import SocketCluster
from steiner_checks import check_steiner_tree
from traversal_checks import check_traversal
from user_graphs import GRAPHS, METHODS, SEARCHES, STARTABLE, graph_of
from zoo import ZOO

import mgraph as mg

# Its three hundred supersteps are slow on many ranks.
DEEP = ZOO["long-chain"]


@pytest.fixture(scope="module", params=[2, 3, 4, 7])
def cluster(request):
    with SocketCluster(request.param) as cluster:
        yield cluster


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", [case for case in STARTABLE if case is not DEEP], ids=lambda case: case.name)
def test_searches_over_sockets_equal_the_oracles(cluster, case, method):
    with graph_of(case, cluster, "degree") as g:
        assert g.num_ranks == cluster.num_ranks
        for search in SEARCHES.values():
            check_traversal(search(g, 0, method=method), case, [0], "degree")


@pytest.mark.parametrize("method", METHODS)
def test_search_of_many_supersteps_over_sockets_equals_the_oracles(method):
    with SocketCluster(2) as cluster, graph_of(DEEP, cluster, "degree") as g:
        for search in SEARCHES.values():
            check_traversal(search(g, 0, method=method), DEEP, [0], "degree")


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_components_over_sockets_equal_the_oracles(cluster, case):
    check_components(case, cluster, "degree")


@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_strong_components_over_sockets_equal_the_oracle(cluster, case):
    check_strong_components(case, cluster, "degree")


@pytest.mark.ci
def test_bridges_and_steiner_trees_over_sockets_equal_the_oracles(cluster):
    case = next(case for case in STARTABLE if not case.directed)
    check_bridges(case, cluster, "degree")
    check_steiner_tree(case, cluster, "degree")


@pytest.mark.ci
def test_scores_over_sockets_equal_the_oracles(cluster):
    check_pagerank(STARTABLE[-1], cluster, "degree")
    check_hits(STARTABLE[-1], cluster, "degree")


@pytest.mark.covering(every=6)
@pytest.mark.ci
@pytest.mark.parametrize("case", FORESTS, ids=lambda case: case.name)
def test_forests_over_sockets_equal_the_oracles(cluster, case):
    with graph_of(case, cluster, "degree") as g, mg.minimum_spanning_forest(g) as forest:
        check_forest(forest, case, "degree")
        mg.validate(forest)
