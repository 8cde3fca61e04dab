"""Serve `networkx.generators.ego`: the subgraph of the nodes within a distance of one."""

from __future__ import annotations

from typing import Any

import networkx as nx

from mgraph.nx_backend.convert import convert_to_nx
from mgraph.nx_backend.dijkstra import single_source_dijkstra_path_length
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.unweighted_paths import single_source_shortest_path_length

__all__ = ["ego_graph"]


def ego_graph(
    G: ConvertedGraph,
    n: Any,
    radius: Any = 1,
    center: bool = True,
    undirected: bool = False,
    distance: Any = None,
    *,
    cluster: Any = None,
) -> nx.Graph:
    """Return the subgraph of the nodes within `radius` of n."""
    if distance is None:
        near = single_source_shortest_path_length(G, n, radius, cluster=cluster)
    else:
        near = single_source_dijkstra_path_length(G, n, radius, distance, cluster=cluster)
    # In the order that NetworkX gives the nodes of a subgraph.
    found = convert_to_nx(G).subgraph(near).copy()
    if not center:
        found.remove_node(n)
    return found
