"""PageRank's kernels over edge blocks, which hold an edge once: pass scores along it, and sum weights by its ends.

Work items are units (see Blocks). Sums are sums of integers, by atomics: the same in any order, and as over rows.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.pagerank.kernels import MAX_TOTAL, MIN_TOTAL
from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min

# Bits of the ways that scores go: from the start of an edge to its end, and back.
ALONG = 1
AGAINST = 2


@kernel(lanes=1024, block=1024, weight_t="weights", dist_t="given")
def sweep_scores(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, ways, given,
    received, counters,
):  # fmt: skip
    """Add to received[end] what every edge brings from its start, if `ways` has ALONG; if AGAINST, the same back.

    Both arrays are by state index. counters[0] is what all edges bring, modulo 2^64.
    """
    mask = (1 << segment_bits) - 1
    passed = np.int64(0)
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = start + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                weight = 1.0 if weights is None else np.float64(weights[e])
                if ways & ALONG:
                    part = np.int64(given[u]) if weights is None else np.int64(given[u] * weight)
                    atomic_add(received, v, part)
                    passed += part
                if ways & AGAINST:
                    part = np.int64(given[v]) if weights is None else np.int64(given[v] * weight)
                    atomic_add(received, u, part)
                    passed += part
    atomic_add(counters, 0, passed)


@inline
def bits_of(number):
    """Return the bits of a float as an integer; those of floats from 0 on order as they do."""
    return np.float64(number).view(np.int64)


@kernel(lanes=1024, block=1024, weight_t="weights")
def find_greatest(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, both_ways, least
):
    """Lower least[start] to -bits of an edge's weight, and least[end] where `both_ways`: to that of the greatest."""
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                # Of a zero with a sign the bits have no order.
                bits = -bits_of(np.float64(weights[e]) + 0.0)
                atomic_min(least, start + (words[e] >> segment_bits), bits)
                if both_ways:
                    atomic_min(least, segment + (words[e] & mask), bits)


@kernel(lanes=1024, block=1024, weight_t="weights")
def add_weights(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, both_ways, greatest,
    sums,
):  # fmt: skip
    """Add each edge's share of the greatest weight at its start, and at its end where `both_ways`.

    Shares are in units of 2^-62; those of state v are added in two parts to sums[2 v] and sums[2 v + 1], as
    `total_weights` does.
    """
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                weight = np.float64(weights[e])
                for end in range(2 if both_ways else 1):
                    v = segment + (words[e] & mask) if end else start + (words[e] >> segment_bits)
                    if greatest[v] > 0:
                        share = weight / greatest[v] * 2.0**30
                        whole = np.int64(share)
                        atomic_add(sums, 2 * v, whole)
                        atomic_add(sums, 2 * v + 1, np.int64((share - np.float64(whole)) * 2.0**32))


@kernel()
def join_sums(lo, hi, greatest, sums, totals, counters):
    """Make totals of what `add_weights` has summed; counters[0] counts those out of range that are not 0."""
    for i in range(lo, hi):
        total = greatest[i] * (np.float64(sums[2 * i]) * 2.0**-30 + np.float64(sums[2 * i + 1]) * 2.0**-62)
        totals[i] = total
        if total > 0 and not (MIN_TOTAL < total < MAX_TOTAL):
            atomic_add(counters, 0, 1)
