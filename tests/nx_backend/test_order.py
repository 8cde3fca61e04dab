"""Test that nodes are settled in NetworkX's order where most of them are tied."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from nx_listed import listed

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS


@pytest.mark.parametrize("weights", [(0,), (0, 1), (0.0, 0.1, 0.2, 0.3), (0, 0, 0, 5)], ids=str)
@pytest.mark.parametrize("cls", [nx.Graph, nx.DiGraph])
def test_ties_and_weights_of_zero_are_settled_as_by_networkx(cls, weights):
    draw = random.Random(5)
    graph = nx.gnm_random_graph(300, 900, seed=draw, directed=cls is nx.DiGraph)
    for _, _, data in graph.edges(data=True):
        data["weight"] = draw.choice(weights)
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    for sources in ([0], [7, 3, 200]):
        expected = listed(nx.multi_source_dijkstra(graph, sources))
        assert listed(FUNCTIONS["multi_source_dijkstra"](converted, sources)) == expected
    assert listed(FUNCTIONS["bfs_edges"](converted, 0)) == listed(nx.bfs_edges(graph, 0))


@pytest.mark.parametrize("cls", [nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("num_arcs", [100, 300, 400, 500, 900])
def test_strong_components_come_in_the_order_of_networkx(cls, num_arcs):
    draw = random.Random(num_arcs)
    names = draw.sample(range(1000), 300)
    graph = cls([draw.choices(names, k=2) for _ in range(num_arcs)])
    found = listed(FUNCTIONS["strongly_connected_components"](convert_from_nx(graph)))
    assert found == listed(nx.strongly_connected_components(graph))
    assert len(found[1]) > 1
    assert listed(FUNCTIONS["strongly_connected_components"](convert_from_nx(cls()))) == ("iterator", [])
