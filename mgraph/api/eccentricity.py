"""Implement eccentricity, diameter and radius, by searches that bound all vertices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, overload

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.degrees import degrees
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.labels import Vertices, names_of
from mgraph.api.progress_bar import shown
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.traversal import as_roots, bfs, sssp, state_dtype
from mgraph.api.traversal_results import Traversed
from mgraph.backends.progress import Phase
from mgraph.errors import UsageError
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.eccentricity import Bounded, Goal, begin_bounds, keep_eccentricities, tighten
from mgraph.shard.user_ids import user_dtype
from mgraph.types import LEVEL

# Searches of a lower bound: each begins where the one before has ended.
SWEEPS = 4


class NotConnectedError(UsageError):
    """Some vertex does not reach every other: eccentricities are infinite."""


@overload
def eccentricity(g: Graph, vertices: None = None, *, weighted: bool | None = None) -> Column: ...
@overload
def eccentricity(g: Graph, vertices: Iterable[int] | Iterable[str], *, weighted: bool | None = None) -> np.ndarray: ...


@repeated_after_loss
def eccentricity(g: Graph, vertices: Any = None, *, weighted: bool | None = None) -> Column | np.ndarray:
    """Find how far the farthest vertex is from each vertex.

    Parameters
    ----------
    g
        A connected graph with rows; a directed one must be strongly connected.
    vertices
        Some vertices: a search is made from each. By default all, with as few searches as prove their values.
    weighted
        Whether paths are measured by weights, or in hops; by default by weights if the graph has them.

    Returns
    -------
    Column or ndarray
        The eccentricity of each vertex, on the ranks until it is read; of some vertices an array, in their order.
        The dtype is that of distances.

    Raises
    ------
    UsageError
        If the graph has no vertex or is not connected: `mg.largest_component` makes a graph that is, of a directed
        graph with `strong=True`.
    InputError, WouldNotFit
        As `sssp`.

    Notes
    -----
    Every search bounds the eccentricity of all vertices (Takes and Kosters); those with bounds that have met are not
    searched. Sums of float weights are rounded, and their bounds stay apart: every vertex is searched. Docs:
    diameter.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2], [1, 2, 3])
    >>> found = mg.eccentricity(g)
    >>> found.to_numpy().tolist(), (found == found.min()).vertices().tolist()
    ([3, 2, 2, 3], [1, 2])
    >>> mg.eccentricity(g, [2, 0]).tolist()
    [2, 3]
    """
    require_graph(g)
    if vertices is not None:
        roots = as_roots(g, vertices)
        distinct = dict.fromkeys(roots)
        searches = Searches(g, weighted, len(distinct))
        with searches.shown():
            values = {root.ids: searches.eccentricity_of(root) for root in distinct}
        return np.array([values[root.ids] for root in roots], searches.dtype)
    with bounded(g, weighted) as bounds:
        bounds.narrow("all")
        return bounds.column()


@repeated_after_loss
def diameter(g: Graph, *, weighted: bool | None = None, exact: bool = True) -> int | float:
    """Find the greatest eccentricity: how far the two vertices that are farthest apart are from each other.

    Parameters
    ----------
    g, weighted
        As in `eccentricity`.
    exact
        If False, return a lower bound by a few searches: the distance of two vertices that are far apart, often the
        farthest.

    Returns
    -------
    int or float
        The diameter.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `eccentricity`.

    Notes
    -----
    As few searches as prove it, each of which bounds all vertices: often some ten of them. Docs: diameter.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2], [1, 2, 3], [5, 1, 5])
    >>> mg.diameter(g), mg.diameter(g, weighted=False), mg.diameter(g, exact=False)
    (11, 3, 11)
    """
    if not as_flag(exact, "exact"):
        with bounded(g, weighted) as bounds:
            return bounds.sweep()
    with bounded(g, weighted) as bounds:
        return bounds.narrow("diameter")


@repeated_after_loss
def radius(g: Graph, *, weighted: bool | None = None) -> int | float:
    """Find the least eccentricity: how far all vertices are from a vertex in the middle.

    Parameters
    ----------
    g, weighted
        As in `eccentricity`.

    Returns
    -------
    int or float
        The radius.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `eccentricity`.

    Notes
    -----
    As few searches as prove it, as of the diameter.

    Examples
    --------
    >>> mg.radius(mg.from_edges([0, 1, 2], [1, 2, 3]))
    2
    """
    with bounded(g, weighted) as bounds:
        return bounds.narrow("radius")


class Searches:
    """Searches of a graph from one vertex each, that must reach all others.

    Attributes
    ----------
    counted
        The searches until now, shown in a bar; of a directed graph two may count as one.
    """

    def __init__(self, g: Graph, weighted: bool | None, total: int = 0) -> None:
        require_graph(g)
        g._require_rows("eccentricity")
        if not g.num_vertices:
            raise UsageError(f"{g.name} has no vertex, and no eccentricity")
        self.graph = g
        self.counted = Phase("", total, "searches")
        self.weighted = g.info.weight_dtype is not None if weighted is None else as_flag(weighted, "weighted")
        self.dtype = user_dtype(state_dtype(g.info)) if self.weighted else LEVEL
        if g.info.num_isolated and g.num_vertices > 1:
            raise self.not_connected("it has isolated vertices")

    def shown(self) -> AbstractContextManager[None]:
        """Show in the block how many searches there have been."""
        return shown(f"eccentricities of {self.graph.name}", self.graph.cluster, self.counted)

    def search(self, g: Graph, source: Any) -> Traversed:
        """Return the distances from a vertex, all of them finite."""
        found = (sssp if self.weighted else bfs)(g, source, return_predecessors=False)
        if found.stats.num_reached < g.num_vertices:
            reached = f"{found.stats.num_reached:,} of {g.num_vertices:,} vertices are reached from {source}"
            raise self.not_connected(reached + (", against the arcs" if g is not self.graph else ""))
        return found

    def eccentricity_of(self, vertex: Vertices) -> Any:
        """Return the eccentricity of one vertex."""
        with self.search(self.graph, vertex.names[0]) as found:
            self.counted.step()
            return found.distances.max()

    def not_connected(self, why: str) -> NotConnectedError:
        """Return the error of a graph in which distances are infinite."""
        g = self.graph
        how, option = ("strongly connected", ", strong=True") if g.info.directed else ("connected", "")
        return NotConnectedError(
            f"{g.name} is not {how}, and eccentricities are infinite: {why}; "
            f"mg.largest_component(g{option}) is a graph that is (--largest on the command line)"
        )


class Bounds(Searches):
    """Bounds of the eccentricities of all vertices, on the ranks; each search tightens them."""

    def __init__(self, g: Graph, weighted: bool | None, back: Graph) -> None:
        super().__init__(g, weighted)
        self.back = back
        self.kept = Stored(g)
        self.slack = slack_of(self.dtype, g.num_vertices)
        counts = degrees(g)
        wide = np.dtype(np.float64 if self.dtype.kind == "f" else np.int64)
        counts._stored.run(begin_bounds, self.kept.key, wide)
        self.first = counts.argmax()

    @property
    def num_searches(self) -> int:
        """The searches until now; in a directed graph each is one along the arcs, and one against them."""
        return self.counted.done

    def narrow(self, goal: Goal) -> int | float:
        """Search until the goal is known; return it. The goal `all` is the diameter and all eccentricities."""
        source = self.first
        # The vertices of the greatest upper bounds are far out, those of the least lower bounds in the middle.
        by_high = goal != "radius"
        while True:
            found = self._tightened(source, goal, by_high=by_high)
            candidates = [part.candidate for part in found if part.candidate is not None]
            if not candidates:
                return self.dtype.type(found[0].best).item()
            source = self._named(-max(candidates).before)
            by_high = not by_high

    def sweep(self) -> int | float:
        """Return the greatest eccentricity of a few vertices: each is the farthest from the one before."""
        source = self.first
        best: Any = 0
        if self.back is not self.graph:
            # That all vertices reach the first one is not shown by the searches below.
            self.search(self.back, source).close()
        for step in range(SWEEPS):
            # In a directed graph along the arcs and against them by turns: both find distances of two vertices.
            self.counted.step()
            with self.search(self.back if step % 2 else self.graph, source) as found:
                best = max(best, found.distances.max().item())
                source = found.distances.argmax()
        return best

    def column(self) -> Column:
        """Return the eccentricities, once all are known."""
        self.kept.run(keep_eccentricities, self.dtype)
        return Column(self.kept, "eccentricities", self.dtype)

    def _tightened(self, source: Any, goal: Goal, *, by_high: bool) -> list[Bounded]:
        """Search from a vertex, and to it; return what the ranks then know."""
        with contextlib.ExitStack() as searches:
            away = searches.enter_context(self.search(self.graph, source))
            back = away
            if self.graph.info.directed:
                back = searches.enter_context(self.search(self.back, source))
            self.counted.step()
            keys = away._stored.key, back._stored.key
            (vertex,) = away._spec.sources
            return self.kept.run(tighten, keys, vertex, self.slack, goal, by_high)

    def _named(self, vertex: int) -> Any:
        return names_of(self.graph.info, self.graph._ask, [vertex])[0]


@contextlib.contextmanager
def bounded(g: Graph, weighted: bool | None) -> Iterator[Bounds]:
    """Yield bounds of the eccentricities of a graph."""
    require_graph(g)
    with contextlib.ExitStack() as stack:
        if g.info.directed:
            g._require_rows("eccentricity")
            bounds = Bounds(g, weighted, stack.enter_context(g.reversed()))
        else:
            bounds = Bounds(g, weighted, g)
        with bounds.shown():
            yield bounds


def slack_of(dtype: np.dtype, num_vertices: int) -> float | None:
    """Return the factor by which two sums of the same path may differ; None if sums are exact.

    A path of k arcs is rounded k times, each time by a factor of at most 1 + u: its sum is between 1 - ku and 1 + ku of
    the true one as long as ku is small. The bounds themselves take a few more operations.
    """
    if dtype.kind != "f":
        return None
    error = (num_vertices + 8) * float(np.finfo(dtype).eps)
    return (1 + error) / (1 - error) if error < 0.25 else np.inf
