"""Implement minimum_spanning_forest and its result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.columns import Column
from mgraph.api.edge_columns import edges_table, ends_of, total_of, weights_of
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.linkage import cut, linkage
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.api.tables_on_ranks import TableOnRanks
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.spanning_forest import check_forest, compute_spanning_forest
from mgraph.validation.traversal import Violation

UNWEIGHTED = "the graph has no weights: a spanning forest needs them, build it with weights"
DIRECTED = (
    "the graph is directed: a spanning forest needs an undirected one, "
    "build it with directed=False (--undirected on the command line)"
)


class Forest(Result):
    """Hold the edges of a spanning forest, sorted by source, then target.

    The source of each edge is below its target.

    Unpacks like a tuple: `sources, targets, weights = mg.minimum_spanning_forest(g)`.

    Attributes
    ----------
    sources, targets
        The ends of each edge: ids as int64, or labels.
    weights
        Float weights in the dtype of the graph; int64 for integer weights.
    total_weight
        The sum of the weights: a Python int, or a float rounded once, so that it does not depend on the order.
    num_edges, num_trees
        Numbers of edges and of trees; an isolated vertex is a tree.
    maximum
        Whether this is the heaviest forest instead of the lightest.
    stats
        What the result cost. Phases: forest, translate. Supersteps: `rows` adds the lightest edge of each vertex,
        `light` joins trees over light edges, `outside` or `heavy` over the others; after each of these `merge` joins
        them over the forests of all ranks. In the layouts of blocks each `list` is followed by `shrink`, which joins.
    """

    cut = cut
    linkage = linkage

    def __init__(self, stored: Stored, maximum: bool, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        graph = stored.graph
        self.maximum = maximum
        self.stats = Costs(**costs_of_ranks(graph, parts))
        self.num_edges = sum(part["edges"] for part in parts)
        self.num_trees = graph.num_vertices - self.num_edges
        weights = np.dtype(str(graph.info.weight_dtype))
        self.total_weight = total_of(parts, weights)
        self.sources, self.targets = ends_of(stored, self.num_edges)
        self.weights = weights_of(stored, self.num_edges, weights)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.sources, self.targets, self.weights

    def _table(self) -> TableOnRanks:
        return edges_table(self, self.num_edges)

    def _violations(self) -> Sequence[Violation]:
        return self._stored.run(check_forest, self.graph._key)[0]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        head = f"{'maximum' if self.maximum else 'minimum'} spanning forest of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        edges = counted(self.num_edges, "edge")
        trees = counted(self.num_trees, "tree")
        seconds = readable_seconds(self.stats.total_s)
        return f"<{head}: {edges} in {trees}, total weight {self.total_weight:,}, {seconds}>"


def minimum_spanning_forest(g: Graph, *, maximum: bool = False, checkpoint: str | os.PathLike | None = None) -> Forest:
    """Find the edges of least total weight that span each connected component.

    Edges of equal weight are ordered by the position of their lower end, then of their higher end. So the forest is
    unique, for any number of ranks. `minimum_spanning_tree` is the same function.

    Parameters
    ----------
    g
        An undirected graph with weights, which may be negative.
    maximum
        Whether to find the heaviest forest instead.
    checkpoint
        A folder that all ranks share, in which the call keeps its state from time to time, and from which an equal call
        goes on, on any number of ranks. It is deleted at the end. Docs: checkpoints.md.

    Returns
    -------
    Forest
        The edges, sorted by source, then target, and their exact total weight.

    Raises
    ------
    UsageError, WouldNotFit
        If the graph is directed or has no weights; with a checkpoint in a layout without rows; if it needs more memory
        than there is.

    Notes
    -----
    Boruvka's algorithm, at most log2(n) rounds, light edges first. Docs: spanning-forests.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 0], [1, 2, 2], [1, 2, 5])
    >>> forest = mg.minimum_spanning_forest(g)
    >>> forest.total_weight, forest.num_trees, forest.sources.to_numpy().tolist()
    (3, 1, [0, 1])
    """
    require_graph(g)
    require_spannable(g.info.directed, g.info.weight_dtype is not None)
    maximum = as_flag(maximum, "maximum")
    folder = checkpoint_folder("spanning_forest", checkpoint)
    if folder is not None:
        g._require_rows("minimum_spanning_forest with a checkpoint")
    stored = Stored(g)
    return Forest(stored, maximum, g._run(compute_spanning_forest, [stored], stored.key, maximum, folder))


minimum_spanning_tree = minimum_spanning_forest


def require_spannable(directed: bool, has_weights: bool) -> None:
    """Raise UsageError unless the graph is undirected and has weights."""
    if directed:
        raise UsageError(DIRECTED)
    if not has_weights:
        raise UsageError(UNWEIGHTED)
