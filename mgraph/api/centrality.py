"""Implement closeness and harmonic centrality."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, overload

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.traversal import PATHS_NEED_WEIGHTS, as_roots, state_dtype
from mgraph.errors import UsageError
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.centrality import Measure, find_centralities, store_centralities


@overload
def closeness(g: Graph, vertices: None = None, *, weighted: bool | None = None) -> Column: ...
@overload
def closeness(g: Graph, vertices: Iterable[int] | Iterable[str], *, weighted: bool | None = None) -> np.ndarray: ...


def closeness(g: Graph, vertices: Any = None, *, weighted: bool | None = None) -> Column | np.ndarray:
    """Find how near each vertex is to all others: the inverse of its mean distance.

    It is multiplied by the share of the other vertices that are at a finite distance (Wasserman and Faust), and 0 where
    there are none.

    Parameters
    ----------
    g
        A graph with rows. In a directed one, distances are those to the vertex.
    vertices
        Some vertices; by default all.
    weighted
        Whether paths are measured by weights, or in hops; by default by weights if the graph has them.

    Returns
    -------
    Column or ndarray
        The closeness of each vertex, float64, on the ranks until it is read; of some vertices an array, in their order.
        Equal to the bit for any number of ranks and backend.

    Raises
    ------
    UsageError
        If a vertex is unknown, or paths are to be measured by weights that the graph does not have.
    InputError, WouldNotFit
        As `sssp`.

    Notes
    -----
    By hops 64 vertices in one search, by weights a search for each. Docs: closeness.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2], [1, 2, 3])
    >>> mg.closeness(g).to_numpy().tolist()
    [0.5, 0.75, 0.75, 0.5]
    >>> mg.closeness(g, [2]).tolist()
    [0.75]
    """
    return _centrality(g, vertices, weighted, "closeness")


@overload
def harmonic(g: Graph, vertices: None = None, *, weighted: bool | None = None) -> Column: ...
@overload
def harmonic(g: Graph, vertices: Iterable[int] | Iterable[str], *, weighted: bool | None = None) -> np.ndarray: ...


def harmonic(g: Graph, vertices: Any = None, *, weighted: bool | None = None) -> Column | np.ndarray:
    """Find the harmonic centrality of each vertex: the sum of the inverse distances of all others.

    Vertices at no finite distance, or at distance 0, add nothing.

    Parameters
    ----------
    g, vertices, weighted
        As in `closeness`.

    Returns
    -------
    Column or ndarray
        The sum for each vertex, float64, as `closeness` returns it. By hops the inverses are added level by level, by
        weights exactly.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `closeness`.

    Notes
    -----
    As `closeness`. Docs: closeness.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2], [1, 2, 3])
    >>> mg.harmonic(g, [1]).tolist()
    [2.5]
    """
    return _centrality(g, vertices, weighted, "harmonic")


@repeated_after_loss
def _centrality(g: Graph, vertices: Any, weighted: bool | None, measure: Measure) -> Column | np.ndarray:
    require_graph(g)
    g._require_rows(measure)
    has_weights = g.info.weight_dtype is not None
    by_weights = has_weights if weighted is None else as_flag(weighted, "weighted")
    if by_weights and not has_weights:
        raise UsageError(PATHS_NEED_WEIGHTS)
    dtype = state_dtype(g.info) if by_weights else None
    roots = None if vertices is None else [vertex for root in as_roots(g, vertices) for vertex in root.ids]
    with contextlib.ExitStack() as stack:
        # Distances to a vertex are those from it, against the arcs.
        to = stack.enter_context(g.reversed()) if g.info.directed else g
        if roots is not None:
            return np.array(to._run(find_centralities, (), roots, measure, dtype, doing=measure)[0], np.float64)
        stored = Stored(g)
        to._run(store_centralities, [stored], stored.key, measure, dtype, doing=measure)
        return Column(stored, measure, np.dtype(np.float64))
