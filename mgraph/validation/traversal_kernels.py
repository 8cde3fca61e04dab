"""Look at every arc once, in rows or in blocks: which tree edges are there, and which distances could be shorter."""

from __future__ import annotations

from mgraph.backends.kernel import inline, kernel


@inline
def _check_arc(u, v, w, parent, dist, bound, is_explained, is_shorter):
    """Mark v if the arc from u is its tree edge and explains its distance, and if it leads nearer."""
    if dist[u] > bound[0]:
        return
    longer = dist.dtype.type(dist[u] + w)
    # Several arcs may mark one target at a time: all of them write the same 1.
    if longer == dist[v] and parent[v] == u:
        is_explained[v] = 1
    if longer < dist[v] and longer <= bound[0]:
        is_shorter[v] = 1


@kernel(lanes=32, vertex_t="targets", weight_t="weights", dist_t="dist")
def check_arcs(lo, hi, first, indptr, targets, weights, parent, dist, bound, is_explained, is_shorter):
    """Mark the targets whose tree edge explains their distance, and those that an arc would bring nearer.

    `first` is the state index of row 0; `parent` and `dist` cover every state. `bound` has one entry, the
    largest distance a vertex can have: who is farther is not reached.
    """
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            # Cast first: float32 + integer would be summed in float64.
            w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[i])
            _check_arc(first + row, targets[i], w, parent, dist, bound, is_explained, is_shorter)


@kernel(lanes=256, vertex_t="parent", weight_t="weights", dist_t="dist")
def check_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, shape, parent, dist, bound,
    is_explained, is_shorter,
):  # fmt: skip
    """Do as check_arcs for the edges of blocks; `shape` holds segment_bits and both_ways.

    Work items are units (see Blocks).
    """
    segment_bits, both_ways = shape[0], shape[1]
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = unit_segments[unit] + (words[e] & mask)
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                _check_arc(u, v, w, parent, dist, bound, is_explained, is_shorter)
                if both_ways:
                    _check_arc(v, u, w, parent, dist, bound, is_explained, is_shorter)
