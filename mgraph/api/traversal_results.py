"""Define the results of searches: distances, predecessors and stats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, as_vertices
from mgraph.api.html import html_of_many
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.errors import UsageError, refuse_pickle
from mgraph.formatting import counted, readable_seconds
from mgraph.io.output_tables import as_objects
from mgraph.rank_jobs.traversal import check_traversal, follow, put_in_user_order, store_in_graph_order
from mgraph.shard.user_ids import user_dtype
from mgraph.validation.traversal import Violation


@dataclass(frozen=True)
class Stats(Costs):
    """List what a search cost. Phases: prepare (once for a graph), traverse, predecessors, translate.

    Attributes
    ----------
    method, reason
        The method that ran, and why it was chosen.
    num_reached
        Number of vertices reached.
    num_edges
        Half the arcs of the vertices reached (all of them, if the graph is directed). Without a limit these are the
        edges of the component.
    """

    method: str
    reason: str
    num_reached: int
    num_edges: int

    @property
    def teps(self) -> float:
        """Traversed edges per second: `num_edges` divided by `total_s`."""
        return self.num_edges / self.total_s if self.total_s else 0.0

    def __repr__(self) -> str:
        steps = counted(len(self.supersteps), "superstep")
        arcs = counted(sum(self.arcs), "arc")
        return (
            f"<Stats: {self.method} ({self.reason}), {self.num_reached:,} reached, {steps}, {arcs} scanned, "
            f"{readable_seconds(self.total_s)}>"
        )

    @classmethod
    def _of_ranks(cls, g: Graph, spec: TraversalSpec, reason: str, parts: Sequence[dict]) -> Stats:
        """Merge the stats that the ranks report."""
        arcs = sum(part["reached_arcs"] for part in parts)
        return cls(
            **costs_of_ranks(g, parts),
            method="sweep" if parts[0]["variant"].endswith((".streamed", ".sweep")) else "frontier",
            reason=reason,
            num_reached=sum(part["reached"] for part in parts),
            num_edges=arcs if g.info.directed else arcs // 2,
        )


class InGraphOrder(NamedTuple):
    """Hold columns with a row for each vertex that has arcs, in the graph's own order: as ranks store the vertices.

    Attributes
    ----------
    vertices
        The vertex of each row: its id, or label. The order depends on the number of ranks.
    distances, predecessors
        Its values, those of the columns of the same names; predecessors are None if they were not requested.

    Examples
    --------
    >>> found = mg.bfs(mg.from_edges(["b", "c"], ["c", "a"]), "a", in_graph_order=True)
    >>> vertices, hops, parents = found.in_graph_order()
    >>> sorted(zip(vertices.to_numpy().tolist(), hops.to_numpy().tolist(), parents.to_numpy().tolist()))
    [('a', 0, 'a'), ('b', 2, 'c'), ('c', 1, 'a')]
    >>> vertices[hops == 2].tolist()
    ['b']
    """

    vertices: Column
    distances: Column
    predecessors: Column | None


class Traversed(Result):
    """Hold the result of a breadth-first search or of shortest paths.

    Unpacks like a tuple: `distances, predecessors = mg.bfs(g, 0)`.

    Attributes
    ----------
    distances
        bfs: int32, -1 if unreached. sssp: for float weights their dtype, inf if unreached; for integer weights
        int64, -1 if unreached.
    predecessors
        int64, -1 if unreached; in a graph with labels these, and `predecessors.missing` if unreached. A source is its
        own predecessor. None if they were not requested.
    nearest_source
        With several sources, the nearest one of each vertex; None with one.
    sources
        The sources of the search: ids, or labels.
    """

    _vertex_columns = ("predecessors", "nearest_source")
    _reached_columns = _vertex_columns

    def __init__(self, stored: Stored, spec: TraversalSpec, reason: str, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        self._spec = spec
        self._reported = reason, parts
        self.sources = spec.labels or spec.sources
        # The columns that are in the order of user ids.
        self._made = {*spec.at_once, *(() if spec.in_graph_order else ("nearest_source",))}

    @cached_property
    def stats(self) -> Stats:  # type: ignore[override]
        return Stats._of_ranks(self.graph, self._spec, *self._reported)

    @cached_property
    def distances(self) -> Column:
        return _column_by_user(self, "distances", user_dtype(self._spec.dtype))

    @cached_property
    def predecessors(self) -> Column | None:
        return _column_by_user(self, "predecessors") if self._spec.predecessors else None

    @cached_property
    def nearest_source(self) -> Column | None:
        return _column_by_user(self, "nearest_source") if len(self._spec.sources) > 1 else None

    def in_graph_order(self) -> InGraphOrder:
        """Return the result in the graph's own order, with the vertex of each row; vertices without arcs have none."""
        return _rows_in_graph_order(self)

    @property
    def columns(self) -> tuple[Column, ...]:
        columns = (self.distances, self.predecessors, self.nearest_source)
        return tuple(column for column in columns if column is not None)

    def _violations(self) -> Sequence[Violation]:
        if not self._spec.predecessors:
            raise UsageError("validation needs predecessors: search again without return_predecessors=False")
        return self._stored.run(check_traversal, self.graph._key)[0]

    def path_to(self, target: int | str) -> list:
        """Return the vertices of the path from a source to `target`, both included; [] if there is none."""
        return _path(self, target)

    def __iter__(self) -> Iterator[Column | None]:
        return iter((self.distances, self.predecessors))

    def __repr__(self) -> str:
        return _described(self)


