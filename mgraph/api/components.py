"""connected_components as users call it, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.api.graph import Graph, require_graph
from mgraph.api.results import Column, Costs, Kept, Result, costs_of_ranks
from mgraph.formatting import counted, readable_seconds
from mgraph.rank_jobs.jobs import check_labels, label_components
from mgraph.validation.traversal import Violation


class Components(Result):
    """The connected components of a graph.

    Attributes
    ----------
    labels
        int64: the smallest user id of the vertex's component. A vertex without edges is its own.
    num_components
        How many there are, those of one vertex included.
    stats
        What it took; phases are find and translate, and on several GPUs perhaps prepare and traverse: of a search
        from a hub, that finds most of the giant.
    """

    def __init__(self, kept: Kept, num_components: int, stats: Costs) -> None:
        super().__init__(kept)
        self.num_components, self.stats = num_components, stats
        self.labels = Column(self._kept, "labels", np.dtype(np.int64))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.labels,)

    def violations(self) -> Sequence[Violation]:
        return self.run(check_labels, self.graph.key)[0]

    def __repr__(self) -> str:
        head = f"components of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        components, vertices = counted(self.num_components, "component"), counted(self.graph.num_vertices, "vertex")
        return f"<{head}: {components} of {vertices}, {readable_seconds(self.stats.total_s)}>"


def connected_components(g: Graph) -> Components:
    """Find which vertices are connected; in a directed graph, along arcs in either direction (weakly).

    Parameters
    ----------
    g
        The graph.
    """
    require_graph(g)
    g.require_rows("connected_components")
    kept = Kept(g)
    parts = g.answer(label_components, [kept], kept.key)
    return Components(kept, sum(part["components"] for part in parts), Costs(**costs_of_ranks(g, parts)))
