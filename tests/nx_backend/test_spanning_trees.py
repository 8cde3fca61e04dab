"""Test spanning trees of weights that sort: any integers and floats, with unknown ones."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from nx_listed import outcome

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS

NAN = float("nan")
NAMES = [name for name in FUNCTIONS if "spanning" in name]
VALUES = {
    "negative and tied": [-3, 0, 2, -3, 2],
    "the least integer": [-(1 << 63), 5, (1 << 63) - 1],
    "mixed": [1, 1.0, 0.5, 2, -1],
    "beyond 64 bits": [1 << 80, -(1 << 80), 1.5],
    "infinite": [float("inf"), -float("inf"), 0.0],
    "unknown": [NAN, 0.5, 1.5],
    "unknown beside integers": [NAN, 3, 3, 1],
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("cls", [nx.Graph, nx.MultiGraph])
@pytest.mark.parametrize("name", NAMES)
def test_the_forest_is_that_of_kruskal(name, cls, values):
    draw = random.Random(7)
    graph = cls()
    graph.add_nodes_from(draw.sample(range(9), 9))
    for _ in range(24):
        graph.add_edge(draw.randrange(9), draw.randrange(9), weight=draw.choice(VALUES[values]))
    converted = convert_from_nx(graph, preserve_edge_attrs=True, preserve_node_attrs=True)
    own = getattr(nx, name)
    expected = outcome(own, graph, ignore_nan=True)
    assert outcome(FUNCTIONS[name], converted, ignore_nan=True) == expected
    assert str(outcome(FUNCTIONS[name], converted)) == str(outcome(own, graph))


def test_weights_that_are_no_numbers_are_refused():
    graph = nx.Graph([(0, 1, {"weight": "heavy"})])
    converted = convert_from_nx(graph, preserve_edge_attrs=True)
    for name in NAMES:
        # At the call, not at the first edge: NetworkX asks the next backend then.
        with pytest.raises(NotImplementedError, match="weights 'weight' are of type str"):
            FUNCTIONS[name](converted)


@pytest.mark.parametrize("name", ["minimum_spanning_tree", "maximum_spanning_tree"])
def test_a_directed_graph_has_no_spanning_tree(name):
    graph = nx.DiGraph([(0, 1)])
    assert outcome(FUNCTIONS[name], convert_from_nx(graph)) == outcome(getattr(nx, name), graph)