def _column_by_user(found: Traversed, name: str, dtype: np.dtype | None = None) -> Column:
    """Return a column, once all are in the order of user ids."""
    if name not in found._made:
        found._stored.run(put_in_user_order, found.graph._key)
        found._made |= {"distances", "predecessors", "nearest_source"}
    return Column(found._stored, name, dtype)


def _path(found: Traversed, target: int | str) -> list:
    if found.predecessors is None:
        raise UsageError("paths need predecessors: search again without return_predecessors=False")
    (vertex,) = as_vertices(found.graph.info, found._stored.run, [target], "target").ids
    return list(as_objects(found._stored.run(follow, vertex)[0]).tolist())


def _rows_in_graph_order(found: Traversed) -> InGraphOrder:
    stored = Stored(found.graph)
    rows = (sum(found._stored.run(store_in_graph_order, found.graph._key, stored.key)), "place")
    return InGraphOrder(
        Column(stored, "vertices", rows=rows),
        Column(stored, "distances", user_dtype(found._spec.dtype), rows=rows),
        Column(stored, "predecessors", rows=rows) if found._spec.predecessors else None,
    )


def _described(found: Traversed) -> str:
    sources = ", ".join(map(str, found.sources[:3])) + (", ..." if len(found.sources) > 3 else "")
    head = f"{found._spec.algorithm} of {found.graph.name} from {sources}"
    if found.closed:
        return f"<{head}: closed>"
    stats = found.stats
    vertices = counted(found.graph.num_vertices, "vertex")
    return (
        f"<{head}: {stats.num_reached:,} of {vertices} reached{_isolated(found)}, "
        f"{stats.method}, {counted(len(stats.supersteps), 'superstep')}, {readable_seconds(stats.total_s)}>"
    )


def _isolated(found: Traversed) -> str:
    """Say why nothing but the sources is reached, if they have no arcs; without a limit a neighbor would be."""
    if found._spec.limit is not None or found.stats.num_edges:
        return ""
    sources, are = ("source", "is") if len(set(found._spec.sources)) == 1 else ("sources", "are")
    return f" (no arc leaves the {sources})" if found.graph.info.directed else f" (the {sources} {are} isolated)"


class TraversedMany(Sequence):
    """Hold the results of many roots: a sequence of `Traversed`.

    Examples
    --------
    >>> many = mg.bfs_many(mg.from_edges([0, 1], [1, 2]), [0, 2])
    >>> len(many), many[1].path_to(0)
    (2, [2, 1, 0])
    """

    __reduce__ = refuse_pickle("take the distances, a matrix, or the columns of a root's result")
    _repr_html_ = html_of_many

    def __init__(self, results: Sequence[Traversed]) -> None:
        self.results = list(results)

    @property
    def distances(self) -> np.ndarray:
        """The distances as a matrix, one row for each root."""
        return np.stack([result.distances.to_numpy() for result in self.results])

    @property
    def predecessors(self) -> np.ndarray | None:
        """The predecessors as a matrix, one row for each root.

        None if they were not requested.
        """
        columns = [result.predecessors for result in self.results]
        return None if None in columns else np.stack([column.to_numpy() for column in columns if column is not None])

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return TraversedMany(self.results[index]) if isinstance(index, slice) else self.results[index]

    def close(self) -> None:
        """Free the results' memory on the ranks."""
        for result in self.results:
            result.close()

    def __enter__(self) -> TraversedMany:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        total_s = sum(result.stats.total_s for result in self.results)
        what = f"{self.results[0]._spec.algorithm} of {self.results[0].graph.name}" if self.results else "nothing"
        return f"<{what} from {counted(len(self), 'root')}: {readable_seconds(total_s)} in all>"
