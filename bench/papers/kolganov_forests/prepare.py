"""The paper's preparations of a graph: sorted lists, near numbers, 32-bit weights, compressed neighbors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mgraph.backends.base import Backend
from mgraph.shard.shard import Rows
from mgraph.types import Array
from papers.kolganov_forests.kernels import NO_BASE
from papers.trials import starts_of

HIGH = np.uint64(32)
# A compressed neighbor is its vertex's base and less than this: a byte, and a multiple of 256 in two bits.
COMPRESSED = 1024


@dataclass(frozen=True)
class Arcs:
    """A graph before its preparation: arcs in order of rows, and edges, numbered in order of their ends."""

    starts: Array
    targets: Array
    edges: Array  # the edge of each arc
    edge_starts: Array
    edge_ends: Array
    weights: Array  # of each edge, float64
    ranks: Array  # the weight of each edge among the distinct ones, uint32
    degrees: Array

    @property
    def num_vertices(self) -> int:
        return len(self.degrees)


@dataclass(frozen=True)
class Compressed:
    """Neighbors as a base for each vertex, a byte and two bits for each arc."""

    bases: Array
    remainders: Array
    multiples: Array
    bytes_per_arc: float


@dataclass(frozen=True)
class Lists:
    """A prepared graph: a list of arcs for each vertex."""

    indptr: Array
    targets: Array
    weights: Array
    edges: Array
    edge_starts: Array
    edge_ends: Array
    is_sorted: bool
    compressed: Compressed | None = None

    @property
    def num_vertices(self) -> int:
        return len(self.indptr) - 1


def list_arcs(backend: Backend, rows: Rows) -> Arcs:
    """Return arcs and numbered edges, with float weights and with ranks that order as they do."""
    xp = backend.xp
    starts = starts_of(backend, rows)
    targets = rows.targets
    upper = xp.flatnonzero(starts < targets)
    lower = xp.flatnonzero(starts > targets)
    edges = xp.empty(len(targets), np.uint32)
    edges[upper] = xp.arange(len(upper), dtype=np.uint32)
    order = xp.argsort(_pair(targets[lower], starts[lower]), kind="stable")
    edges[lower[order]] = xp.arange(len(lower), dtype=np.uint32)
    weights = rows.weights[upper].astype(np.float64)
    ranks = xp.searchsorted(xp.unique(weights), weights).astype(np.uint32)
    ends = starts[upper], targets[upper]
    return Arcs(starts, targets, edges, *ends, weights, ranks, rows.indptr[1:] - rows.indptr[:-1])


def near_numbers(backend: Backend, levels: Array, parents: Array) -> Array:
    """Return numbers by level, then by parent, of a breadth-first search: close vertices have close ones."""
    xp = backend.xp
    order = xp.argsort(_pair(levels.astype(np.uint32), parents.astype(np.uint32)), kind="stable")
    numbers = xp.empty(len(levels), np.uint32)
    numbers[order] = xp.arange(len(levels), dtype=np.uint32)
    return numbers


def prepare(backend: Backend, arcs: Arcs, *, is_sorted: bool, numbers: Array | None, has_ranks: bool) -> Lists:
    """Make the lists: each sorted by weight or in order of neighbors, vertices renumbered or not."""
    xp = backend.xp
    ends = arcs.starts, arcs.targets, arcs.edge_starts, arcs.edge_ends
    degrees = arcs.degrees
    if numbers is not None:
        ends = tuple(numbers[end] for end in ends)
        degrees = xp.empty_like(arcs.degrees)
        degrees[numbers] = arcs.degrees
    starts, targets, edge_starts, edge_ends = ends
    edges = arcs.edges
    if is_sorted or numbers is not None:
        # Stable: arcs of equal weight stay in order of their edges.
        order = xp.argsort(_pair(starts, arcs.ranks[edges]) if is_sorted else starts, kind="stable")
        targets = targets[order]
        edges = edges[order]
    indptr = xp.zeros(len(degrees) + 1, np.int64)
    indptr[1:] = xp.cumsum(degrees)
    weights = (arcs.ranks if has_ranks else arcs.weights)[edges]
    return Lists(indptr, targets, weights, edges, edge_starts, edge_ends, is_sorted)


def compress(backend: Backend, lists: Lists) -> Lists:
    """Compress the neighbors of each vertex that has none too far apart."""
    xp = backend.xp
    n = lists.num_vertices
    starts = starts_of(backend, Rows(lists.indptr, lists.targets, None))
    ordered = xp.sort(_pair(starts, lists.targets)).astype(np.uint32)
    has_arcs = xp.flatnonzero(lists.indptr[1:] > lists.indptr[:-1])
    least = ordered[lists.indptr[has_arcs]]
    most = ordered[lists.indptr[has_arcs + 1] - 1]
    bases = xp.full(n, NO_BASE, np.uint32)
    bases[has_arcs] = xp.where(most - least < COMPRESSED, least, np.uint32(NO_BASE))
    is_compressed = bases[starts] != NO_BASE
    offsets = xp.where(is_compressed, lists.targets - bases[starts], np.uint32(0))
    padded = xp.zeros(-(-len(offsets) // 4) * 4, np.uint8)
    padded[: len(offsets)] = (offsets >> np.uint32(8)).astype(np.uint8)
    multiples = padded[0::4] | padded[1::4] << 2 | padded[2::4] << 4 | padded[3::4] << 6
    share = float(is_compressed.mean())
    bytes_per_arc = round(1.25 * share + 4 * (1 - share) + 4 * n / len(offsets), 3)
    found = Compressed(bases, (offsets & np.uint32(255)).astype(np.uint8), multiples.astype(np.uint8), bytes_per_arc)
    return replace(lists, compressed=found)


def _pair(high: Array, low: Array) -> Array:
    """Return numbers that order as the pairs do."""
    return high.astype(np.uint64) << HIGH | low
