"""Implement shortest_path and shortest_paths: searches that end once their targets are settled."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.graph import Graph, as_vertices, require_graph
from mgraph.api.labels import Vertices
from mgraph.api.traversal import bfs_spec, sssp_spec
from mgraph.errors import UsageError
from mgraph.formatting import counted
from mgraph.io.checks import as_flag
from mgraph.io.output_tables import as_objects
from mgraph.rank_jobs.paths import find_paths


class Path(NamedTuple):
    """Hold a shortest path.

    Attributes
    ----------
    distance
        Its length, or number of hops. If there is none it is -1, or infinity if weights are floats, as in columns.
    vertices
        The source, the vertices between, and the target, by ids or labels; [] if there is none.
    """

    distance: int | float
    vertices: list[Any]


def shortest_path(g: Graph, source: int | str, target: int | str, *, weighted: bool | None = None) -> Path:
    """Find a shortest path between two vertices; the search ends once the target is settled.

    Parameters
    ----------
    g
        The graph.
    source, target
        Vertices.
    weighted
        Whether paths are measured by weights, or in hops; by default by weights if the graph has them.

    Returns
    -------
    Path
        The distance, and the vertices of the path: those of `mg.sssp` or `mg.bfs` from the source, to the bit.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `sssp` and `bfs`.

    Notes
    -----
    The search ends after the level of the target, or after its bucket of distances. In the compact layout it goes on
    to its end. Docs: paths.md.

    Examples
    --------
    >>> g = mg.from_edges(["a", "b", "a"], ["b", "c", "c"], [1, 1, 5])
    >>> mg.shortest_path(g, "a", "c")
    Path(distance=2, vertices=['a', 'b', 'c'])
    >>> distance, vertices = mg.shortest_path(g, "a", "c", weighted=False)
    >>> distance, vertices
    (1, ['a', 'c'])
    """
    require_graph(g)
    (start,) = as_vertices(g.info, g._ask, [source], "source").ids
    (end,) = as_vertices(g.info, g._ask, [target], "target").ids
    return paths_between(g, [(start, end)], weighted=weighted)[0]


def shortest_paths(
    g: Graph,
    sources: Iterable[int] | Iterable[str],
    targets: Iterable[int] | Iterable[str],
    *,
    weighted: bool | None = None,
) -> list[Path]:
    """Find a shortest path for each pair of a source and a target.

    Parameters
    ----------
    g, weighted
        As in `shortest_path`.
    sources, targets
        As many sources as targets; pairs may repeat.

    Returns
    -------
    list of Path
        A path for each pair.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `shortest_path`; UsageError also if there are more sources than targets, or fewer.

    Notes
    -----
    Pairs with the same source share a search, which ends once all of its targets are settled. Docs: paths.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 4], [1, 2, 3, 5])
    >>> [path.vertices for path in mg.shortest_paths(g, [0, 0, 3], [2, 4, 1])]
    [[0, 1, 2], [], [3, 2, 1]]
    """
    require_graph(g)
    starts = _vertices_of(g, sources, "source")
    ends = _vertices_of(g, targets, "target")
    if len(starts) != len(ends):
        given = f"{counted(len(starts), 'source')} and {counted(len(ends), 'target')}"
        raise UsageError(f"shortest_paths has {given}: give as many")
    pairs = list(zip(starts, ends, strict=True))
    return paths_between(g, pairs, weighted=weighted) if pairs else []


def paths_between(
    g: Graph, pairs: Sequence[tuple[int, int]], *, weighted: bool | None = None, predecessors: bool = True
) -> list[Path]:
    """Return a path for each pair of ids; without predecessors the distances alone."""
    by_source: dict[int, dict[int, None]] = {}
    for source, target in pairs:
        by_source.setdefault(source, {})[target] = None
    specs = [_spec(g, source, targets, weighted, predecessors) for source, targets in by_source.items()]
    by_rank = g._ask(find_paths, specs)
    found = {}
    for spec, *parts in zip(specs, *by_rank, strict=True):
        for target, *ends in zip(spec.targets, *parts, strict=True):
            distance = next(distance for distance, _ in ends if distance is not None)
            vertices = [] if ends[0][1] is None else as_objects(ends[0][1]).tolist()
            found[spec.sources[0], target] = Path(distance, vertices)
    return [found[pair] for pair in pairs]


def _vertices_of(g: Graph, given: Any, what: str) -> tuple[int, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise UsageError(f"{what}s {given!r} are not a list of vertices: shortest_path takes one pair")
    return as_vertices(g.info, g._ask, given, what).ids


def _spec(g: Graph, source: int, targets: Iterable[int], weighted: bool | None, predecessors: bool) -> TraversalSpec:
    is_weighted = g.info.weight_dtype is not None if weighted is None else as_flag(weighted, "weighted")
    make = sssp_spec if is_weighted else bfs_spec
    return dataclasses.replace(make(g, Vertices((source,), (source,)), None, predecessors, "auto"), targets=(*targets,))
