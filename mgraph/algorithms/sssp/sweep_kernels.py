"""Relax every edge in both directions from one read of it.

`dist` only ever falls. Starts are read from `before`, ends are read and lowered in `dist`; on CUDA, `before` is a
snapshot from before the launch, read through the read-only path, and the segment that holds the ends is in shared
memory. A smaller value that one thread missed is found in the next sweep.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min


@kernel(
    lanes=1024,
    block=1024,
    shared_bytes=lambda dist, segment_bits, **_: dist.itemsize << segment_bits,
    weight_t="weights",
    dist_t="dist",
)
def sweep_distances(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, both_ways, limit,
    before, dist, counters,
):  # fmt: skip
    """Lower the distance at the end of every edge, and at its start where `both_ways`, within limit[0].

    Work items are units (see Blocks). An unreached state is never below another, so that nothing is added to it and an
    integer cannot overflow. Where `weights` is None every edge counts as 1. `counters` are: improvements.
    """
    mask = (1 << segment_bits) - 1
    improved = 0
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = start + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                near = before[u]
                far = dist[v]
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                if near < far:
                    through = dist.dtype.type(near + w)
                    if through < far and through <= limit[0] and through < atomic_min(dist, v, through):
                        improved += 1
                elif both_ways and far < near:
                    through = dist.dtype.type(far + w)
                    if through < near and through <= limit[0] and through < atomic_min(dist, u, through):
                        improved += 1
    atomic_add(counters, 0, improved)
