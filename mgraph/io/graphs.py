"""Graphs of NetworkX, read by their methods: no import of NetworkX is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io.memory import IdOptions, MemoryTable, columns_table
from mgraph.io.memory_columns import MemoryColumn, ids_column

CONVERT = "networkx.convert_node_labels_to_integers(G, label_attribute='name') gives numbers to any nodes"


def networkx_table(graph: Any, weight: str | bool | None = "weight", how: IdOptions | None = None) -> MemoryTable:
    """Return a graph of NetworkX as a table; `weight` is the attribute of edges, None for no weights.

    An edge without the attribute has weight 1, as in NetworkX's own functions.
    """
    if not (hasattr(graph, "is_directed") and hasattr(graph, "is_multigraph") and hasattr(graph, "nodes")):
        raise InputError(f"{type(graph).__name__} is not a graph of NetworkX")
    how = dataclasses.replace(how or IdOptions(), directed=bool(graph.is_directed()))
    nodes = list(graph)
    kind = _kind(nodes)
    weights: Any = None
    missing = object()
    if not isinstance(weight, str):
        edges = list(graph.edges())
    else:
        found = list(graph.edges(data=weight, default=missing))
        edges = [(u, v) for u, v, _ in found]
        values = [value for *_, value in found]
        weights = _weights(edges, values, missing, weight)
    sources, targets = zip(*edges, strict=True) if edges else ((), ())
    table = columns_table(_ids(sources, kind), _ids(targets, kind), weights, name=_name(graph), row="edge", how=how)
    return dataclasses.replace(table, vertices=_vertices(nodes, kind))


def _kind(nodes: Collection[Any]) -> type:
    """Return whether all nodes are integers or strings; other nodes are refused."""
    kinds = set(map(type, nodes))
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        return int
    if all(issubclass(kind, str) for kind in kinds):
        return str
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"the nodes are of the types {names}: labels are all integers or all strings; {CONVERT}")


def _ids(nodes: Any, kind: type) -> Any:
    if kind is str:
        return list(nodes) if len(nodes) else np.empty(0, object)
    try:
        return np.fromiter(nodes, np.int64, len(nodes))
    except OverflowError:
        raise InputError(f"some nodes are beyond 64 signed bits: {CONVERT}") from None


def _vertices(nodes: list[Any], kind: type) -> MemoryColumn:
    return ids_column(_ids(nodes, kind), "nodes")


def _weights(edges: list[Any], values: list[Any], missing: object, weight: str) -> np.ndarray | None:
    """Return the weights; None if no edge has the usual attribute."""
    if all(value is missing for value in values):
        if values and weight != "weight":
            raise UsageError(f"no edge has the attribute {weight!r}: weight=None means no weights")
        return None
    present = [1 if value is missing else value for value in values]
    wrong = {kind for kind in set(map(type, present)) if not _is_number(kind)}
    if wrong:
        i = next(i for i, value in enumerate(present) if type(value) in wrong)
        raise InputError(f"edge {edges[i]!r:.80} has the {weight} {present[i]!r:.80}, which is no number")
    found = np.array(present)
    if found.dtype.kind == "O":
        raise InputError(f"some {weight} is beyond 64 bits: use floats")
    return found


def _is_number(kind: type) -> bool:
    return issubclass(kind, (int, float, np.integer, np.floating)) and kind is not bool


def _name(graph: Any) -> str:
    return str(getattr(graph, "name", "")) or "networkx"
