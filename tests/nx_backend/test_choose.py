"""Test which calls the backend can run and should run, and the reasons against others."""

from __future__ import annotations

import networkx as nx
import pytest

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS, backend
from mgraph.nx_backend.thresholds import CALLS_BEFORE_CONVERSION, MIN_ARCS

SMALL = nx.path_graph(10)
REFUSED = {
    "a function of an edge": ("dijkstra_path", (SMALL, 0, 1), {"weight": len}, "an edge attribute"),
    "a function that sorts": ("bfs_edges", (SMALL, 0, False, None, sorted), {}, "a function sorts the neighbors"),
    "another method": ("shortest_path", (SMALL,), {"method": "bellman-ford"}, "no negative weights"),
    "another algorithm": ("minimum_spanning_edges", (SMALL, "prim"), {}, "Kruskal"),
    "a negative limit": ("single_source_dijkstra", (SMALL, 0), {"cutoff": -1}, "a limit of -1"),
    "a limit that is no number": ("bfs_edges", (SMALL, 0), {"depth_limit": "2"}, "a limit of '2'"),
    "an unknown limit": ("all_pairs_dijkstra", (SMALL, float("nan")), {}, "a limit of nan"),
    "one attribute": ("minimum_spanning_edges", (SMALL,), {"data": "weight"}, "neither True nor False"),
    "given eccentricities": ("diameter", (SMALL, {0: 1}), {}, "nothing is left"),
    "given lengths": ("eccentricity", (SMALL, None, {}), {}, "nothing is left"),
    "a computed distance": ("closeness_centrality", (SMALL,), {"distance": len}, "an edge attribute"),
    "closeness without the factor": ("closeness_centrality", (SMALL, None, None, False), {}, "the factor of"),
    "given sources": ("harmonic_centrality", (SMALL, None, None, [1]), {}, "mgraph takes all nodes"),
    "bounds": ("radius", (SMALL,), {"usebounds": True}, "few searches"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_not_served_have_a_reason(case):
    name, args, kwargs, reason = REFUSED[case]
    said = backend.can_run(name, args, kwargs)
    assert isinstance(said, str) and reason in said


def test_other_arguments_are_served():
    assert backend.can_run("bfs_edges", (SMALL, 0), {"depth_limit": 3, "cluster": None}) is True
    assert backend.can_run("single_source_dijkstra", (), {"G": SMALL, "source": 0, "cutoff": 2.5}) is True
    assert all(backend.can_run(name, (SMALL,), {}) is True for name in FUNCTIONS)


def test_every_function_has_thresholds():
    assert MIN_ARCS.keys() == FUNCTIONS.keys()


def test_small_graphs_are_left_to_networkx():
    for name in FUNCTIONS:
        assert isinstance(backend.should_run(name, (SMALL, 0), {}), str)


@pytest.fixture(scope="module")
def large():
    return nx.circulant_graph(1 << 13, range(1, 6))


def test_large_graphs_are_searched_where_one_call_pays_for_the_conversion(large):
    graph = large.copy()
    assert backend.should_run("single_source_dijkstra", (graph, 0), {}) is True
    assert backend.should_run("shortest_path", (graph, 0, None, "weight"), {}) is True
    assert backend.should_run("minimum_spanning_tree", (graph,), {}) is True
    assert "both ends" in backend.should_run("shortest_path", (graph, 0, 1), {})


def test_a_graph_is_converted_when_it_has_been_asked_often(large):
    graph = large.copy()
    said = [backend.should_run("connected_components", (graph,), {}) for _ in range(CALLS_BEFORE_CONVERSION + 1)]
    assert all("more often" in reason for reason in said[:-1]) and said[-1] is True
    graph.add_edge(0, 4000)
    assert "more often" in backend.should_run("connected_components", (graph,), {})


def test_a_converted_graph_is_searched_at_once(large):
    graph = large.copy()
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    graph.__networkx_cache__["backends"] = {"mgraph": {(frozenset({("weight", 1)}), False): converted}}
    assert backend.should_run("connected_components", (graph,), {}) is True
    assert backend.should_run("dijkstra_path", (graph, 0, 1), {}) is True
    assert backend.should_run("dijkstra_path", (graph, 0, 1), {"weight": "length"}) is not True
    assert backend.should_run("has_path", (graph, 0, 1), {}) is not True
    assert backend.should_run("has_path", (converted, 0, 1), {}) is True
