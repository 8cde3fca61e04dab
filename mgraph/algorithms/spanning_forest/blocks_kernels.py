"""List the edges of blocks that may be in a spanning forest: see blocks.py."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import BUFFER, position_of, weight_sort_key


@kernel(lanes=1024, block=1024, weight_t="weights", vertex_t="labels")
def list_block_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, bounds, labels, counters, names, keys
):  # fmt: skip
    """List names and keys of edges, but for those in one tree that come after a bound, in any order.

    A name is lower position << 32 | higher position, a key the weight as an integer of its order, inverted for the
    heaviest forest. `labels` has the tree of every position. `bounds` are: segment bits, stride and multiplier of
    states, whether keys are inverted, key and name of the bound. Work items are units (see Blocks).
    """
    segment_bits = bounds[0]
    mask = (np.int64(1) << segment_bits) - 1
    found = np.empty((2, BUFFER), np.int64)
    length = 0
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                word = np.int64(words[e])
                u = position_of(np.int64(start + (word >> segment_bits)), bounds[1], bounds[2])
                v = position_of(np.int64(segment + (word & mask)), bounds[1], bounds[2])
                key = weight_sort_key(weights[e])
                if bounds[3]:
                    key = ~key
                name = min(u, v) << 32 | max(u, v)
                if (key > bounds[4] or (key == bounds[4] and name > bounds[5])) and labels[u] == labels[v]:
                    continue
                found[0, length] = name
                found[1, length] = key
                length += 1
                if length == BUFFER:
                    first = atomic_add(counters, 0, length)
                    names[first : first + length] = found[0]
                    keys[first : first + length] = found[1]
                    length = 0
    first = atomic_add(counters, 0, length)
    names[first : first + length] = found[0, :length]
    keys[first : first + length] = found[1, :length]
