"""Build blocks directly from edges, without rows: pack each edge into a sort key, in the order of a sweep.

The key of an edge has these bit fields, from the top: window of the start, tile in the window, start in the tile's
sub-window, end in its segment. The last two are the word that the sweep reads.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import ones_before, state_of


@inline
def position_at(bits, before, table, user):
    """Return the position of a user id that has one (see Positions in ranked.py)."""
    return np.int64(table[user if bits is None else ones_before(bits, before, user)])


@kernel(vertex_t="out")
def unpack_positions(lo, hi, bits, before, table, first, out):
    """Write the positions of the user ids lo .. hi, the dtype's largest value for none; out[0] is of id `first`."""
    for i in range(lo, hi):
        has = (bits[i >> 5] >> (i & 31)) & 1
        out[i - first] = position_at(bits, before, table, i) if has else np.iinfo(out.dtype).max


@kernel(id_t="from_ids", vertex_t="sources")
def orient_edges(
    lo, hi, from_ids, to_ids, bits, before, table, stride, multiplier, directed, by_parity, sources, targets
):  # fmt: skip
    """Translate both ends to state indices; an undirected edge starts at its larger position.

    With `by_parity` = 1 it starts at the smaller one if the sum of the positions is odd. `table` has the position of
    every user id, or with `bits` of those that have one; None means that they are equal. Both ends of a self-loop
    become the sentinel.
    """
    none = np.iinfo(sources.dtype).max
    for i in range(lo, hi):
        u = np.int64(from_ids[i])
        v = np.int64(to_ids[i])
        if u == v:
            sources[i] = none
            targets[i] = none
            continue
        if table is not None:
            u = position_at(bits, before, table, u)
            v = position_at(bits, before, table, v)
        if not directed and (u < v) != ((u + v) & by_parity == 1):
            u, v = v, u
        sources[i] = state_of(u, stride, multiplier)
        targets[i] = state_of(v, stride, multiplier)


@kernel(vertex_t="sources")
def key_edges(
    lo, hi, sources, targets, first_window, window_bits, subwindow_bits, segment_bits, tile_bits, keys
):  # fmt: skip
    """Write the key of every edge, windows counted from `first_window`; -1 for a self-loop."""
    none = np.iinfo(sources.dtype).max
    for i in range(lo, hi):
        if sources[i] == none:
            keys[i] = -1
            continue
        u = np.int64(sources[i])
        v = np.int64(targets[i])
        in_window = u & ((1 << window_bits) - 1)
        tile = (v >> segment_bits) << (window_bits - subwindow_bits) | in_window >> subwindow_bits
        start = (((u >> window_bits) - first_window) << tile_bits | tile) << subwindow_bits
        start |= u & ((1 << subwindow_bits) - 1)
        keys[i] = start << segment_bits | v & ((1 << segment_bits) - 1)


@kernel()
def count_keys(lo, hi, keys, shift, first, last, counts):
    """Count the keys of every bucket first .. last.

    A key's bucket is key >> shift.
    """
    for i in range(lo, hi):
        bucket = keys[i] >> shift
        if first <= bucket < last:
            atomic_add(counts, bucket - first, 1)


@kernel(weight_t="weights")
def place_keys(lo, hi, keys, weights, shift, first, last, cursors, out_keys, out_weights):
    """Append every key of the buckets first .. last to its bucket.

    Other keys are skipped.
    """
    for i in range(lo, hi):
        bucket = keys[i] >> shift
        if first <= bucket < last:
            slot = atomic_add(cursors, bucket - first, 1)
            out_keys[slot] = keys[i]
            if weights is not None:
                out_weights[slot] = weights[i]


@kernel(lanes=256)
def count_ends(lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, both_ways, degrees):
    """Add every edge to the degree of its start, with `both_ways` also of its end. Work items are units, see Blocks."""
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                atomic_add(degrees, tile_starts[tile] + (words[e] >> segment_bits), 1)
                if both_ways:
                    atomic_add(degrees, unit_segments[unit] + (words[e] & mask), 1)
