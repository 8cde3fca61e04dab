"""Results over sockets equal the oracles', for every graph, method and number of ranks."""

from __future__ import annotations

import pytest
from comm_ranks import open_socket_threads
from forest_checks import FORESTS
from forest_checks import check as check_forest
from test_components import check_components
from test_traversal import check
from user_graphs import GRAPHS, METHODS, SEARCHES, STARTABLE, graph_of
from zoo import ZOO

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

# Its three hundred supersteps take long on many ranks.
DEEP = ZOO["long-chain"]


class SocketCluster(InProcessCluster):
    """Ranks of this process that communicate through sockets, as those of a Dask cluster do."""

    @staticmethod
    def open_comms(size, timeout_s):
        return open_socket_threads(size, 60)


@pytest.fixture(scope="module", params=[2, 3, 4, 7])
def cluster(request):
    with SocketCluster(request.param) as cluster:
        yield cluster


@pytest.mark.covering
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", [case for case in STARTABLE if case is not DEEP], ids=lambda case: case.name)
def test_searches_over_sockets_equal_the_oracles(cluster, case, method):
    with graph_of(case, cluster, "degree") as g:
        assert g.num_ranks == cluster.num_ranks
        for search in SEARCHES.values():
            check(search(g, 0, method=method), case, [0], "degree")


@pytest.mark.parametrize("method", METHODS)
def test_search_of_many_supersteps_over_sockets_equals_the_oracles(method):
    with SocketCluster(2) as cluster, graph_of(DEEP, cluster, "degree") as g:
        for search in SEARCHES.values():
            check(search(g, 0, method=method), DEEP, [0], "degree")


@pytest.mark.covering
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_components_over_sockets_equal_the_oracles(cluster, case):
    check_components(case, cluster, "degree")


@pytest.mark.covering
@pytest.mark.parametrize("case", FORESTS, ids=lambda case: case.name)
def test_forests_over_sockets_equal_the_oracles(cluster, case):
    with graph_of(case, cluster, "degree") as g, mg.minimum_spanning_forest(g) as forest:
        check_forest(forest, case, "degree")
        mg.validate(forest)
