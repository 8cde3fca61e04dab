"""Implement core_numbers and its result, and k_core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.api.subgraph import subgraph
from mgraph.errors import UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_integer
from mgraph.rank_jobs.core_numbers import check_core_numbers, compute_core_numbers
from mgraph.validation.traversal import Violation


class CoreNumbers(Result):
    """Hold the core number of every vertex.

    Attributes
    ----------
    cores
        The largest k of a k-core that has the vertex, int64.
    degeneracy
        The largest core number; 0 of a graph without edges.
    stats
        What the result cost. Phases: prepare, for the in-rows of a directed graph; peel, translate. Supersteps: `list`
        begins a level, each `peel` takes arcs from the neighbors of what was peeled before.
    """

    def __init__(self, stored: Stored, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        self.stats = Costs(**costs_of_ranks(stored.graph, parts))
        self.degeneracy = max(part["degeneracy"] for part in parts)
        self.cores = Column(self._stored, "cores", np.dtype(np.int64))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.cores,)

    def _violations(self) -> Sequence[Violation]:
        return self._stored.run(check_core_numbers, self.graph._key)[0]

    def __repr__(self) -> str:
        head = f"core numbers of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        vertices = counted(self.graph.num_vertices, "vertex")
        return f"<{head}: up to {self.degeneracy} for {vertices}, {readable_seconds(self.stats.total_s)}>"


def core_numbers(g: Graph) -> CoreNumbers:
    """Find the core number of every vertex.

    The k-core is the largest set of vertices that each have at least k neighbors in it. The core number of a vertex is
    the largest k for which it is in the k-core. Self-loops do not count and parallel edges count once, as in `degrees`.
    In a directed graph arcs out and arcs in count, and two opposite arcs count twice, as in NetworkX.

    Parameters
    ----------
    g
        The graph.

    Returns
    -------
    CoreNumbers
        A number for each vertex, the same for any number of ranks.

    Raises
    ------
    UsageError, WouldNotFit
        In the compact layout; if it needs more memory than there is.

    Notes
    -----
    Vertices are peeled off level by level; each arc is scanned once. Docs: core-numbers.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 2], [1, 2, 0, 3])
    >>> found = mg.core_numbers(g)
    >>> found.cores.to_numpy().tolist(), found.degeneracy
    ([2, 2, 2, 1], 2)
    """
    require_graph(g)
    g._require_rows("core_numbers")
    stored = Stored(g)
    return CoreNumbers(stored, g._run(compute_core_numbers, [stored], stored.key))


@repeated_after_loss
def k_core(g: Graph, k: int | None = None) -> Graph:
    """Build the graph of the k-core: of the vertices with a core number of at least k, and all edges between them.

    Vertices keep their names, as in `subgraph`.

    Parameters
    ----------
    g
        A graph with rows.
    k
        The least core number; by default the largest that there is.

    Returns
    -------
    Graph
        On the same ranks; `g` may be closed. It has no vertex if no core number is that large.

    Raises
    ------
    UsageError, WouldNotFit
        If `k` is no integer, or is negative; in the compact layout; if both graphs do not fit.

    Notes
    -----
    The core numbers are found, then `subgraph` builds the graph.

    Examples
    --------
    >>> with mg.k_core(mg.from_edges([0, 1, 2, 2], [1, 2, 0, 3])) as core:
    ...     core.num_edges, core.labels.to_numpy().tolist()
    (3, [0, 1, 2])
    """
    if k is not None and as_integer(k, "k") < 0:
        raise UsageError(f"k is {k}: a core number is not negative")
    with core_numbers(g) as found:
        return subgraph(g, found.cores >= (found.degeneracy if k is None else as_integer(k, "k")))
