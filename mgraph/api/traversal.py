"""Implement bfs and sssp for users: check arguments and methods, run searches."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mgraph.algorithms.variant import METHODS, Conditions, TraversalSpec, select
from mgraph.algorithms.variants import TABLE, methods_of
from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.graph import Graph, Stored, as_vertices, require_graph
from mgraph.api.labels import Vertices
from mgraph.api.traversal_results import Traversed, TraversedMany
from mgraph.backends.base import LIMITS
from mgraph.cluster.base import Cluster
from mgraph.errors import InputError, UsageError
from mgraph.io.checks import as_flag, as_integer
from mgraph.partition import Partition
from mgraph.rank_jobs.traversal import traverse
from mgraph.shard.shard import GraphInfo
from mgraph.types import LEVEL, unreached_of

REASONS = {
    "rows": "its work is proportional to the frontier, on any graph",
    "split": "its work is proportional to the frontier, on any graph",
    "compact": "the compact layout has edge blocks only",
    "host": "the layout host has edge blocks only",
}
PATHS_NEED_WEIGHTS = "the graph has no weights: use bfs, or build it with weights"


def bfs(
    g: Graph,
    source: int | str | Sequence,
    *,
    depth_limit: int | None = None,
    return_predecessors: bool = True,
    method: str = "auto",
    checkpoint: str | os.PathLike | None = None,
    in_graph_order: bool = False,
) -> Traversed:
    """Find the hops from a source to every vertex, and a tree of paths.

    Parameters
    ----------
    g
        The graph.
    source
        A vertex, or several: then the distance is to the nearest of them.
    depth_limit
        Vertices farther than this many hops count as unreached.
    return_predecessors
        Whether to return predecessors: of the neighbors one hop nearer, the first in the vertex order.
    method
        `frontier` scans the arcs of changed vertices only, `sweep` edges in blocks; `auto` chooses. The short name of a
        variant (`docs/variants.md`), such as `step` or `persistent`, requests that one, or is refused.
    checkpoint
        A folder that all ranks share, in which the search keeps its state from time to time (the setting
        `mgraph.checkpoint-every`). An equal search goes on from there, on any number of ranks. Docs: checkpoints.md.
    in_graph_order
        Whether the result stays in the graph's own order until columns by user id are read. Docs: bfs.md.

    Returns
    -------
    Traversed
        Distances and predecessors, 12 bytes a vertex, equal to the bit for any number of ranks, method and backend.

    Raises
    ------
    UsageError
        If a source is not a vertex, or the method does not apply.
    WouldNotFit
        If the search needs more memory than there is.

    Notes
    -----
    A level scans the arcs of the frontier or, where these are more, for each unreached vertex those up to its first
    neighbor in the frontier. Docs: bfs.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 3], [1, 2, 4])
    >>> found = mg.bfs(g, 0)
    >>> found.distances.to_numpy().tolist(), found.path_to(2)
    ([0, 1, 2, -1, -1], [0, 1, 2])
    """
    spec = bfs_spec(g, as_sources(g, source), depth_limit, return_predecessors, method)
    spec = _with_options(spec, checkpoint, in_graph_order)
    stored = Stored(g)
    by_rank = g._run(traverse, [stored], [stored.key], [spec], doing=spec.algorithm)
    return _traversed(stored, spec, method, [part for (part,) in by_rank])


def bfs_many(
    g: Graph,
    roots: Iterable[int | str],
    *,
    depth_limit: int | None = None,
    return_predecessors: bool = True,
    method: str = "auto",
) -> TraversedMany:
    """Search from each of many roots separately, with the options of `bfs`.

    Returns
    -------
    TraversedMany
        A sequence: result i equals that of `bfs` from root i.

    Raises
    ------
    UsageError, WouldNotFit
        As `bfs`.

    Notes
    -----
    The time and the memory of all the searches; `bfs_together` searches from 64 roots at a time. Docs: many-roots.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1], [1, 2])
    >>> mg.bfs_many(g, [0, 1]).distances.tolist()
    [[0, 1, 2], [1, 0, 1]]
    """
    specs = [bfs_spec(g, root, depth_limit, return_predecessors, method) for root in as_roots(g, roots)]
    return traverse_many(g, specs, method)


def sssp(
    g: Graph,
    source: int | str | Sequence,
    *,
    cutoff: float | int | None = None,
    return_predecessors: bool = True,
    method: str = "auto",
    checkpoint: str | os.PathLike | None = None,
    in_graph_order: bool = False,
) -> Traversed:
    """Find shortest paths from a source to every vertex: their lengths and a tree.

    Float weights are summed in their own dtype, in order from the source; integers exactly.

    Parameters
    ----------
    g
        A graph with non-negative weights.
    source
        A vertex, or several: then the distance is to the nearest of them.
    cutoff
        Vertices farther than this count as unreached.
    return_predecessors
        Whether to return predecessors.
    method
        `frontier` relaxes near vertices before far ones, `sweep` edges in blocks, light ones first; `auto` chooses. The
        short name of a variant (`docs/variants.md`), such as `near_far` or `persistent`, takes that one, or is refused.
    checkpoint
        A folder that all ranks share, in which the search keeps its state from time to time (the setting
        `mgraph.checkpoint-every`). An equal search goes on from there, on any number of ranks. Docs: checkpoints.md.
    in_graph_order
        Whether the result stays in the graph's own order until columns by user id are read. Docs: bfs.md.

    Returns
    -------
    Traversed
        Distances and predecessors, equal to the bit for any number of ranks, method and backend.

    Raises
    ------
    UsageError
        If the graph has no weights, or a source is not a vertex.
    InputError
        If a weight is negative, a path of integers may be too long for 64 bits, or one of floats is for the dtype.

    Notes
    -----
    Near vertices are relaxed before far ones, a vertex perhaps more than once. Docs: sssp.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 0], [1, 2, 2], [1, 1, 5])
    >>> mg.sssp(g, 0).distances.to_numpy().tolist()
    [0, 1, 2]
    """
    spec = sssp_spec(g, as_sources(g, source), cutoff, return_predecessors, method)
    spec = _with_options(spec, checkpoint, in_graph_order)
    stored = Stored(g)
    by_rank = g._run(traverse, [stored], [stored.key], [spec], doing=spec.algorithm)
    return _traversed(stored, spec, method, [part for (part,) in by_rank])


def sssp_many(
    g: Graph,
    roots: Iterable[int | str],
    *,
    cutoff: float | int | None = None,
    return_predecessors: bool = True,
    method: str = "auto",
) -> TraversedMany:
    """Search from each of many roots separately, with the options of `sssp`.

    Returns
    -------
    TraversedMany
        A sequence: result i equals that of `sssp` from root i.

    Raises
    ------
    UsageError, InputError, WouldNotFit
        As `sssp`.

    Notes
    -----
    The time and the memory of all the searches.

    Examples
    --------
    >>> g = mg.from_edges([0, 1], [1, 2], [3, 4])
    >>> mg.sssp_many(g, [0, 2]).distances.tolist()
    [[0, 3, 7], [7, 4, 0]]
    """
    specs = [sssp_spec(g, root, cutoff, return_predecessors, method) for root in as_roots(g, roots)]
    return traverse_many(g, specs, method)


def _with_options(spec: TraversalSpec, checkpoint: Any, in_graph_order: Any) -> TraversalSpec:
    """Return a request that stays in the graph's own order, or keeps checkpoints in a folder, or as it is."""
    if as_flag(in_graph_order, "in_graph_order"):
        spec = dataclasses.replace(spec, in_graph_order=True)
    if checkpoint is None:
        return spec
    return dataclasses.replace(spec, checkpoint=checkpoint_folder(spec.algorithm, checkpoint, spec.method))


