"""Results of NetworkX's functions as lists, in which values, types and orders can be compared at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx


def listed(result: Any) -> Any:
    """Return a result with the type of every part; dicts and generators in their order, sets without one."""
    if isinstance(result, nx.Graph):
        nodes = [(node, dict(data)) for node, data in result.nodes.items()]
        return type(result), result.graph, nodes, [(node, listed(row)) for node, row in result.adj.items()]
    if isinstance(result, set):
        return set, frozenset(result)
    if hasattr(result, "items"):
        return "mapping", [(key, listed(value)) for key, value in result.items()]
    if isinstance(result, Iterator):
        return "iterator", [listed(one) for one in result]
    if isinstance(result, (list, tuple)):
        return type(result), [listed(one) for one in result]
    return type(result), result


def outcome(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return what a call returns or raises, listed; NotImplementedError passes, as NetworkX asks another backend."""
    try:
        return listed(function(*args, **kwargs))
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error), str(error)
