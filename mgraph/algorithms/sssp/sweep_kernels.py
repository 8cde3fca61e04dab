"""Relax edges in both directions from one read: those with an active end, or (streamed_search.py) all edges.

`dist` only ever falls. A smaller value that one thread missed is found in the next sweep.
"""

from __future__ import annotations

from mgraph.algorithms.common.unit_flags_kernels import MARKED_BLOCK, marked_shared_bytes
from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_min
from mgraph.backends.numba_helpers import joins_marked, set_bit


@inline
def _relax_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, limit, before,
    dist, lowered,
):  # fmt: skip
    """Relax every edge of the units lo .. hi; see sweep_distances."""
    mask = (1 << segment_bits) - 1
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
                        lowered[v >> shape[1]] = 1
                elif shape[0] and far < near:
                    through = dist.dtype.type(far + w)
                    if through < near and through <= limit[0] and through < atomic_min(dist, u, through):
                        lowered[u >> shape[1]] = 1


@kernel(
    lanes=1024,
    block=1024,
    shared_bytes=lambda dist, segment_bits, **_: dist.itemsize << segment_bits,
    weight_t="weights",
    dist_t="dist",
)
def sweep_distances(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, limit, before,
    dist, lowered,
):  # fmt: skip
    """Lower the distance at the end of every edge, and at its start where edges go both ways, within limit[0].

    `shape` is: whether edges go both ways, and grain bits. `lowered` is set for each grain of which a distance falls.
    Starts are read from `before`, ends are read and lowered in `dist`; on CUDA `before` is read through the read-only
    path, and the segment that holds the ends is in shared memory.

    Work items are units (see Blocks). An unreached state is never below another, so that nothing is added to it and an
    integer cannot overflow. Where `weights` is None every edge counts as 1.
    """
    _relax_edges(
        lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, limit, before,
        dist, lowered,
    )  # fmt: skip


@kernel(lanes=32, weight_t="weights", dist_t="dist")
def sweep_distances_by_warp(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, limit, before,
    dist, lowered,
):  # fmt: skip
    """Do what sweep_distances does, for units of few edges: on CUDA a warp processes a unit, without shared memory."""
    _relax_edges(
        lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, limit, before,
        dist, lowered,
    )  # fmt: skip


@kernel(
    lanes=MARKED_BLOCK,
    block=MARKED_BLOCK,
    shared_bytes=lambda segment_bits, **_: marked_shared_bytes(segment_bits),
    weight_t="weights",
    dist_t="dist",
)
def sweep_active(
    lo, hi, units, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, both_ways, marks,
    dist, lowered,
):  # fmt: skip
    """Lower distances over every edge from an active state to an open one, and set the bits of those lowered.

    Work items are places in `units`, and `marks` are two bits of each state: see unit_flags.py. Where `weights` is None
    every edge counts as 1.
    """
    mask = (1 << segment_bits) - 1
    for place in range(lo, hi):
        unit = units[place]
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = segment + (words[e] & mask)
                if not joins_marked(marks, u, v, both_ways):
                    continue
                near = dist[u]
                far = dist[v]
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                if near < far:
                    through = dist.dtype.type(near + w)
                    if through < far and through < atomic_min(dist, v, through):
                        set_bit(lowered, v)
                elif both_ways and far < near:
                    through = dist.dtype.type(far + w)
                    if through < near and through < atomic_min(dist, u, through):
                        set_bit(lowered, u)
