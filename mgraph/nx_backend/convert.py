"""Convert graphs of NetworkX to graphs of the backend, and back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.weights import as_column


def convert_from_nx(
    graph: nx.Graph,
    *,
    edge_attrs: Mapping[Any, Any] | None = None,
    node_attrs: Mapping[Any, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    **names: str | None,
) -> ConvertedGraph:
    """Convert a graph of NetworkX.

    Parameters
    ----------
    edge_attrs, node_attrs
        Attributes to keep, with the values where they are missing.
    preserve_edge_attrs, preserve_node_attrs, preserve_graph_attrs
        Whether to keep all attributes.
    names
        Of the function and of its parameter, which change nothing.
    """
    if not isinstance(graph, nx.Graph):
        raise TypeError(f"{type(graph).__name__} is not a graph of NetworkX")
    converted = ConvertedGraph(graph)
    if preserve_graph_attrs:
        converted.graph.update(graph.graph)
    if preserve_node_attrs:
        converted.node_data = [graph.nodes[node] for node in converted.nodes]
    elif node_attrs:
        converted.node_data = [_chosen(graph.nodes[node], node_attrs) for node in converted.nodes]
    if preserve_edge_attrs:
        converted.data = _data(graph, converted)
    elif edge_attrs:
        data = _data(graph, converted)
        converted.columns = {
            name: as_column([d.get(name, default) for d in data]) for name, default in edge_attrs.items()
        }
    return converted


def _data(graph: nx.Graph, converted: ConvertedGraph) -> list[dict]:
    """Return the attributes of each arc."""
    data = itertools.chain.from_iterable(graph._adj[node].values() for node in converted.nodes)
    if converted.is_multigraph():
        data = itertools.chain.from_iterable(parallel.values() for parallel in data)
    return list(data)


def _chosen(attributes: dict, names: Mapping[Any, Any]) -> dict:
    given = {name: attributes.get(name, default) for name, default in names.items()}
    return {name: value for name, value in given.items() if value is not None or name in attributes}


def convert_to_nx(result: Any, **names: str | None) -> Any:
    """Convert a graph of the backend to one of NetworkX; return other results as they are."""
    if not isinstance(result, ConvertedGraph):
        return result
    graph = result.kind()
    graph.graph.update(result.graph)
    graph.add_nodes_from(result.nodes if result.node_data is None else zip(result.nodes, result.node_data, strict=True))
    _add_arcs(graph, result)
    return graph


def _add_arcs(graph: nx.Graph, converted: ConvertedGraph) -> None:
    """Fill the adjacencies in their own order, which adding edges one by one would not keep."""
    sources = converted.sources().tolist()
    targets = converted.targets.tolist()
    nodes = converted.nodes
    for arc, (u, v) in enumerate(zip(sources, targets, strict=True)):
        row = graph._adj[nodes[u]]
        if v < u and not converted.is_directed():
            # Both ends of an edge have one and the same dict.
            row[nodes[v]] = graph._adj[nodes[v]][nodes[u]]
        elif converted.keys is None:
            row[nodes[v]] = dict(converted.attributes(arc))
        else:
            row.setdefault(nodes[v], {})[converted.keys[arc]] = dict(converted.attributes(arc))
    if converted.is_directed():
        ends = np.repeat(np.arange(len(nodes)), np.diff(converted.in_indptr)).tolist()
        for v, u in zip(ends, converted.in_sources.tolist(), strict=True):
            graph._pred[nodes[v]][nodes[u]] = graph._adj[nodes[u]][nodes[v]]
