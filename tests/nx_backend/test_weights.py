"""Test which weights are lengths, and what is said of the others."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from mgraph.nx_backend.convert import convert_from_nx
from mgraph.nx_backend.interface import FUNCTIONS

FROM_EACH = ("all_pairs_dijkstra", "all_pairs_dijkstra_path", "all_pairs_dijkstra_path_length")
REFUSED = {
    "integers and floats": ([1, 2.5], "of type float, int, not all 64-bit integers or all floats"),
    "text": (["1", "2"], "of type str"),
    "truth values": ([True, False], "of type bool"),
    "no value": ([None, 1], "of type NoneType, int"),
    "beyond 64 bits": ([1 << 70, 1], "of type int"),
    "unsigned beyond 63 bits": ([(1 << 63) + 1, 1], "of type int"),
    "negative": ([3, -2], "not negative, and one is -2"),
    "negative floats": ([0.5, -0.25], "not negative, and one is -0.25"),
    "not a number": ([float("nan"), 1.0], "not negative, and one is nan"),
    "infinite": ([float("inf"), 1.0], "is not finite"),
    "sums that overflow": ([1e308, 1e308], "is not finite"),
    "integers with sums that overflow": (
        [1 << 62, 1 << 62],
        "a sum of 3 weights up to 4611686018427387904 is beyond 64 bits",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_weights_that_would_be_added_differently_are_refused(case):
    weights, reason = REFUSED[case]
    graph = nx.path_graph(3)
    for (_, _, data), weight in zip(graph.edges(data=True), weights, strict=True):
        data["weight"] = weight
    converted = convert_from_nx(graph, edge_attrs={"weight": 1})
    # At the call, not when its results are read: NetworkX asks the next backend then.
    for name, args in (("single_source_dijkstra_path_length", (0,)), *((name, ()) for name in FROM_EACH)):
        with pytest.raises(NotImplementedError, match=reason):
            FUNCTIONS[name](converted, *args)
    # Hops need no weights.
    assert FUNCTIONS["single_source_shortest_path_length"](converted, 0) == {0: 0, 1: 1, 2: 2}


def test_numbers_of_numpy_are_returned_as_those_of_python():
    graph = nx.Graph([(0, 1, {"weight": np.float64(0.5)}), (1, 2, {"weight": np.float64(0.25)})])
    found = FUNCTIONS["single_source_dijkstra_path_length"](convert_from_nx(graph, edge_attrs={"weight": 1}), 0)
    assert found == {0: 0, 1: 0.5, 2: 0.75} and list(map(type, found.values())) == [int, float, float]
