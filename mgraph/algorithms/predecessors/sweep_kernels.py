"""Find the arcs that explain distances, from blocks: each end of an edge is a candidate of the other.

Distances and parents are in replicated arrays by state index; parents only fall to smaller positions, so that the order
of the edges has no effect. `shape` holds segment_bits, both_ways, stride and multiplier. Where `weights` is None every
edge counts as 1, as levels do. Work items are units (see Blocks).
"""

from __future__ import annotations

from mgraph.algorithms.common.unit_flags_kernels import MARKED_BLOCK, marked_shared_bytes
from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_min
from mgraph.backends.numba_helpers import joins_marked, position_of, top_of


@inline
def _lower_parent(parents, v, u, stride, multiplier):
    """Lower v's parent to u; most are not lower, and a load spares them the atomic."""
    position = position_of(u, stride, multiplier)
    if position < parents[v]:
        atomic_min(parents, v, position)


@inline
def _lower_farther(u, v, w, dist, both_ways, stride, multiplier, parents):
    """Lower the parent of an edge's farther end to the nearer one, if that explains its distance."""
    near = dist[u]
    far = dist[v]
    if near < far:
        if far != top_of(dist) and dist.dtype.type(near + w) == far:
            _lower_parent(parents, v, u, stride, multiplier)
    elif both_ways and far < near and near != top_of(dist) and dist.dtype.type(far + w) == near:
        _lower_parent(parents, u, v, stride, multiplier)


@inline
def _lower_to_equal(u, v, w, dist, hops, stride, multiplier, parents):
    """Lower v's parent to u if u was explained before, v was not, and the edge adds nothing."""
    if hops[u] and not hops[v] and dist[u] == dist[v] and dist.dtype.type(dist[u] + w) == dist[v]:
        atomic_min(parents, v, position_of(u, stride, multiplier))


@inline
def _lower_to_nearer(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, dist, parents
):  # fmt: skip
    """Lower parents over every edge of the units lo .. hi; see sweep_nearer."""
    both_ways = shape[1]
    stride = shape[2]
    multiplier = shape[3]
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = unit_segments[unit] + (words[e] & mask)
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                _lower_farther(u, v, w, dist, both_ways, stride, multiplier, parents)


@kernel(
    lanes=1024,
    block=1024,
    shared_bytes=lambda dist, segment_bits, **_: dist.itemsize << segment_bits,
    vertex_t="parents",
    weight_t="weights",
    dist_t="dist",
)
def sweep_nearer(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, dist, parents
):  # fmt: skip
    """Find for every reached vertex the first nearer one that explains its distance."""
    _lower_to_nearer(
        lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, dist, parents
    )


@kernel(lanes=32, vertex_t="parents", weight_t="weights", dist_t="dist")
def sweep_nearer_by_warp(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, dist, parents
):  # fmt: skip
    """Do what sweep_nearer does, for units of few edges: on CUDA a warp processes a unit, without shared memory."""
    _lower_to_nearer(
        lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, dist, parents
    )


@kernel(lanes=256, vertex_t="parents", weight_t="weights", dist_t="dist")
def sweep_equal(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, shape, dist, hops, parents
):  # fmt: skip
    """Find for every unexplained vertex the first, equally far, that was explained a hop before.

    `hops` is a byte per state, 1 where it was explained before this round.
    """
    segment_bits = shape[0]
    both_ways = shape[1]
    stride = shape[2]
    multiplier = shape[3]
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = unit_segments[unit] + (words[e] & mask)
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                _lower_to_equal(u, v, w, dist, hops, stride, multiplier, parents)
                if both_ways:
                    _lower_to_equal(v, u, w, dist, hops, stride, multiplier, parents)


@kernel(
    lanes=MARKED_BLOCK,
    block=MARKED_BLOCK,
    shared_bytes=lambda segment_bits, **_: marked_shared_bytes(segment_bits),
    vertex_t="parents",
    weight_t="weights",
    dist_t="dist",
)
def sweep_marked(
    lo, hi, units, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, segment_bits, shape, marks, dist,
    parents,
):  # fmt: skip
    """Find the same over the edges from an active state to an open one.

    Work items are places in `units`, and `marks` are two bits of each state: see unit_flags.py.
    """
    both_ways = shape[1]
    stride = shape[2]
    multiplier = shape[3]
    mask = (1 << segment_bits) - 1
    for place in range(lo, hi):
        unit = units[place]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = unit_segments[unit] + (words[e] & mask)
                if not joins_marked(marks, u, v, both_ways):
                    continue
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                _lower_farther(u, v, w, dist, both_ways, stride, multiplier, parents)
