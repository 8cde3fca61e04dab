"""Implement is_bipartite and its result."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.api.traversal import bfs
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.rank_jobs.bipartite import check_sides, find_closing_edge, find_sides
from mgraph.types import LEVEL
from mgraph.validation.traversal import Violation


class Bipartite(Result):
    """Tell whether a graph is bipartite; it is true if so, as in `if mg.is_bipartite(g):`.

    Attributes
    ----------
    sides
        0 or 1, int32: the ends of every edge are on different sides, and the smallest vertex of a component is on
        side 0. It is -1 in a component that has an odd cycle.
    stats
        What the result cost. Phases: find. Supersteps: `link` joins the ends of each rank's arcs, `merge` those of all.
    """

    def __init__(self, stored: Stored, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        self.stats = Costs(**costs_of_ranks(stored.graph, parts))
        self._without_side = next((part["without_side"] for part in parts if part["without_side"] is not None), None)
        self.sides = Column(self._stored, "sides", LEVEL)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.sides,)

    @functools.cached_property
    def odd_cycle(self) -> list[Any]:
        """The vertices of a cycle with an odd number of edges, each once; [] if the graph is bipartite.

        A search finds it when it is first read, from the smallest vertex without a side: of the edges between vertices
        of one level, the first by level and by its ends closes it.
        """
        if self._without_side is None:
            return []
        return _odd_cycle(self.graph, self._without_side)

    def __bool__(self) -> bool:
        return self._without_side is None

    def _violations(self) -> Sequence[Violation]:
        cycle = self.graph.ids_of(self.odd_cycle).tolist()
        return self._stored.run(check_sides, self.graph._key, cycle)[0]

    def __repr__(self) -> str:
        kind = "bipartite" if self else "not bipartite"
        if self.closed:
            return f"<{self.graph.name} is {kind}: closed>"
        vertices = counted(self.graph.num_vertices, "vertex")
        return f"<{self.graph.name} is {kind}: {vertices}, {readable_seconds(self.stats.total_s)}>"


def is_bipartite(g: Graph) -> Bipartite:
    """Find whether vertices have two sides such that every edge connects both, or an odd cycle.

    Parameters
    ----------
    g
        An undirected graph.

    Returns
    -------
    Bipartite
        True or false, with the side of every vertex, and an odd cycle if there is one.

    Raises
    ------
    UsageError, WouldNotFit
        If the graph is directed, or has the compact layout; if it needs more memory than there is.

    Notes
    -----
    Every rank has two ids for each vertex of the graph. Docs: bipartite.md.

    Examples
    --------
    >>> bool(mg.is_bipartite(mg.from_edges([0, 1, 2], [1, 2, 3])))
    True
    >>> found = mg.is_bipartite(mg.from_edges(["a", "b", "c", "c"], ["b", "c", "a", "d"]))
    >>> bool(found), found.odd_cycle
    (False, ['a', 'b', 'c'])
    """
    require_graph(g)
    require_undirected(g.info.directed)
    g._require_rows("is_bipartite")
    stored = Stored(g)
    return Bipartite(stored, g._run(find_sides, [stored], stored.key))


def require_undirected(directed: bool) -> None:
    """Raise UsageError unless the graph is undirected."""
    if directed:
        raise UsageError(
            "the graph is directed: is_bipartite needs an undirected one, "
            "build it with directed=False (--undirected on the command line)"
        )


@repeated_after_loss
def _odd_cycle(g: Graph, vertex: int) -> list[Any]:
    """Return an odd cycle of the component of a vertex."""
    with bfs(g, g.labels_of([vertex])[0]) as found:
        ends = found._stored.run(find_closing_edge, g._key)[0]
        there, back = (found.path_to(vertex) for vertex in g.labels_of(ends).tolist())
    shared = sum(one == other for one, other in zip(there, back, strict=True))
    return there[shared - 1 :] + back[: shared - 1 : -1]
