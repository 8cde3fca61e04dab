"""Look up the edges of a forest in blocks, and compare every edge of these with the forest's path between its ends.

As over rows: spanning_forest_kernels.py. An edge has a name, lower position << 32 | higher, and its weight as a key,
inverted for the heaviest forest.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import position_of, row_of_arc, weight_sort_key


@kernel(lanes=1024, block=1024, weight_t="weights", vertex_t="positions")
def find_claimed_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, bounds, positions, claimed, is_there,
    keys,
):  # fmt: skip
    """Mark the claimed names that are edges, and write their keys.

    `bounds` are: segment bits, stride and multiplier of states, whether keys are inverted, the number of claimed names,
    which rise. `positions` has the width of a position. Work items are units (see Blocks).
    """
    segment_bits = bounds[0]
    mask = (np.int64(1) << segment_bits) - 1
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                word = np.int64(words[e])
                u = position_of(np.int64(start + (word >> segment_bits)), bounds[1], bounds[2])
                v = position_of(np.int64(segment + (word & mask)), bounds[1], bounds[2])
                name = min(u, v) << 32 | max(u, v)
                place = row_of_arc(claimed, bounds[4], name)
                if bounds[4] and claimed[place] == name:
                    is_there[place] = 1
                    keys[place] = ~weight_sort_key(weights[e]) if bounds[3] else weight_sort_key(weights[e])


@kernel(lanes=1024, block=1024, weight_t="weights", id_t="above", out_t="heaviest")
def check_outside_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, bounds, above, heaviest, crosses,
    lighter,
):  # fmt: skip
    """Mark both states of an edge to another tree, and of an edge lighter than the path between its ends.

    `bounds` are: segment bits, whether keys are inverted. Work items are units.
    """
    segment_bits = bounds[0]
    mask = (np.int64(1) << segment_bits) - 1
    lowest = np.iinfo(np.int64).min
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                word = np.int64(words[e])
                a = np.int64(start + (word >> segment_bits))
                b = np.int64(segment + (word & mask))
                u = a
                v = b
                path_max = np.int64(lowest)
                while u != v and (above[u] != u or above[v] != v):
                    path_max = max(path_max, heaviest[u], heaviest[v])
                    u = np.int64(above[u])
                    v = np.int64(above[v])
                key = weight_sort_key(weights[e])
                if bounds[1]:
                    key = ~key
                if u != v:
                    crosses[a] = 1
                    crosses[b] = 1
                elif key < path_max:
                    lighter[a] = 1
                    lighter[b] = 1
