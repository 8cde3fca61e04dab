"""Test that every function returns what NetworkX's own returns: values, types, order, ties and errors."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import pytest
import tiers
from nx_listed import outcome

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS

CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
EVERYTHING = {"preserve_edge_attrs": True, "preserve_node_attrs": True, "preserve_graph_attrs": True}
# Sums of floats, which NetworkX rounds in its own order.
ROUNDED = {"closeness_centrality", "harmonic_centrality", "hits", "pagerank"}
OF_ARCS = {name for name in FUNCTIONS if "weakly" in name or "strongly" in name}
LIMITS = (None, 0, 1, 2.5)
# NetworkX 3.7 deprecates one of the functions.
pytestmark = pytest.mark.filterwarnings(r"ignore:\s*bfs_predecessors is deprecated:DeprecationWarning")

WEIGHTS = {
    "small integers": lambda draw: draw.randint(0, 4),
    "sums of floats with ties": lambda draw: draw.choice([0.0, 0.1, 0.2, 0.3, 0.7]),
    "floats": lambda draw: draw.random(),
    "ones": lambda draw: 1,
}
NAMES = (lambda i: i, lambda i: f"v{i}", lambda i: (i, "a"), lambda i: i / 2, lambda i: frozenset([i]))


def random_graph(cls: type, seed: int) -> tuple[nx.Graph, random.Random]:
    """Return a small graph with loops, isolated nodes and ties, its nodes in a random order."""
    draw = random.Random(seed)
    count = draw.randint(1, 12)
    names = list(map(NAMES[seed % len(NAMES)], range(count)))
    draw.shuffle(names)
    graph = cls(title=seed)
    graph.add_nodes_from(names, color="red")
    weight = draw.choice(list(WEIGHTS.values()))
    for _ in range(draw.randint(0, 4 * count)):
        graph.add_edge(draw.choice(names), draw.choice(names), weight=weight(draw), tag=draw.random())
    return graph, draw


def searches(s, t):
    """Yield calls from one or two nodes, or from all."""
    from_one = ("single_source_dijkstra", "single_source_dijkstra_path", "single_source_dijkstra_path_length")
    hops = [f"single_{end}_shortest_path{what}" for end in ("source", "target") for what in ("", "_length")]
    several = ("multi_source_dijkstra", "multi_source_dijkstra_path", "multi_source_dijkstra_path_length")
    trees = ("bfs_edges", "bfs_tree", "bfs_predecessors", "bfs_successors")
    every = [name for name in FUNCTIONS if name.startswith("all_pairs_")]
    for limit in LIMITS:
        yield from ((name, (s,), {"cutoff": limit}) for name in (*from_one, *hops))
        yield from ((name, ([s, t, s],), {"cutoff": limit}) for name in several)
        yield from ((name, (s,), {"depth_limit": limit}) for name in trees)
        yield from ((name, (), {"cutoff": limit}) for name in every)
    yield from ((name, (s,), {"reverse": True}) for name in ("bfs_edges", "bfs_tree"))
    for radius, center, distance in ((1, True, None), (2, False, None), (1.5, True, "weight"), (None, False, "tag")):
        yield "ego_graph", (s, radius, center), {"distance": distance}
    yield from ((name, (s,), {}) for name in ("bfs_layers", "descendants", "ancestors"))
    yield from (("descendants_at_distance", (s, distance), {}) for distance in range(4))
    yield from (("bfs_layers", ([s, t],), {}), ("multi_source_dijkstra", ({s}, t), {}))
    between = ("has_path", "dijkstra_path", "dijkstra_path_length", "single_source_dijkstra", "shortest_path_length")
    yield from ((name, (s, t), {}) for name in between)


def by_weight(s, t):
    """Yield calls of functions that count hops without a weight."""
    for weight in (None, "weight", "no such attribute"):
        for source, target in ((s, None), (None, t), (None, None)):
            yield "shortest_path", (source, target), {"weight": weight}
            yield "shortest_path_length", (source, target), {"weight": weight}
        yield "shortest_path_length", (s, t), {"weight": weight}
        for name in ("diameter", "radius", "center", "periphery"):
            yield name, (), {"weight": weight}
        for nodes in (None, s, [s, t, "not a node"]):
            yield "eccentricity", (nodes,), {"weight": weight}


def of_structure(directed, s):
    """Yield calls for components and cores, and for spanning trees of undirected graphs."""
    yield "core_number", (), {}
    yield "is_bipartite", (), {}
    yield from (("k_core", (k,), {}) for k in (None, 0, 2, 2.5))
    if directed:
        names = ("weakly_connected_components", "number_weakly_connected_components", "is_weakly_connected")
        names += ("strongly_connected_components", "number_strongly_connected_components", "is_strongly_connected")
        yield from ((name, (), {}) for name in names)
        return
    yield from ((name, (), {}) for name in ("connected_components", "number_connected_components", "is_connected"))
    yield "node_connected_component", (s,), {}
    yield from ((name, (), {}) for name in ("bridges", "has_bridges"))
    for minimum, keys, data in itertools.product(("minimum", "maximum"), (True, False), (True, False)):
        yield f"{minimum}_spanning_edges", (), {"keys": keys, "data": data}
        yield f"{minimum}_spanning_tree", (), {"weight": "tag" if keys else "weight"}


@pytest.mark.ci
@pytest.mark.widens
@pytest.mark.parametrize("cls", CLASSES)
def test_results_equal_those_of_networkx(cls):
    called = set()
    for seed in range(tiers.by_tier(4, 8, 40)):
        graph, draw = random_graph(cls, seed)
        s, t = draw.choices(list(graph), k=2)
        converted = convert_from_nx(graph, **EVERYTHING)
        for name, args, kwargs in (*searches(s, t), *by_weight(s, t), *of_structure(graph.is_directed(), s)):
            expected = outcome(getattr(nx, name), graph, *args, **kwargs)
            assert outcome(FUNCTIONS[name], converted, *args, **kwargs) == expected, (seed, name, args, kwargs)
            called.add(name)
    of_edges = ("spanning", "connected", "bridges")
    undirected = {name for name in FUNCTIONS if any(word in name for word in of_edges)} - OF_ARCS
    assert called == set(FUNCTIONS) - ROUNDED - {"steiner_tree"} - (undirected if graph.is_directed() else OF_ARCS)


@pytest.mark.widens
@pytest.mark.parametrize("cls", CLASSES)
def test_sums_of_distances_equal_those_of_networkx_but_for_rounding(cls):
    for seed in range(tiers.by_tier(4, 8, 40)):
        graph, draw = random_graph(cls, seed)
        s, t = draw.choices(list(graph), k=2)
        converted = convert_from_nx(graph, **EVERYTHING)
        for distance in (None, "weight", "no such attribute"):
            calls = [("closeness_centrality", u) for u in (None, s, "x")]
            calls += [("harmonic_centrality", nodes) for nodes in (None, s, [s, t, "x"], [], {}, [[]])]
            for name, chosen in calls:
                expected = outcome(getattr(nx, name), graph, chosen, distance)
                found = outcome(FUNCTIONS[name], converted, chosen, distance)
                if expected[0] == "mapping":
                    assert found[0] == "mapping"
                    expected, found = dict(expected[1]), dict(found[1])
                    assert expected.keys() == found.keys()
                    pairs = [(expected[node], found[node]) for node in expected]
                else:
                    pairs = [(expected, found)]
                for one, other in pairs:
                    assert one[0] is other[0]
                    assert other[1] == (one[1] if isinstance(one[1], str) else pytest.approx(one[1], rel=1e-12))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_a_path_between_two_nodes_is_a_shortest_one(cls, weight):
    graph, _ = random_graph(cls, 3)
    converted = convert_from_nx(graph, **EVERYTHING)
    for s, t in itertools.product(graph, graph):
        expected = outcome(nx.shortest_path, graph, s, t, weight)
        if expected[0] is nx.NetworkXNoPath:
            assert outcome(FUNCTIONS["shortest_path"], converted, s, t, weight) == expected
            continue
        length = nx.shortest_path_length(graph, s, t, weight)
        path = FUNCTIONS["shortest_path"](converted, s, t, weight)
        assert (path[0], path[-1]) == (s, t)
        assert (nx.path_weight(graph, path, weight) if weight else len(path) - 1) == length


@pytest.mark.parametrize("cls", CLASSES)
def test_nodes_that_are_missing_raise_the_errors_of_networkx(cls):
    graph = cls([(0, 1), (1, 2)])
    converted = convert_from_nx(graph)
    calls = [
        *((name, ("x",), {}) for name in FUNCTIONS if name.startswith("single_")),
        *((name, (["x"],), {}) for name in FUNCTIONS if name.startswith("multi_")),
        *((name, ([],), {}) for name in FUNCTIONS if name.startswith("multi_")),
        *((name, ("x",), {}) for name in FUNCTIONS if name.startswith("bfs_") and name != "bfs_layers"),
        *((name, ends, {}) for name in ("has_path", "shortest_path_length") for ends in ((0, "x"), ("x", 0))),
        *((name, ends, {}) for name in ("dijkstra_path", "dijkstra_path_length") for ends in ((0, "x"), ("x", 0))),
        *(("shortest_path", (), {end: "x", "weight": w}) for end in ("source", "target") for w in (None, "weight")),
        *(("shortest_path_length", (), {"target": "x", "weight": w}) for w in (None, "weight")),
        *((name, ("x",), {}) for name in ("descendants", "ancestors")),
        ("bfs_edges", ("x",), {"reverse": True}),
        ("bfs_layers", (["x"],), {}),
        ("descendants_at_distance", ("x", 1), {}),
        *((("node_connected_component", ("x",), {}),) * (not graph.is_directed())),
    ]
    for name, args, kwargs in calls:
        expected = outcome(getattr(nx, name), graph, *args, **kwargs)
        assert issubclass(expected[0], Exception)
        assert outcome(FUNCTIONS[name], converted, *args, **kwargs) == expected, (name, args, kwargs)


def test_graphs_without_nodes_have_no_components_and_no_diameter():
    empty = convert_from_nx(nx.Graph())
    assert list(FUNCTIONS["connected_components"](empty)) == []
    assert FUNCTIONS["number_connected_components"](empty) == 0
    assert list(FUNCTIONS["minimum_spanning_edges"](empty)) == []
    for name in "eccentricity", "diameter", "radius":
        assert outcome(FUNCTIONS[name], empty) == outcome(getattr(nx, name), nx.Graph(), backend="networkx")
    with pytest.raises(nx.NetworkXPointlessConcept):
        FUNCTIONS["is_connected"](empty)
