"""Implement bfs_together: multi-source BFS, stored as bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS
from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.html import html_of_roots
from mgraph.api.labels import Vertices
from mgraph.api.results import Costs, costs_of_ranks
from mgraph.api.traversal import as_depth_limit, as_roots
from mgraph.api.traversal_results import Traversed
from mgraph.errors import refuse_pickle
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_integer
from mgraph.rank_jobs.multi_source import extract_root, search_all_roots
from mgraph.types import LEVEL


class TraversedTogether:
    """Hold the levels of many roots.

    `found[i]` is the result of root i, without predecessors.

    Attributes
    ----------
    graph, roots
        The graph that was searched, and the roots.
    stats
        What the search from all roots cost. Phases: prepare, traverse.
    """

    __reduce__ = refuse_pickle("take the distances, a matrix, or the columns of a root's result")
    _repr_html_ = html_of_roots

    def __init__(self, g: Graph, roots: list[Vertices], stored: list[Stored], limit: int | None, stats: Costs) -> None:
        self.graph = g
        self.roots = [name for root in roots for name in root.names]
        self._vertices = roots
        self.stats = stats
        self._limit = limit
        self._stored = stored

    def answer(self, index: int, *, return_predecessors: bool = True) -> Traversed:
        """Return the result of root number `index`, equal to that of bfs.

        Predecessors are computed now.

        Examples
        --------
        >>> together = mg.bfs_together(mg.from_edges([0, 1], [1, 2]), [0, 2])
        >>> together.answer(1).path_to(0)
        [2, 1, 0]
        """
        index = as_integer(index, "number of a root")
        root = self._vertices[index]
        batch, bit = divmod(index % len(self.roots), BATCH_ROOTS)
        spec = TraversalSpec("bfs", "multi_source", root.ids, LEVEL, self._limit, return_predecessors, root.names)
        levels = self._stored[batch]
        levels.require_open()
        stored = Stored(self.graph)
        parts = self.graph._run(extract_root, [stored], levels.key, bit, stored.key, spec)
        return Traversed(stored, spec, "requested", parts)

    @property
    def distances(self) -> np.ndarray:
        """The distances as a matrix, one row for each root."""
        rows = []
        for result in self:
            with result:
                rows.append(result.distances.to_numpy())
        return np.stack(rows)

    def __len__(self) -> int:
        return len(self.roots)

    def __getitem__(self, index: int) -> Traversed:
        return self.answer(index, return_predecessors=False)

    def __iter__(self) -> Iterator[Traversed]:
        return (self[index] for index in range(len(self)))

    def close(self) -> None:
        """Free the levels' memory on the ranks; existing results of roots remain."""
        for levels in self._stored:
            levels.close()

    def __enter__(self) -> TraversedTogether:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        head = f"bfs of {self.graph.name} from {counted(len(self), 'root')} together"
        if any(levels.closed for levels in self._stored):
            return f"<{head}: closed>"
        return f"<{head}: {counted(len(self.stats.supersteps), 'superstep')}, {readable_seconds(self.stats.total_s)}>"


def bfs_together(g: Graph, roots: Iterable[int | str], *, depth_limit: int | None = None) -> TraversedTogether:
    """Find the hops from each of many roots, 64 in one search or more (MS-BFS).

    Parameters
    ----------
    g
        A graph with rows.
    roots
        Vertices; repetitions are allowed.
    depth_limit
        Vertices farther than this many hops count as unreached.

    Returns
    -------
    TraversedTogether
        A sequence of results without predecessors, which `answer(i)` adds.

    Raises
    ------
    UsageError, WouldNotFit
        As `bfs`; UsageError also in the compact layout.

    Notes
    -----
    One scan of an arc serves 64 roots, on one GPU 256. This is faster than separate searches if the frontiers of the
    roots overlap, as in small-world graphs. Levels need a few bits for each root and vertex until a root's result is
    read. Docs: many-roots.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1], [1, 2])
    >>> mg.bfs_together(g, [0, 1]).distances.tolist()
    [[0, 1, 2], [1, 0, 1]]
    """
    require_graph(g)
    g._require_rows("bfs_together")
    vertices = as_roots(g, roots)
    ids = [vertex for root in vertices for vertex in root.ids]
    limit = as_depth_limit(g, depth_limit)
    batches = [ids[first : first + BATCH_ROOTS] for first in range(0, len(ids), BATCH_ROOTS)]
    stored = [Stored(g) for _ in batches]
    parts = g._run(search_all_roots, stored, [one.key for one in stored], batches, limit)
    return TraversedTogether(g, vertices, stored, limit, Costs(**costs_of_ranks(g, parts)))
