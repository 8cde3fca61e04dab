"""Implement connected_components and its result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.formatting import counted, readable_seconds
from mgraph.rank_jobs.components import check_labels, compute_components, count_sizes
from mgraph.validation.traversal import Violation


class ComponentSizes(NamedTuple):
    """Hold columns with a row for each component: its label, and the number of its vertices."""

    labels: Column
    sizes: Column


# The job that checks labels against all arcs; a tuple has the job's further arguments, too.
OF_ALL = (check_labels,)


class Components(Result):
    """Hold the connected components of a graph, or the strongly connected ones.

    Attributes
    ----------
    labels
        The smallest vertex of the vertex's component: its id, or its label in a graph with labels. A vertex that is a
        component by itself has itself.
    num_components
        Number of components, those of a single vertex included.
    stats
        What the result cost. Phases: find, translate; prepare, of strong components for the in-rows; and on several
        GPUs also traverse, if a search from a hub finds most of the giant component. Of a forest that is cut: cut.
    """

    _vertex_columns = ("labels",)

    def __init__(
        self, stored: Stored, num_components: int, stats: Costs, *, kind: str = "components", check: tuple = OF_ALL
    ) -> None:
        super().__init__(stored)
        self.num_components = num_components
        self.stats = stats
        self._kind = kind
        self._check = check
        self.labels = Column(self._stored, "labels")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.labels,)

    def sizes(self) -> ComponentSizes:
        """Return the label and the size of each component, by rising label, on the ranks.

        >>> found = mg.connected_components(mg.from_edges(["a", "b", "x"], ["b", "c", "y"]))
        >>> labels, sizes = found.sizes()
        >>> labels.to_numpy().tolist(), sizes.to_numpy().tolist(), labels[sizes > 2].tolist()
        (['a', 'x'], [3, 2], ['a'])
        """
        stored = Stored(self.graph)
        self._stored.run(count_sizes, stored.key)
        rows = (self.num_components, "component")
        return ComponentSizes(
            Column(stored, "labels", rows=rows), Column(stored, "sizes", np.dtype(np.int64), rows=rows)
        )

    def largest(self) -> Any:
        """Return the label of the largest component, of several the smallest label.

        `mg.largest_component(g)` makes a graph of it.
        """
        labels, sizes = self.sizes()
        return labels[sizes.argmax()]

    def _violations(self) -> Sequence[Violation]:
        check, *args = self._check
        return self._stored.run(check, self.graph._key, *args)[0]

    def __repr__(self) -> str:
        head = f"{self._kind} of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        components = counted(self.num_components, "component")
        vertices = counted(self.graph.num_vertices, "vertex")
        return f"<{head}: {components} of {vertices}, {readable_seconds(self.stats.total_s)}>"


def connected_components(g: Graph, *, checkpoint: str | os.PathLike | None = None) -> Components:
    """Find the connected components; in a directed graph, the weakly connected ones.

    Parameters
    ----------
    g
        The graph.
    checkpoint
        A folder that all ranks share, in which the call keeps its state from time to time, and from which an equal call
        goes on, on any number of ranks. It is deleted at the end. Docs: checkpoints.md.

    Returns
    -------
    Components
        A label for each vertex: the smallest vertex of its component, for any number of ranks.

    Raises
    ------
    UsageError, WouldNotFit
        With a checkpoint in a layout without rows; if it needs more memory than there is.

    Notes
    -----
    Of undirected graphs with rows most arcs inside the largest component are not scanned. Docs: components.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 3], [1, 2, 4])
    >>> mg.connected_components(g).labels.to_numpy().tolist()
    [0, 0, 0, 3, 3]
    """
    require_graph(g)
    folder = checkpoint_folder("components", checkpoint)
    if folder is not None:
        g._require_rows("connected_components with a checkpoint")
    stored = Stored(g)
    parts = g._run(compute_components, [stored], stored.key, folder)
    return Components(stored, sum(part["components"] for part in parts), Costs(**costs_of_ranks(g, parts)))