def state_dtype(info: GraphInfo) -> np.dtype:
    """Return the dtype of distances: float as weights, or integers wide enough."""
    if info.weight_dtype is None:
        raise UsageError(PATHS_NEED_WEIGHTS)
    if info.min_weight < 0:
        raise InputError(
            f"shortest paths need weights that are not negative, and one is {info.min_weight}: bfs counts hops, and "
            "scipy.sparse.csgraph.johnson takes such weights"
        )
    weight = np.dtype(info.weight_dtype)
    if weight.kind == "f":
        return weight
    # num_vertices arcs, one more than a path can have: the arcs of the farthest vertex are relaxed too, and their sums
    # must not wrap.
    longest = info.num_vertices * int(info.max_weight)
    for dtype in (np.dtype(np.uint32), np.dtype(np.int64)):
        if longest < unreached_of(dtype):
            return dtype
    raise InputError(
        f"a path may be {longest} long, beyond 64-bit integers: scale the weights down or make them float64"
    )


def bfs_spec(g: Graph, sources: Vertices, limit: Any, predecessors: bool, method: str) -> TraversalSpec:
    """Return the request for a breadth-first search."""
    limit = as_depth_limit(g, limit)
    predecessors = as_flag(predecessors, "return_predecessors")
    return TraversalSpec(
        "bfs", _checked_method(g, "bfs", method), sources.ids, LEVEL, limit, predecessors, sources.names
    )


def as_depth_limit(g: Graph, limit: Any) -> int | None:
    """Return a limit of levels as an integer, or None."""
    if limit is None:
        return None
    limit = as_integer(limit, "depth_limit")
    if limit < 0:
        raise UsageError(f"depth_limit is {limit}: give 0 or more, or None")
    # A path has fewer arcs than the graph has vertices.
    return min(limit, g.num_vertices)


