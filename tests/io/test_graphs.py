"""Graphs of NetworkX: nodes, directions, parallel edges and weights as NetworkX has them."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import tiers
from hypothesis import given
from hypothesis import strategies as st
from memory_checks import read_back

import mgraph as mg
from mgraph.errors import InputError, UsageError
from mgraph.io.graphs import networkx_table

KINDS = (networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph)


@tiers.examples(40)
@given(st.data(), st.sampled_from(KINDS), st.booleans(), st.sampled_from((1, 3)))
def test_graphs_are_read_with_all_nodes_and_edges(data, kind, is_text, num_ranks):
    number = st.integers(-3, 20)
    nodes = number.map(lambda node: f"n{node}") if is_text else number
    graph = kind()
    graph.add_nodes_from(data.draw(st.lists(nodes, min_size=1, max_size=5)))
    graph.add_weighted_edges_from(data.draw(st.lists(st.tuples(nodes, nodes, st.integers(1, 9)), max_size=20)))
    graph.add_edges_from(data.draw(st.lists(st.tuples(nodes, nodes), max_size=3)))
    table = networkx_table(graph)
    num_vertices, rows = read_back(table, num_ranks)
    assert table.directed == graph.is_directed()
    assert num_vertices in (len(graph), max(graph) + 1 if not is_text else None)
    weighted = any("weight" in about for *_, about in graph.edges(data=True))
    expected = [(u, v, w) for u, v, w in graph.edges(data="weight", default=1)]
    assert rows == sorted(expected if weighted else [(u, v) for u, v, _ in expected])


def test_weights_are_chosen_by_attribute():
    graph = networkx.Graph([(0, 1, {"cost": 2.5}), (1, 2, {"cost": np.float32(1), "weight": 7})])
    assert read_back(networkx_table(graph, "cost"))[1] == [(0, 1, 2.5), (1, 2, 1)]
    assert read_back(networkx_table(graph))[1] == [(0, 1, 1), (1, 2, 7)]
    assert read_back(networkx_table(graph, None))[1] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("graph", "weight", "error", "message"),
    [
        (networkx.Graph([(0, "a")]), "weight", InputError, "of the types int, str: .*convert_node_labels_to_integers"),
        (networkx.grid_graph([2, 2]), "weight", InputError, "of the types tuple: labels are all integers or all str"),
        (networkx.Graph([(True, False)]), "weight", InputError, "of the types bool"),
        (networkx.Graph([(0, 2**63)]), "weight", InputError, "some nodes are beyond 64 signed bits"),
        (networkx.path_graph(3), "cost", UsageError, "no edge has the attribute 'cost': weight=None"),
        (networkx.Graph([(0, 1, {"weight": "1"})]), "weight", InputError, r"edge \(0, 1\) has the weight '1', which"),
        (networkx.Graph([(0, 1, {"weight": None})]), "weight", InputError, "has the weight None, which is no number"),
        (networkx.Graph([(0, 1, {"weight": float("nan")})]), "weight", InputError, "nan is not a finite number"),
        (networkx.Graph([(0, 1, {"weight": 2**70})]), "weight", InputError, "some weight is beyond 64 bits"),
        (5, "weight", InputError, "int is not a graph of NetworkX"),
    ],
)
def test_wrong_graph_is_refused(graph, weight, error, message):
    with pytest.raises(error, match=message):
        read_back(networkx_table(graph, weight))


def test_what_the_graph_decides_is_no_option():
    with pytest.raises(TypeError, match="directed"):
        mg.from_networkx(networkx.path_graph(3), directed=True)
