"""minimum_spanning_forest as users call it, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mgraph.algorithms.spanning_forest.exact_sum import as_float
from mgraph.api.graph import Graph, require_graph
from mgraph.api.results import Column, Costs, Kept, Result, costs_of_ranks
from mgraph.edges import EdgeSource
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.jobs import check_forest, span
from mgraph.shard.shard import GraphInfo
from mgraph.validation.traversal import Violation

UNWEIGHTED = "the graph has no weights: a spanning forest needs them, build it with weights"
DIRECTED = (
    "the graph is directed: a spanning forest is of an undirected one, "
    "build it with directed=False (--undirected on the command line)"
)


class Forest(Result):
    """The edges of a spanning forest, in rising order of (source, target), each source below its target.

    Unpacks like a tuple: `sources, targets, weights = mg.minimum_spanning_forest(g)`.

    Attributes
    ----------
    sources, targets
        int64, the ends of every edge.
    weights
        Floats as those of the graph; int64 for integer weights.
    total_weight
        Their sum: a Python int, or a float that was rounded once, whatever the order.
    num_edges, num_trees
        A vertex without edges is a tree.
    maximum
        Whether it is the heaviest forest.
    stats
        What it took; phases are forest and translate. Supersteps: `rows` takes every vertex's lightest edge, in
        `shrink` each rank joins trees over its own edges, in each `meet` over those of all ranks that are left.
    """

    def __init__(self, kept: Kept, maximum: bool, parts: Sequence[dict]) -> None:
        super().__init__(kept)
        graph = kept.graph
        self.maximum, self.stats = maximum, Costs(**costs_of_ranks(graph, parts))
        self.num_edges = sum(part["edges"] for part in parts)
        self.num_trees = graph.num_vertices - self.num_edges
        ids, weights = np.dtype(np.int64), np.dtype(str(graph.info.weight_dtype))
        total = sum(part["total"] for part in parts)
        self.total_weight: int | float = as_float(total) if weights.kind == "f" else total
        self.sources = Column(self._kept, "sources", ids, self.num_edges)
        self.targets = Column(self._kept, "targets", ids, self.num_edges)
        self.weights = Column(self._kept, "weights", weights if weights.kind == "f" else ids, self.num_edges)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.sources, self.targets, self.weights

    def violations(self) -> Sequence[Violation]:
        return self.run(check_forest, self.graph.key)[0]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        head = f"{'maximum' if self.maximum else 'minimum'} spanning forest of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        edges, trees = counted(self.num_edges, "edge"), counted(self.num_trees, "tree")
        seconds = readable_seconds(self.stats.total_s)
        return f"<{head}: {edges} in {trees}, total weight {self.total_weight:,}, {seconds}>"


def minimum_spanning_forest(g: Graph, *, maximum: bool = False) -> Forest:
    """Find the edges of least total weight that connect all vertices which are connected.

    Of edges of equal weight the one whose lower end comes first in the graph's order is taken, then the
    one whose higher end does: there is one answer, for any number of ranks. `minimum_spanning_tree` is the same
    function.

    Parameters
    ----------
    g
        An undirected graph with weights, which may be negative.
    maximum
        Whether the heaviest forest is wanted.
    """
    require_graph(g)
    g.require_rows("minimum_spanning_forest")
    require_spannable(g.info)
    maximum, kept = as_flag(maximum, "maximum"), Kept(g)
    return Forest(kept, maximum, g.answer(span, [kept], kept.key, maximum))


minimum_spanning_tree = minimum_spanning_forest


def require_spannable(edges: GraphInfo | EdgeSource) -> None:
    """Raise UsageError unless a graph of this kind has a spanning forest."""
    if edges.directed:
        raise UsageError(DIRECTED)
    if edges.weight_dtype is None:
        raise UsageError(UNWEIGHTED)
