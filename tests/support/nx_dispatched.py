"""A session with NetworkX that dispatches to the backend: run by a test, in a process with its entry points."""

from __future__ import annotations

import sys
import warnings

import networkx as nx
from nx_calls import count_calls

assert nx.config.backend_priority.algos == ["mgraph"]
assert not {"numba", "dask", "scipy", "mgraph.nx_backend.interface"} & sys.modules.keys()
assert "mgraph : Searches" in nx.shortest_path.__doc__ and "cluster : Cluster" in nx.shortest_path.__doc__

import pytest  # noqa: E402

import mgraph as mg  # noqa: E402

warnings.simplefilter("error")
nx.config.warnings_to_ignore.add("cache")
CALLS = count_calls()


def reached(name, call):
    """Return the result of a call, and how often it has reached the backend."""
    before = CALLS[name]
    return call(), CALLS[name] - before


small = nx.les_miserables_graph()
lengths = nx.single_source_dijkstra_path_length(small, "Valjean", backend="networkx")

# Small graphs stay with NetworkX unless the call names the backend.
assert reached(
    "single_source_dijkstra_path_length", lambda: nx.single_source_dijkstra_path_length(small, "Valjean")
) == (
    lengths,
    0,
)
assert reached(
    "single_source_dijkstra_path_length",
    lambda: nx.single_source_dijkstra_path_length(small, "Valjean", backend="mgraph"),
) == (lengths, 1)

# The conversion is kept with the graph until the graph changes.
(converted,) = small.__networkx_cache__["backends"]["mgraph"].values()
nx.single_source_dijkstra_path_length(small, "Myriel", backend="mgraph")
assert list(small.__networkx_cache__["backends"]["mgraph"].values()) == [converted]
small.add_edge("Valjean", "nobody", weight=2)
assert nx.dijkstra_path_length(small, "Valjean", "nobody", backend="mgraph") == 2

# Large graphs are dispatched, and refusals go to NetworkX.
large = nx.circulant_graph(1 << 13, range(1, 6))
found, times = reached("single_source_dijkstra", lambda: nx.single_source_dijkstra(large, 0))
assert times == 1 and found == nx.single_source_dijkstra(large, 0, backend="networkx")
large[0][1]["weight"] = -1
large.__networkx_cache__.clear()
nx.set_edge_attributes(large, {(0, 1): 3.5}, "weight")
assert nx.dijkstra_path_length(large, 0, 1, weight=lambda u, v, data: 1) == 1
found, times = reached("single_source_dijkstra", lambda: nx.single_source_dijkstra(large, 0))
assert times == 1 and found == nx.single_source_dijkstra(large, 0, backend="networkx")

# A call that names the backend says why it is refused.
with pytest.raises(NotImplementedError) as refused:
    nx.single_source_dijkstra(large, 0, backend="mgraph")
assert "of type float, int" in str(refused.value.__cause__)

# The cluster of a call, and of the configuration.
with mg.connect(num_ranks=2, backend="cpu") as cluster:
    assert nx.shortest_path(small, "Valjean", backend="mgraph", cluster=cluster) == nx.shortest_path(small, "Valjean")
    nx.config.backends.mgraph.cluster = cluster
    fresh = nx.path_graph(5)
    assert nx.diameter(fresh, backend="mgraph") == 4
    (converted,) = fresh.__networkx_cache__["backends"]["mgraph"].values()
    assert converted.built().num_ranks == 2
nx.config.backends.mgraph.cluster = None
assert converted.built().num_ranks == 1

# A converted graph is searched without NetworkX, and converted back where the backend has no function.
from mgraph.nx_backend.convert import convert_from_nx  # noqa: E402

held = convert_from_nx(nx.cycle_graph(6))
assert reached("diameter", lambda: nx.diameter(held)) == (3, 1)
assert nx.is_bipartite(held, backend="networkx")
print("dispatched", sum(CALLS.values()), "calls")
