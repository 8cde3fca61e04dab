"""Test conversions of graphs of NetworkX, there and back."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from nx_listed import listed

from mgraph.nx_backend.convert import convert_from_nx, convert_to_nx

CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
EVERYTHING = {"preserve_edge_attrs": True, "preserve_node_attrs": True, "preserve_graph_attrs": True}


def made(cls):
    """Return a graph with a loop, parallel edges and adjacencies that are in no order of its nodes."""
    graph = cls(title="a title")
    graph.add_node(("far", 1), color="red")
    graph.add_node(None.__class__)
    for number, (u, v) in enumerate([("c", "a"), ("a", "b"), ("b", "b"), ("c", "b"), ("a", "c"), ("a", "b")]):
        graph.add_edge(u, v, weight=number, tag=str(number))
    return graph


@pytest.mark.parametrize("cls", CLASSES)
def test_a_graph_comes_back_with_all_attributes_in_its_order(cls):
    graph = made(cls)
    converted = convert_from_nx(graph, **EVERYTHING)
    assert (len(converted), converted.number_of_edges()) == (len(graph), graph.number_of_edges())
    assert list(converted) == list(graph) and "a" in converted and [] not in converted
    back = convert_to_nx(converted)
    assert listed(back) == listed(graph)
    if graph.is_directed():
        assert [list(row) for row in back.pred.values()] == [list(row) for row in graph.pred.values()]
    for _, _, data in back.edges(data=True):
        data["weight"] = "changed"
    assert all(
        data["weight"] == "changed"
        for row in back._adj.values()
        for one in row.values()
        for data in (one.values() if back.is_multigraph() else [one])
    )
    assert listed(convert_to_nx(converted)) == listed(graph)


@pytest.mark.parametrize("cls", CLASSES)
def test_attributes_that_are_asked_for_are_kept_alone(cls):
    graph = made(cls)
    kept = convert_to_nx(convert_from_nx(graph, edge_attrs={"weight": 1}, node_attrs={"color": "blue", "size": None}))
    assert kept.graph == {}
    assert dict(kept.nodes(data=True)) == {
        node: {"color": data.get("color", "blue")} for node, data in graph.nodes.items()
    }
    expected = [(u, v, {"weight": data["weight"]}) for u, v, data in graph.edges(data=True)]
    assert list(kept.edges(data=True)) == expected


def test_views_and_subclasses_are_converted():
    class Own(nx.DiGraph):
        pass

    graph = nx.relabel_nodes(nx.cycle_graph(5, create_using=Own), str)
    assert listed(convert_to_nx(convert_from_nx(graph))) == listed(graph)
    view = graph.subgraph(["0", "1", "3"]).reverse(copy=False)
    assert list(convert_to_nx(convert_from_nx(view)).edges) == [("1", "0")]


def test_other_objects_are_no_graphs_and_other_results_stay_as_they_are():
    with pytest.raises(TypeError, match="list is not a graph of NetworkX"):
        convert_from_nx([(0, 1)])
    assert convert_to_nx({1: 2}) == {1: 2}


def test_a_reversed_arc_has_the_weight_of_the_arc():
    graph = nx.MultiDiGraph()
    for number, (u, v) in enumerate([(2, 0), (1, 0), (2, 0), (0, 0), (0, 2), (1, 2), (2, 0)]):
        graph.add_edge(u, v, weight=10 + number)
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    indptr, sources, weights = converted.arcs("weight", reverse=True)
    for node, number in converted.index.items():
        rows = slice(indptr[number], indptr[number + 1])
        found = list(zip(converted.names(sources[rows]), weights[rows].tolist(), strict=True))
        assert found == [(u, d["weight"]) for u, parallel in graph.pred[node].items() for d in parallel.values()]


def test_a_graph_is_built_once_for_each_weight_and_direction():
    converted = convert_from_nx(nx.DiGraph([(0, 1, {"weight": 3})]), edge_attrs={"weight": 1})
    built = converted.built("weight")
    assert converted.built("weight") is built
    assert converted.built() is built  # hops are counted on any weights
    assert converted.built("weight", reverse=True) is not built
    built.close()
    assert not converted.built("weight").closed


def test_numbers_are_read_as_columns():
    graph = nx.Graph([(0, 1, {"weight": np.float32(0.5)}), (1, 2, {"weight": np.float32(0.25)})])
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    assert converted.values("weight").dtype == np.float32
    assert "Graph with 3 nodes and 2 edges" in repr(converted)
