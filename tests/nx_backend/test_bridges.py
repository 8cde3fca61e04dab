"""Bridges as NetworkX finds them: their order and direction, parallel edges and self-loops."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from nx_listed import outcome

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS, backend


@pytest.mark.parametrize("cls", [nx.Graph, nx.MultiGraph])
def test_bridges_are_those_of_networkx(cls):
    for seed in range(6):
        draw = random.Random(seed)
        graph = cls()
        graph.add_nodes_from(draw.sample("abcdefghij", 10))
        for _ in range(draw.randint(0, 14)):
            graph.add_edge(draw.choice("abcdefghij"), draw.choice("abcdefghij"))
        converted = convert_from_nx(graph)
        assert list(FUNCTIONS["bridges"](converted)) == list(nx.bridges(graph, backend="networkx"))
        assert FUNCTIONS["has_bridges"](converted) == nx.has_bridges(graph, backend="networkx")


def test_errors_are_those_of_networkx_and_a_root_is_left_to_it():
    for name in "bridges", "has_bridges":
        function = getattr(nx, name)
        for graph in nx.DiGraph([(0, 1)]), nx.Graph():
            wanted = outcome(lambda g, f=function: f(g, backend="networkx"), graph)
            assert outcome(lambda g, n=name: FUNCTIONS[n](convert_from_nx(g)), graph) == wanted
        assert isinstance(backend.can_run(name, (nx.path_graph(3),), {"root": 1}), str)
