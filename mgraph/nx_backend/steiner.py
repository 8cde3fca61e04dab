"""Serve `networkx.algorithms.approximation.steinertree`: a Steiner tree."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.steiner_tree import steiner_tree as find_tree
from mgraph.errors import UsageError
from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.ranks import refusals
from mgraph.nx_backend.spanning_trees import tree_of

__all__ = ["steiner_tree"]


def steiner_tree(
    G: ConvertedGraph, terminal_nodes: Any, weight: Any = "weight", method: str | None = None, *, cluster: Any = None
) -> nx.Graph:
    """Return a tree that connects the terminals, with their nodes and edges of the graph."""
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    terminals = [G.index[node] for node in terminal_nodes]
    with refusals(UsageError):
        built = G.built(weight, cluster=cluster)
        found = find_tree(built, terminals, weighted=G.weights(weight) is not None)
    with found:
        sources, targets = (column.to_numpy() for column in (found.sources, found.targets))
    n = len(G)
    # Of parallel edges the first lightest one.
    arcs = G.edges()
    weights = G.weights(weight)
    arcs = arcs[np.lexsort((arcs,) if weights is None else (arcs, weights[arcs]))]
    ends = np.sort([G.sources()[arcs], G.targets[arcs]], axis=0)
    keys, first = np.unique(ends[0] * n + ends[1], return_index=True)
    chosen = arcs[first[np.searchsorted(keys, sources * n + targets)]]
    return tree_of(G, np.sort(chosen), np.unique([sources, targets]))
