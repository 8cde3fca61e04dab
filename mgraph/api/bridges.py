"""Implement bridges and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.components import connected_components
from mgraph.api.edge_columns import edges_table, ends_of
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.results import Costs, Result, added_up, costs_of_ranks
from mgraph.api.tables_on_ranks import TableOnRanks
from mgraph.api.traversal import bfs
from mgraph.api.traversal_results import Traversed
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.rank_jobs.bridges import check_bridges, compute_bridges, list_roots
from mgraph.validation.traversal import Violation, ensure_valid


class Bridges(Result):
    """Hold the bridges of a graph, sorted by source, then target; it is true if there are any.

    The source of each is below its target. Unpacks like a tuple: `sources, targets = mg.bridges(g)`.

    Attributes
    ----------
    sources, targets
        The ends of each bridge: ids as int64, or labels.
    num_edges
        How many there are.
    stats
        What the result cost. Phases: those of components and of a breadth-first search, and cover.
    """

    def __init__(self, stored: Stored, stats: Costs, num_edges: int, roots: Sequence[Any]) -> None:
        super().__init__(stored)
        self.stats = stats
        self.num_edges = num_edges
        self.sources, self.targets = ends_of(stored, num_edges)
        self._roots = roots

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.sources, self.targets

    def _table(self) -> TableOnRanks:
        return edges_table(self, self.num_edges)

    def _violations(self) -> Sequence[Violation]:
        with _search(self.graph, self._roots) as found:
            ensure_valid(found._violations())
            return self._stored.run(check_bridges, self.graph._key, found._stored.key)[0]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __bool__(self) -> bool:
        return self.num_edges > 0

    def __repr__(self) -> str:
        if self.closed:
            return f"<bridges of {self.graph.name}: closed>"
        edges = counted(self.num_edges, "edge")
        return f"<bridges of {self.graph.name}: {edges}, {readable_seconds(self.stats.total_s)}>"


@repeated_after_loss
def bridges(g: Graph) -> Bridges:
    """Find the bridges: the edges without which their two ends would not be connected.

    They are the edges that are on no cycle. Parallel edges are one edge in a graph that is built.

    Parameters
    ----------
    g
        An undirected graph.

    Returns
    -------
    Bridges
        The ends of every bridge; true if there is one.

    Raises
    ------
    UsageError, WouldNotFit
        If the graph is directed, has no vertex or the compact layout; if it needs more memory than there is.

    Notes
    -----
    Components, and a breadth-first search from one vertex of each; then every rank has tables of all vertices, some 60
    bytes for each. Docs: bridges.md.

    Examples
    --------
    >>> found = mg.bridges(mg.from_edges([0, 1, 2, 2, 4], [1, 2, 0, 3, 5]))
    >>> found.sources.to_numpy().tolist(), found.targets.to_numpy().tolist()
    ([2, 4], [3, 5])
    """
    require_graph(g)
    require_undirected(g.info.directed)
    g._require_rows("bridges")
    if not g.num_vertices:
        raise UsageError(f"{g.name} has no vertex, and no bridges")
    with connected_components(g) as components:
        listed = components._stored.run(list_roots, g._key)
        roots = g.labels_of(np.concatenate(listed)).tolist()
        costs = [components.stats]
    with _search(g, roots) as found:
        costs.append(found.stats)
        stored = Stored(g)
        parts = g._run(compute_bridges, [stored], found._stored.key, stored.key)
    costs.append(Costs(**costs_of_ranks(g, parts)))
    return Bridges(stored, added_up(costs), sum(part["edges"] for part in parts), roots)


def require_undirected(directed: bool) -> None:
    """Raise UsageError unless the graph is undirected."""
    if directed:
        raise UsageError(
            "the graph is directed: bridges needs an undirected one, "
            "build it with directed=False (--undirected on the command line)"
        )


def _search(g: Graph, roots: Sequence[Any]) -> Traversed:
    """Search from the roots; without any there is no edge, and any vertex does."""
    return bfs(g, list(roots) or g.labels_of([0]).tolist())
