"""Breadth-first search by sweeps: every edge read once for both of its directions.

Which vertices are in the frontier, and which are unreached, are bits in words of 32 states. Where a search has two or
more ranks, each has all bits, and the parents that its own edges give.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import ones_of, position_of, test_bit, top_of


@kernel(
    lanes=256,
    block=256,
    # Two words for every word of the segment, which may begin within one.
    shared_bytes=lambda segment_bits, **_: 8 * ((1 << segment_bits >> 5) + 1),
    vertex_t="parents",
)
def sweep_frontier(
    lo, hi, units, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, shape, frontier,
    unreached, windows, parents,
):  # fmt: skip
    """Over every edge between the frontier and an unreached vertex, lower this one's parent to the other's position.

    Work items are places in `units` (see Blocks); `shape` and `windows` are those of UnitFlags. Bits stay as they are,
    and parents are smallest positions, in whatever order edges are read.
    """
    both_ways = shape[0]
    stride = shape[1]
    multiplier = shape[2]
    mask = (1 << segment_bits) - 1
    for place in range(lo, hi):
        unit = units[place]
        segment = unit_segments[unit]
        first = unit_tiles[unit]
        window = tile_starts[first] >> shape[4] << 1
        pulls = both_ways and windows[window + 1]
        pushes = windows[window]
        for tile in range(first, unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                if pulls and test_bit(frontier, v):
                    if test_bit(unreached, u):
                        atomic_min(parents, u, position_of(v, stride, multiplier))
                elif pushes and test_bit(unreached, v) and test_bit(frontier, u):
                    atomic_min(parents, v, position_of(u, stride, multiplier))


@kernel(lanes=32, vertex_t="parents")
def find_reached(lo, hi, num_states, unreached, parents, frontier):
    """Make the frontier of the unreached states with a parent; work items are words."""
    for word in range(lo, hi):
        bits = 0
        for i in range(min(32, num_states - (word << 5))):
            if (unreached[word] >> i) & 1 and parents[(word << 5) + i] != top_of(parents):
                bits |= 1 << i
        frontier[word] = bits


@kernel(lanes=32)
def settle_level(lo, hi, level, first, last, shape, frontier, unreached, levels, segments, windows, counters):
    """Take the frontier from the unreached, set the levels of its states in first..last, and raise flags.

    Work items are words; `shape`, `segments` and `windows` are those of UnitFlags. `counters` are: states in the
    frontier.
    """
    count = 0
    for word in range(lo, hi):
        bits = frontier[word]
        left = unreached[word] & ~bits
        unreached[word] = left
        segment = word << 5 >> shape[3] << 1
        window = word << 5 >> shape[4] << 1
        if bits:
            segments[segment] = 1
            windows[window] = 1
        if left:
            segments[segment + 1] = 1
            windows[window + 1] = 1
        count += ones_of(bits)
        for i in range(32 if bits else 0):
            state = (word << 5) + i
            if (bits >> i) & 1 and first <= state and state < last:
                levels[state - first] = level
    atomic_add(counters, 0, count)
