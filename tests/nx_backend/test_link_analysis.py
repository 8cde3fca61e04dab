"""PageRank and HITS as NetworkX calls them: its results but for rounding, its errors, and what is left to it."""

from __future__ import annotations

import networkx as nx
import pytest
from nx_listed import outcome

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS, backend


def served(graph, *args, **kwargs):
    return FUNCTIONS["pagerank"](convert_from_nx(graph, edge_attrs={"weight": 1}), *args, **kwargs)


@pytest.mark.parametrize("cls", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_scores_are_those_of_networkx(cls):
    graph = cls(nx.gnm_random_graph(40, 90, seed=3, directed=cls is not nx.Graph, backend="networkx"))
    graph.add_node("alone")
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = number % 5
    for kwargs in (
        {},
        {"weight": None},
        {"alpha": 0.5, "tol": 1e-10},
        {"personalization": {0: 1, "alone": 2.5, "nobody": 7}},
    ):
        wanted = nx.pagerank(graph, **kwargs, backend="networkx")
        found = served(graph, **kwargs)
        assert list(found) == list(wanted)
        assert found == pytest.approx(wanted, rel=0, abs=1e-14)


def test_errors_are_those_of_networkx():
    graph = nx.path_graph(4)
    assert served(nx.Graph()) == {}
    for kwargs in ({"max_iter": 0}, {"max_iter": 2, "tol": 0}, {"personalization": {"nobody": 1}}):
        assert outcome(served, graph, **kwargs) == outcome(nx.pagerank, graph, **kwargs, backend="networkx")


def connected(cls, directed):
    """Return a graph of one component with weights, on which HITS has one right answer."""
    graph = cls(nx.gnm_random_graph(40, 190, seed=3, directed=directed, backend="networkx"))
    for number, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 1 + number % 5
    return graph


def hits_served(graph, *args, **kwargs):
    return FUNCTIONS["hits"](convert_from_nx(graph, edge_attrs={"weight": 1}), *args, **kwargs)


@pytest.mark.parametrize("cls", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_hubs_and_authorities_are_those_of_networkx(cls):
    graph = connected(cls, cls is not nx.Graph)
    precise = nx.hits(graph, tol=1e-13, max_iter=10_000, backend="networkx")
    for kwargs in {}, {"tol": 1e-12}, {"method": "svd"}:
        for wanted, found in zip(precise, hits_served(graph, **kwargs), strict=True):
            assert list(found) == list(wanted)
            assert found == pytest.approx(wanted, rel=0, abs=1e-9)


def test_hits_errors_are_those_of_networkx_and_the_rest_is_left_to_it():
    graph = connected(nx.DiGraph, directed=True)
    assert hits_served(nx.Graph()) == ({}, {})
    assert outcome(hits_served, graph, max_iter=0) == outcome(nx.hits, graph, max_iter=0, backend="networkx")
    for left, reason in (
        (nx.MultiGraph([(0, 1), (0, 1)]), "parallel edges add up in HITS"),
        (nx.Graph([(0, 0), (0, 1)]), "loops count in HITS"),
        (nx.empty_graph(3), "has no edge"),
        (nx.path_graph(50), "hits has not converged in 20 iterations"),
    ):
        with pytest.raises(NotImplementedError, match=reason):
            hits_served(left, max_iter=1)
    for name, value in ("nstart", {0: 1}), ("normalized", False), ("method", "other"):
        assert isinstance(backend.can_run("hits", (graph,), {name: value}), str), name


def test_what_counts_otherwise_is_left_to_networkx():
    parallel = nx.MultiGraph([(0, 1), (0, 1)])
    loop = nx.Graph([(0, 0), (0, 1)])
    for graph, kwargs, reason in (
        (parallel, {}, "parallel edges add up"),
        (loop, {}, "loops count"),
        (nx.path_graph(3), {"alpha": 2}, "damping is 2"),
        (nx.path_graph(3), {"personalization": {0: 2, 1: -1}}, "personalization is -1"),
    ):
        with pytest.raises(NotImplementedError, match=reason):
            served(graph, **kwargs)
    for name in ("nstart", "dangling"):
        reason = backend.can_run("pagerank", (nx.path_graph(3),), {name: {0: 1}})
        assert isinstance(reason, str), name
