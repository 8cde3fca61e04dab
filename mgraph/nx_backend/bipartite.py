"""Serve `networkx.algorithms.bipartite.basic`: whether a graph is bipartite."""

from __future__ import annotations

from typing import Any

from mgraph.api.bipartite import is_bipartite as find_sides
from mgraph.api.from_memory import from_csr
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import find_cluster

__all__ = ["is_bipartite"]


def is_bipartite(G: ConvertedGraph, *, cluster: Any = None) -> bool:
    """Return whether nodes have two sides such that every edge connects both; directions do not count."""
    # A self-loop is an odd cycle, and is dropped from a graph that is built.
    if (G.targets == G.sources()).any():
        return False
    if not len(G):
        return True
    if not G.is_directed():
        with find_sides(G.built(cluster=cluster)) as found:
            return bool(found)
    ranks = find_cluster(cluster)
    with from_csr(G.indptr, G.targets, directed=False, cluster=ranks) as graph, find_sides(graph) as found:
        return bool(found)
