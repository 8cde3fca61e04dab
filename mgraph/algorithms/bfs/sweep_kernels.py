"""Breadth-first search by sweeps: every edge relaxed in both directions in one read of it.

Levels are 8 bits while they fit, else 32. The end at `level` lowers the other to level + 1.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(
    lanes=1024,
    block=1024,
    shared_bytes=lambda levels, segment_bits, **_: levels.itemsize << segment_bits,
    dist_t="levels",
)
def sweep_levels(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, both_ways, level,
    before, levels, counters,
):  # fmt: skip
    """Lower to level + 1 what lies above it and has an edge from `level`, against the edge too where `both_ways`.

    Work items are units (see Blocks). `before` is `levels` or a snapshot of them. Stores are plain, there being no
    8-bit atomics in CUDA: all threads that write an entry in this launch write the same value over a larger
    one, and a concurrent read returns the old value or the new, neither of which is `level`.
    `counters` are: improvements, some of them counted by several threads.
    """
    mask = (1 << segment_bits) - 1
    lowered = levels.dtype.type(level + 1)
    improved = 0
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = start + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                near = before[u]
                far = levels[v]
                if near == level and far > lowered:
                    levels[v] = lowered
                    improved += 1
                elif both_ways and far == level and near > lowered:
                    levels[u] = lowered
                    improved += 1
    atomic_add(counters, 0, improved)
