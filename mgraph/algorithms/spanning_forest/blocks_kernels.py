"""Find the lightest edges of blocks, and list those that may be in a spanning forest: see blocks.py.

An edge has a name, lower position << 32 | higher position, and a key, the weight as an integer of its order, inverted
for the heaviest forest. `parameters` are: segment bits, stride and multiplier of states, whether keys are inverted; of
a list the bounds of its keys, and its capacity. Work items are units (see Blocks).
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.kernels import TOP, append_edges
from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_min
from mgraph.backends.numba_helpers import BUFFER, position_of, weight_sort_key


@inline
def _key_of(weight, parameters):
    """Return the key of a weight."""
    key = weight_sort_key(weight)
    return ~key if parameters[3] else key


@inline
def _lower(best, position, word):
    """Lower the word of a position; most are not lower, and a load spares them the atomic."""
    if word < best[position]:
        atomic_min(best, position, word)


@kernel(lanes=1024, block=1024, weight_t="weights")
def find_lightest_ends(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, parameters, best
):  # fmt: skip
    """Lower the word of both ends of every edge to its key << 32 | the other end's position.

    Of a position's edges of one weight the first is the one to the lowest position, as by names.
    """
    mask = (np.int64(1) << parameters[0]) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                word = np.int64(words[e])
                u = position_of(np.int64(tile_starts[tile] + (word >> parameters[0])), parameters[1], parameters[2])
                v = position_of(np.int64(unit_segments[unit] + (word & mask)), parameters[1], parameters[2])
                key = _key_of(weights[e], parameters) << 32
                _lower(best, u, key | v)
                _lower(best, v, key | u)


@kernel(vertex_t="above")
def hook_ends(lo, hi, words, above, names):
    """Make every position a child of the other end of its lightest edge.

    Write the edge's name, and its key in place of the word. One without edges leads to itself, over edge TOP.
    """
    for position in range(lo, hi):
        word = words[position]
        if word == TOP:
            above[position] = position
            names[position] = TOP
            continue
        other = word & 0xFFFFFFFF
        above[position] = other
        names[position] = min(position, other) << 32 | max(position, other)
        words[position] = word >> 32


@kernel(lanes=1024, block=256, weight_t="weights", vertex_t="labels")
def list_block_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, parameters, labels, counters, ends,
    keys, edges,
):  # fmt: skip
    """List the edges between trees with keys parameters[4] .. parameters[5], in any order; `edges` are their names.

    No more than parameters[6] are written, but all of them are counted. `labels` has the tree of every position.
    """
    mask = (np.int64(1) << parameters[0]) - 1
    found = np.empty((3, BUFFER), np.int64)
    names = np.empty(BUFFER, np.int64)
    length = 0
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                key = _key_of(weights[e], parameters)
                if key < parameters[4] or key > parameters[5]:
                    continue
                word = np.int64(words[e])
                u = position_of(np.int64(tile_starts[tile] + (word >> parameters[0])), parameters[1], parameters[2])
                v = position_of(np.int64(unit_segments[unit] + (word & mask)), parameters[1], parameters[2])
                if labels[u] == labels[v]:
                    continue
                found[0, length] = labels[u]
                found[1, length] = labels[v]
                found[2, length] = key
                names[length] = min(u, v) << 32 | max(u, v)
                length += 1
                if length == BUFFER:
                    append_edges(found, names, length, parameters[6], counters, 0, ends, keys, edges)
                    length = 0
    append_edges(found, names, length, parameters[6], counters, 0, ends, keys, edges)
