"""Ford and Bellman's iterations, and levels, over an edge list; segments are an order of the list."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import Kernel
from mgraph.shard.shard import Rows
from mgraph.types import Array
from papers.kolganov_paths.kernels import advance_vertices
from papers.trials import starts_of

UNREACHED_LEVEL = 255
# A narrow level has fewer than one of this many vertices.
NARROW = 64


@dataclass(frozen=True)
class EdgeList:
    """The paper's store: starts, ends and weights of every edge."""

    starts: Array
    ends: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.starts)


def list_edges(backend: Backend, rows: Rows, *, each_once: bool = True) -> EdgeList:
    """Expand rows to a list: every pair once, or every arc."""
    starts = starts_of(backend, rows)
    kept = backend.xp.flatnonzero(starts < rows.targets) if each_once else slice(None)
    return EdgeList(starts[kept], rows.targets[kept], rows.weights[kept].astype(np.float64))


def sort_by_segments(backend: Backend, edges: EdgeList, segment: int) -> EdgeList:
    """Sort edges by the segment of their end, then by that of their start: the states of a group stay in the cache."""
    key = (edges.ends // np.uint32(segment)).astype(np.uint64) << np.uint64(32) | edges.starts // np.uint32(segment)
    order = backend.xp.argsort(key, kind="stable")
    return EdgeList(edges.starts[order], edges.ends[order], edges.weights[order])


def shortest_paths(backend: Backend, kernel: Kernel, edges: EdgeList, num_vertices: int, source: int) -> Array:
    """Relax all edges until an iteration changes nothing."""
    dist = backend.xp.full(num_vertices, np.inf)
    dist[source] = 0
    modified = backend.xp.zeros(1, np.int64)
    for iteration in itertools.count(1):
        kernel[backend](0, len(edges), edges.starts, edges.ends, edges.weights, iteration, dist, modified)
        if int(modified[0]) < iteration:
            return dist
    raise AssertionError


def levels(backend: Backend, kernel: Kernel, edges: EdgeList, num_vertices: int, source: int) -> Array:
    """Advance over all edges, level after level, until none is reached; levels are bytes."""

    def advance(level: int, found: Array, modified: Array) -> None:
        kernel[backend](0, len(edges), edges.starts, edges.ends, level, found, modified)

    return _level_after_level(backend, num_vertices, source, advance)


def levels_by_vertices(backend: Backend, kernel: Kernel, edges: EdgeList, rows: Rows, source: int) -> Array:
    """Advance over all edges on wide levels, and over the arcs of its vertices on narrow ones."""
    num_vertices = len(rows.indptr) - 1

    def advance(level: int, found: Array, modified: Array) -> None:
        if int((found == level).sum()) * NARROW < num_vertices:
            advance_vertices[backend](0, num_vertices, rows.indptr, rows.targets, level, found, modified)
        else:
            kernel[backend](0, len(edges), edges.starts, edges.ends, level, found, modified)

    return _level_after_level(backend, num_vertices, source, advance)


def _level_after_level(
    backend: Backend, num_vertices: int, source: int, advance: Callable[[int, Array, Array], None]
) -> Array:
    """Call `advance` for every level until it reaches no vertex."""
    found = backend.xp.full(num_vertices, UNREACHED_LEVEL, np.uint8)
    found[source] = 0
    modified = backend.xp.zeros(1, np.int64)
    for level in range(UNREACHED_LEVEL):
        if int(modified[0]) < level:
            return found
        advance(level, found, modified)
    raise ValueError(f"more than {UNREACHED_LEVEL - 1} levels do not fit a byte")
