"""A Steiner tree with the nodes, attributes and errors of NetworkX; never dispatched by itself."""

from __future__ import annotations

import networkx as nx
import pytest

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS, backend

ALL = {"preserve_edge_attrs": True, "preserve_node_attrs": True, "preserve_graph_attrs": True}


def served(graph, *args, **kwargs):
    return FUNCTIONS["steiner_tree"](convert_from_nx(graph, **ALL), *args, **kwargs)


def test_tree_has_the_nodes_edges_and_attributes_of_the_graph():
    graph = nx.Graph(name="roads")
    graph.add_node("a", color="red")
    graph.add_weighted_edges_from([("a", "x", 1), ("x", "b", 1), ("c", "x", 1), ("a", "b", 3)], tag=7)
    wanted = nx.approximation.steiner_tree(graph, ["a", "b", "c"], backend="networkx")
    found = served(graph, ["a", "b", "c"])
    assert nx.utils.graphs_equal(found, nx.Graph(wanted)) and type(found) is nx.Graph
    multi = nx.MultiGraph([(0, 1, {"weight": 5}), (0, 1, {"weight": 2}), (1, 2, {"weight": 1})])
    assert set(served(multi, [0, 2]).edges(keys=True)) == {(0, 1, 1), (1, 2, 0)}


def test_what_is_not_served_is_left_to_networkx():
    with pytest.raises(nx.NetworkXNotImplemented):
        served(nx.DiGraph([(0, 1)]), [0, 1])
    with pytest.raises(NotImplementedError, match="no path connects"):
        served(nx.Graph([(0, 1), (2, 3)]), [0, 2])
    assert isinstance(backend.can_run("steiner_tree", (nx.path_graph(3), [0]), {"method": "kou"}), str)
    graph = nx.gnm_random_graph(300, 900, seed=1)
    assert isinstance(backend.should_run("steiner_tree", (graph, [0, 1]), {}), str)
