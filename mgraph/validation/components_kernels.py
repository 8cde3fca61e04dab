"""Scan every arc or edge: mark label mismatches between its ends, or link the larger of two roots to the smaller."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min


@kernel(lanes=32, vertex_t="targets", id_t="labels")
def mark_torn(lo, hi, first, indptr, targets, labels, is_mismatch):
    """Mark the rows with an arc to a vertex of another label.

    `first` is the state index of row 0; `labels` is by state index.
    """
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            if labels[targets[i]] != labels[first + row]:
                is_mismatch[row] = 1


@kernel(lanes=32, vertex_t="targets")
def hook_roots(lo, hi, first, indptr, targets, roots, lower, counters):
    """Link the larger root to the smaller for every arc between two trees.

    The number of such arcs is added to counters[0]. `roots` is a copy of `lower` from before the launch.
    """
    num_arcs = 0
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            a = roots[first + row]
            b = roots[targets[i]]
            if a != b:
                num_arcs += 1
                # Race: an entry only falls, so that a plain read that finds it small enough remains valid.
                if lower[max(a, b)] > min(a, b):
                    atomic_min(lower, max(a, b), min(a, b))
    atomic_add(counters, 0, num_arcs)


@kernel(lanes=1024, block=1024, id_t="labels")
def mark_torn_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, both_ways, labels, is_mismatch
):  # fmt: skip
    """Mark the states with an edge to one of another label, at the end of an edge too where `both_ways`.

    Work items are units (see Blocks).
    """
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = start + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                if labels[u] != labels[v]:
                    is_mismatch[u] = 1
                    if both_ways:
                        is_mismatch[v] = 1


@kernel(lanes=1024, block=1024, vertex_t="roots")
def hook_roots_of_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, roots, lower, counters
):  # fmt: skip
    """Do as hook_roots for every edge of blocks; work items are units."""
    mask = (1 << segment_bits) - 1
    num_edges = 0
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                a = roots[start + (words[e] >> segment_bits)]
                b = roots[segment + (words[e] & mask)]
                if a != b:
                    num_edges += 1
                    if lower[max(a, b)] > min(a, b):
                        atomic_min(lower, max(a, b), min(a, b))
    atomic_add(counters, 0, num_edges)
