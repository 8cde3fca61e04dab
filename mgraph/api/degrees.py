"""Implement degrees."""

from __future__ import annotations

from typing import get_args

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.errors import UsageError
from mgraph.rank_jobs.degrees import Direction, count_degrees


def degrees(g: Graph, direction: Direction = "out") -> Column:
    """Count the arcs of every vertex.

    Self-loops do not count and parallel edges count once, since the build drops them: `Graph.info` has their numbers.

    Parameters
    ----------
    g
        The graph.
    direction
        In a directed graph, whether to count arcs `out` of a vertex, those `in`, or `both`. In an undirected graph each
        edge counts once at each of its ends, whatever the direction.

    Returns
    -------
    Column
        The degree of each vertex, int64, on the ranks until it is read.

    Raises
    ------
    UsageError, WouldNotFit
        If the direction is none of these, or needs rows in the compact layout; if there is too little memory.

    Notes
    -----
    Arcs in are counted by a pass over all arcs, with 8 bytes for each vertex of the graph on every rank.

    Examples
    --------
    >>> g = mg.from_edges([0, 0, 2], [1, 2, 1], directed=True)
    >>> mg.degrees(g).to_numpy().tolist(), mg.degrees(g, "in").to_numpy().tolist()
    ([2, 0, 1], [0, 2, 1])
    >>> mg.degrees(g, "both").argmax()
    0
    """
    require_graph(g)
    if direction not in get_args(Direction):
        raise UsageError(f"direction {direction!r} is not one of {', '.join(get_args(Direction))}")
    if direction != "out" and g.info.directed:
        g._require_rows(f"direction={direction!r}")
    stored = Stored(g)
    g._run(count_degrees, [stored], stored.key, direction)
    return Column(stored, "degrees", np.dtype(np.int64))
