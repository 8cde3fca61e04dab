"""Mark states in bits, and the units of edges that may join marked states; see unit_flags.py."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import top_of

# Threads of a block that reads a unit, and pairs of marked states that each of its warps collects (tiles.cuh).
MARKED_BLOCK = 256
MARKED_PAIRS = 160


def marked_shared_bytes(segment_bits: int) -> int:
    """Return the bytes of marks of a segment, which may begin within a word, and of the pairs of all warps."""
    words = (((1 << segment_bits) - 1) >> 5) + 2
    return 8 * (words + MARKED_PAIRS * MARKED_BLOCK // 32)


@kernel(lanes=32, dist_t="dist")
def gather_lowered(lo, hi, num_states, limit, dist, lowered, pending, least, counters):
    """Add the lowered states within limit[0] to the pending ones, and find the least distance of these.

    Work items are words of bits. `counters` are: lowered states.
    """
    count = 0
    nearest = top_of(dist)
    for word in range(lo, hi):
        if not (lowered[word] | pending[word]):
            continue
        for i in range(min(32, num_states - (word << 5))):
            own = dist[(word << 5) + i]
            if (lowered[word] >> i) & 1 and own <= limit[0] and own != top_of(dist):
                pending[word] |= 1 << i
                count += 1
            if (pending[word] >> i) & 1:
                nearest = min(nearest, own)
    atomic_min(least, 0, nearest)
    atomic_add(counters, 0, count)


@kernel(lanes=32, dist_t="dist")
def mark_states(lo, hi, num_states, bound, shape, active, dist, marks, segments, windows):
    """Set the marks of all states, and raise the flags of their ranges.

    Work items are words of 32 states. Of the 64 bits of a word in `marks` the upper half are those of `active`, the
    lower half the states beyond bound[0], which are open.
    """
    for word in range(lo, hi):
        is_open = 0
        for i in range(min(32, num_states - (word << 5))):
            if dist[(word << 5) + i] > bound[0]:
                is_open |= 1 << i
        marks[word] = active[word] << 32 | is_open
        segment = word << 5 >> shape[3] << 1
        window = word << 5 >> shape[4] << 1
        if active[word]:
            segments[segment] = 1
            windows[window] = 1
        if is_open:
            segments[segment + 1] = 1
            windows[window + 1] = 1


@kernel()
def mark_units(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, shape, segments, windows, is_read, counters
):  # fmt: skip
    """Of the marked units keep those that may have an edge from an active state to an open one.

    `shape` holds both_ways, stride, multiplier, and the bits of those ranges of states of which `segments` and
    `windows` have two flags each. `counters` are: edges of units that stay marked.
    """
    edges = 0
    for unit in range(lo, hi):
        first = unit_tiles[unit]
        segment = unit_segments[unit] >> shape[3] << 1
        window = tile_starts[first] >> shape[4] << 1
        pulls = shape[0] and segments[segment] and windows[window + 1]
        if not (pulls or (segments[segment + 1] and windows[window])):
            is_read[unit] = 0
        if is_read[unit]:
            edges += tile_edges[unit_tiles[unit + 1]] - tile_edges[first]
    atomic_add(counters, 0, edges)
