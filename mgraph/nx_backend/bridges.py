"""Serve `networkx.algorithms.bridges`: bridges, and whether there are any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.bridges import bridges as find_bridges
from mgraph.nx_backend.graph import ConvertedGraph

__all__ = ["bridges", "has_bridges"]


def bridges(G: ConvertedGraph, root: None = None, *, cluster: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the bridges, in the order of NetworkX's edges; parallel edges are none."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    for u, v in _bridges(G, cluster).tolist():
        yield G.nodes[u], G.nodes[v]


def has_bridges(G: ConvertedGraph, root: None = None, *, cluster: Any = None) -> bool:
    """Return whether there is a bridge."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    return len(_bridges(G, cluster)) > 0


def _bridges(G: ConvertedGraph, cluster: Any) -> np.ndarray:
    """Return the numbers of both nodes of each bridge."""
    n = len(G)
    sources = G.sources()
    arcs = np.flatnonzero(G.targets > sources)
    if not len(arcs):
        return np.empty((0, 2), np.int64)
    with find_bridges(G.built(cluster=cluster)) as found:
        ends = [column.to_numpy() for column in found]
    keys = sources[arcs] * n + G.targets[arcs]
    # Parallel edges follow each other; a build keeps one of them.
    is_single = np.ones(len(arcs), bool)
    if G.is_multigraph():
        counts = np.unique(keys, return_inverse=True, return_counts=True)
        is_single = (counts[2] == 1)[counts[1]]
    is_bridge = np.isin(keys, ends[0] * n + ends[1]) & is_single
    return np.column_stack((sources[arcs], G.targets[arcs]))[is_bridge]
