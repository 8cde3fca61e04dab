"""Serve `networkx.algorithms.core`: core numbers, and the subgraph of a core."""

from __future__ import annotations

from typing import Any

import networkx as nx

from mgraph.api.core_numbers import core_numbers
from mgraph.nx_backend.convert import convert_to_nx
from mgraph.nx_backend.graph import ConvertedGraph

__all__ = ["core_number", "k_core"]

LOOPS = "Input graph has self loops which is not permitted; Consider using G.remove_edges_from(nx.selfloop_edges(G))."


def core_number(G: ConvertedGraph, *, cluster: Any = None) -> dict[Any, int]:
    """Return the core number of each node."""
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")
    if (G.targets == G.sources()).any():
        raise nx.NetworkXNotImplemented(LOOPS)
    if not len(G):
        return {}
    with core_numbers(G.built(cluster=cluster)) as found:
        return dict(zip(G.nodes, found.cores.to_numpy().tolist(), strict=True))


def k_core(G: ConvertedGraph, k: Any = None, core_number: Any = None, *, cluster: Any = None) -> nx.Graph:
    """Return the subgraph of the nodes of a core number of at least k, by default of the largest."""
    cores = _core_number(G, cluster=cluster)
    least = max(cores.values()) if k is None else k
    # In the order that NetworkX gives the nodes of a subgraph.
    return convert_to_nx(G).subgraph([node for node, core in cores.items() if core >= least]).copy()


# A parameter of k_core has its name.
_core_number = core_number