def sssp_spec(g: Graph, sources: Vertices, limit: Any, predecessors: bool, method: str) -> TraversalSpec:
    """Return the request for shortest paths."""
    dtype = state_dtype(g.info)
    limit = as_cutoff(limit, dtype)
    predecessors = as_flag(predecessors, "return_predecessors")
    return TraversalSpec(
        "sssp", _checked_method(g, "sssp", method), sources.ids, dtype, limit, predecessors, sources.names
    )


def as_cutoff(limit: Any, dtype: np.dtype) -> float | int | None:
    """Return the largest value of the dtype that is not above a limit of distances.

    None for no limit.
    """
    if limit is None:
        return None
    if isinstance(limit, np.number):
        limit = limit.item()
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit >= 0:
        raise UsageError(f"cutoff is {limit!r}: give a number that is 0 or more, or None")
    farthest = float(np.finfo(dtype).max) if dtype.kind == "f" else unreached_of(dtype) - 1
    if limit >= farthest:
        return None
    if dtype.kind != "f":
        return math.floor(limit)
    rounded = dtype.type(limit)
    # Compare Python numbers: NumPy would round the limit first.
    return (rounded if rounded.item() <= limit else np.nextafter(rounded, dtype.type(0))).item()


def as_roots(g: Graph, roots: Any) -> list[Vertices]:
    """Return the roots, repetitions included."""
    require_graph(g)
    if isinstance(roots, (str, bytes)) or not isinstance(roots, Iterable):
        raise UsageError(
            f"roots {roots!r} are not a list of vertices: give a list, or search from one with bfs or sssp"
        )
    found = as_vertices(g.info, g._ask, roots, "root")
    if not found.ids:
        raise UsageError("there is no root: give one or more")
    return [Vertices((root,), (name,)) for root, name in zip(*found, strict=True)]


def as_sources(g: Graph, source: Any) -> Vertices:
    """Return one source or several, each once."""
    require_graph(g)
    is_one = isinstance(source, (int, str, bytes)) or not isinstance(source, Iterable)
    several = not is_one and getattr(source, "ndim", 1) > 0
    found = as_vertices(g.info, g._ask, source if several else [source], "source")
    if not several:
        return found
    if not found.ids:
        raise UsageError("there is no source: give a vertex or several")
    distinct = dict(zip(*found, strict=True))
    return Vertices(tuple(distinct), tuple(distinct.values()))


def _checked_method(g: Graph, algorithm: str, method: str) -> str:
    """Return the method, once it is known to apply as far as the ranks need not be asked."""
    if method not in METHODS and method not in methods_of(algorithm):
        raise UsageError(f"method {method!r} is not one of {', '.join(methods_of(algorithm))}")
    if method not in ("auto", "sweep"):
        g._require_rows(f"method={method!r}")
    if method not in METHODS and g.cluster.backend in LIMITS:
        # Whether GPUs have access to each other's memory is known on the ranks.
        info = g.info
        has_persistent_kernels = LIMITS[g.cluster.backend].has_persistent_kernels
        in_degree_order = info.order == "degree"
        partition = Partition(info.num_vertices - in_degree_order * info.num_isolated, g.num_ranks, in_degree_order)
        facts = Conditions.of_graph(
            info,
            partition,
            method,
            has_persistent_kernels=has_persistent_kernels,
            has_peer_memory=True,
        )
        # Raises UsageError if it does not apply.
        select(TABLE[algorithm], facts)
    return method


def refuse_method(cluster: Cluster, algorithm: str, method: str) -> None:
    """Raise UsageError if a method applies to no graph on this cluster."""
    # A graph may be put on some ranks only.
    sizes = range(1, cluster.num_ranks + 1) if cluster._may_narrow else [cluster.num_ranks]
    has_persistent_kernels = cluster.backend not in LIMITS or LIMITS[cluster.backend].has_persistent_kernels
    at_best = [
        Conditions.at_best(method, "rows", size, has_persistent_kernels=has_persistent_kernels) for size in sizes
    ]
    if not any(v.is_asked_for(method) and v.applies(one) for v in TABLE[algorithm] for one in at_best):
        select(TABLE[algorithm], at_best[-1])


def traverse_many(g: Graph, specs: list[TraversalSpec], requested: str) -> TraversedMany:
    """Run several traversals under one lease."""
    stored = [Stored(g) for _ in specs]
    by_rank = g._run(traverse, stored, [one.key for one in stored], specs, doing=specs[0].algorithm)
    of_searches = zip(stored, specs, zip(*by_rank, strict=True), strict=True)
    return TraversedMany([_traversed(one, spec, requested, parts) for one, spec, parts in of_searches])


def _traversed(stored: Stored, spec: TraversalSpec, requested: str, parts: Sequence[dict]) -> Traversed:
    """Return the result that the ranks have stored, with the stats that they report."""
    reason = "requested" if requested != "auto" else REASONS[stored.graph.info.layout]
    return Traversed(stored, spec, reason, parts)
