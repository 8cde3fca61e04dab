"""Decide which calls the backend can run, and which it should: those that are faster than NetworkX's own."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from mgraph.nx_backend.graph import ConvertedGraph
from mgraph.nx_backend.thresholds import CALLS_BEFORE_CONVERSION, MIN_ARCS

# Rows of an adjacency that are counted: the number of arcs is estimated from their mean length, as NetworkX counts
# edges node by node.
SAMPLED_ROWS = 64
# Where NetworkX keeps conversions of a graph, until the graph changes: the number of calls that went to NetworkX.
CALLS = "mgraph_calls"
# Without a weight they count hops.
ANY_WEIGHT = ("shortest_path", "shortest_path_length")
BOTH_ENDS = "NetworkX searches from both ends, and finds the path between two nodes sooner"


class Chooser:
    """Answer NetworkX's questions before a call; a string is a reason against it."""

    def __init__(self, functions: Mapping[str, Callable]) -> None:
        self._defaults = {
            name: {one.name: one.default for one in inspect.signature(function).parameters.values()}
            for name, function in functions.items()
        }

    def can_run(self, name: str, args: tuple, kwargs: dict[str, Any]) -> bool | str:
        """Return whether the arguments are served, or why not."""
        given = self._given(name, args, kwargs)
        checks = {**REFUSALS, **REFUSALS_OF.get(name, {})}
        reasons = (check(given[parameter]) for parameter, check in checks.items() if parameter in given)
        return next(filter(None, reasons), True)

    def should_run(self, name: str, args: tuple, kwargs: dict[str, Any]) -> bool | str:
        """Return whether the call is faster than NetworkX's own, or why not."""
        given = self._given(name, args, kwargs)
        graph = given["G"]
        if isinstance(graph, ConvertedGraph):
            return True
        if _is_between_two(name, given):
            return BOTH_ENDS
        weighted = name in ANY_WEIGHT and given["weight"] is not None
        first, converted = MIN_ARCS["single_source_dijkstra" if weighted else name]
        arcs = estimated_arcs(graph)
        if converted is None or arcs < converted:
            return f"NetworkX is faster on about {arcs} arcs"
        if _is_converted(graph, given.get("weight", given.get("distance"))) or (first is not None and arcs >= first):
            return True
        if _calls(graph) < CALLS_BEFORE_CONVERSION:
            return "a conversion takes longer than NetworkX: it begins to pay if the graph is asked more often"
        return True

    def _given(self, name: str, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        defaults = self._defaults[name]
        return {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}


def estimated_arcs(graph: Any) -> int:
    """Return about how many arcs a graph of NetworkX has."""
    rows = [len(row) for row in itertools.islice(graph._adj.values(), SAMPLED_ROWS)]
    return len(graph) * sum(rows) // max(len(rows), 1)


def _is_between_two(name: str, given: dict[str, Any]) -> bool:
    """Return whether NetworkX searches from both ends."""
    if name == "has_path":
        return True
    ends = name in ANY_WEIGHT and None not in (given["source"], given["target"])
    return ends and (name == "shortest_path" or given["weight"] is None)


def _is_converted(graph: Any, weight: Any) -> bool:
    """Return whether a conversion with this edge attribute is in NetworkX's cache of the graph."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    kept = [
        edges
        for (edges, _), found in cache.get("backends", {}).get("mgraph", {}).items()
        if isinstance(found, ConvertedGraph)
    ]
    return any(weight is None or edges is True or (edges and weight in dict(edges)) for edges in kept)


def _calls(graph: Any) -> int:
    """Count the calls of a graph that is not converted; return those before this one."""
    cache = getattr(graph, "__networkx_cache__", None)
    if cache is None or not nx.config.cache_converted_graphs:
        return 0
    cache[CALLS] = cache.get(CALLS, 0) + 1
    return cache[CALLS] - 1


def _not_a_limit(value: Any) -> str | None:
    known = value is None or isinstance(value, (int, float, np.integer, np.floating))
    if known and (value is None or (value >= 0 and not math.isnan(value))):
        return None
    return f"a limit of {value!r:.80} is no number that is 0 or more"


def _computed(value: Any) -> str | None:
    return "weights that a function computes are not read: mgraph takes an edge attribute" if callable(value) else None


# By parameter: returns why a value is not served, or None.
REFUSALS: dict[str, Callable[[Any], str | None]] = {
    "algorithm": lambda value: None if value == "kruskal" else f"algorithm {value!r}: mgraph repeats Kruskal's choices",
    "core_number": lambda value: None if value is None else "the core numbers are given: nothing is left to find",
    "cutoff": _not_a_limit,
    "dangling": lambda value: None if value is None else "dangling nodes have vertices of their own",
    "data": lambda value: None if isinstance(value, bool) else "data is neither True nor False",
    "depth_limit": _not_a_limit,
    "e": lambda value: None if value is None else "the eccentricities are given: nothing is left to search",
    "method": lambda value: None if value == "dijkstra" else f"method {value!r}: mgraph has no negative weights",
    "normalized": lambda value: None if value is True else "NetworkX's scores have an arbitrary sign",
    "nstart": lambda value: None if value is None else "the iteration has a start of its own",
    "root": lambda value: None if value is None else "mgraph finds the bridges of all components",
    "sort_neighbors": lambda value: None if value is None else "a function sorts the neighbors",
    "sp": lambda value: None if value is None else "the lengths of paths are given: nothing is left to search",
    "undirected": lambda value: "the directions of arcs are left out" if value else None,
    "usebounds": lambda value: "with bounds NetworkX needs few searches" if value else None,
    "weight": _computed,
}
# The same for parameters of single functions.
REFUSALS_OF: dict[str, dict[str, Callable[[Any], str | None]]] = {
    "steiner_tree": {
        "method": lambda value: None if value in (None, "mehlhorn") else f"method {value!r}: mgraph has Mehlhorn's"
    },
    "closeness_centrality": {
        "distance": _computed,
        "wf_improved": lambda value: None if value is True else "mgraph has the factor of Wasserman and Faust",
    },
    "hits": {
        # Both find the same scores.
        "method": lambda value: None if value in ("power_iteration", "svd") else f"method {value!r} is unknown"
    },
    "harmonic_centrality": {
        "distance": _computed,
        "sources": lambda value: None if value is None else "the sources are given: mgraph takes all nodes",
    },
}
