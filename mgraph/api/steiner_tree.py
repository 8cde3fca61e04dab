"""Implement steiner_tree and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.edge_columns import edges_table, ends_of, total_of, weights_of
from mgraph.api.graph import Graph, Stored, as_vertices, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.results import Costs, Result, added_up, costs_of_ranks
from mgraph.api.tables_on_ranks import TableOnRanks
from mgraph.api.traversal import bfs, sssp
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.steiner_tree import check_steiner_tree, compute_steiner_tree
from mgraph.validation.traversal import Violation


class SteinerTree(Result):
    """Hold the edges of a tree that connects terminals, sorted by source, then target.

    The source of each edge is below its target. Unpacks like a tuple: `sources, targets, weights = ...`.

    Attributes
    ----------
    sources, targets
        The ends of each edge: ids as int64, or labels.
    weights
        Float weights in the dtype of the graph; int64 for integer weights, and 1 where edges count alike.
    total_weight
        The sum of the weights: a Python int, or a float rounded once. Less than twice that of the lightest tree.
    num_edges
        Number of edges.
    stats
        What the result cost. Phases: those of a search, and connect.
    """

    def __init__(self, stored: Stored, stats: Costs, parts: Sequence[dict], request: tuple[np.ndarray, bool]) -> None:
        super().__init__(stored)
        _, weighted = request
        self.stats = stats
        self.num_edges = sum(part["edges"] for part in parts)
        dtype = np.dtype(str(stored.graph.info.weight_dtype)) if weighted else np.dtype(np.int64)
        self.total_weight = total_of(parts, dtype)
        self.sources, self.targets = ends_of(stored, self.num_edges)
        self.weights = weights_of(stored, self.num_edges, dtype)
        self._request = request

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.sources, self.targets, self.weights

    def _table(self) -> TableOnRanks:
        return edges_table(self, self.num_edges)

    def _violations(self) -> Sequence[Violation]:
        return self._stored.run(check_steiner_tree, self.graph._key, *self._request)[0]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        head = f"Steiner tree of {counted(len(self._request[0]), 'terminal')} in {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        edges = counted(self.num_edges, "edge")
        return f"<{head}: {edges}, total weight {self.total_weight:,}, {readable_seconds(self.stats.total_s)}>"


@repeated_after_loss
def steiner_tree(g: Graph, terminals: Iterable[int | str], *, weighted: bool | None = None) -> SteinerTree:
    """Find a tree of edges that connects terminals and weighs less than twice the lightest one.

    Parameters
    ----------
    g
        An undirected graph. Weights must not be negative.
    terminals
        One vertex or more; repeated ones count once.
    weighted
        Whether to minimize the sum of weights, or the number of edges; by default of weights if the graph has them.

    Returns
    -------
    SteinerTree
        The edges of the tree, the same for any number of ranks, and their total weight.

    Raises
    ------
    UsageError
        If the graph is directed, or has the compact layout; if there is no terminal, or no tree: no path connects them.
    InputError, WouldNotFit
        If a weight is negative; if it needs more memory than there is.

    Notes
    -----
    A search from all terminals at once, then a forest of the paths over edges between vertices that are nearest to two
    of them (Mehlhorn). Every rank has tables of all vertices. Docs: steiner-trees.md.

    Examples
    --------
    >>> g = mg.from_edges(["a", "b", "c", "a"], ["x", "x", "x", "b"], [1, 1, 1, 3])
    >>> tree = mg.steiner_tree(g, ["a", "b", "c"])
    >>> tree.total_weight, tree.num_edges
    (3, 3)
    """
    require_graph(g)
    require_undirected(g.info.directed)
    g._require_rows("steiner_tree")
    if isinstance(terminals, (str, bytes)) or not isinstance(terminals, Iterable):
        raise UsageError(f"terminals {terminals!r} are not a list of vertices")
    given = as_vertices(g.info, g._ask, terminals, "terminal")
    if not given.ids:
        raise UsageError("there is no terminal: a Steiner tree needs one or more")
    weighted = g.info.weight_dtype is not None if weighted is None else as_flag(weighted, "weighted")
    search = sssp if weighted else bfs
    ids = np.unique(np.array(given.ids, np.int64))
    with search(g, g.labels_of(ids.tolist()).tolist()) as found:
        stored = Stored(g)
        how = (found._stored.key, stored.key, ids, weighted)
        parts = g._run(compute_steiner_tree, [stored], *how)
        stats = added_up([found.stats, Costs(**costs_of_ranks(g, parts))])
        if parts[0]["edges"] is None:
            raise UsageError(_unconnected(g, ids))
    return SteinerTree(stored, stats, parts, (ids, weighted))


def require_undirected(directed: bool) -> None:
    """Raise UsageError unless the graph is undirected."""
    if directed:
        raise UsageError(
            "the graph is directed: steiner_tree needs an undirected one, "
            "build it with directed=False (--undirected on the command line)"
        )


def _unconnected(g: Graph, terminals: np.ndarray) -> str:
    """Return an error that names two terminals without a path between them."""
    first, *others = g.labels_of(terminals.tolist()).tolist()
    with bfs(g, first, return_predecessors=False) as found:
        other: Any = next(vertex for vertex in others if found.distances[vertex] < 0)
    return f"no path connects the terminals {first!r} and {other!r}, and so no tree"
