"""Scan every arc once, in rows or in blocks: mark the tree edges that exist, and distances that an arc shortens."""

from __future__ import annotations

from mgraph.backends.kernel import inline, kernel


@inline
def _check_arc(u, v, through, far, most, parent, is_explained, is_shorter):
    """Mark v if the arc from u is its tree edge and explains its distance, and if it would shorten it.

    `through` is the sum of u's distance and the weight, `far` the distance of v, `most` that of any vertex.
    """
    # Race: several arcs may mark one target at a time; all of them write the same 1.
    if through == far and parent[v] == u:
        is_explained[v] = 1
    if through < far and through <= most:
        is_shorter[v] = 1


@kernel(lanes=32, vertex_t="targets", weight_t="weights", dist_t="dist")
def check_arcs(lo, hi, first, indptr, targets, weights, parent, dist, bound, is_explained, is_shorter):
    """Mark a target in is_explained if its tree edge explains its distance, in is_shorter if an arc would shorten it.

    `first` is the state index of row 0; `parent` and `dist` are by state index. `bound` has one entry, the
    largest distance of a reached vertex: larger ones mean unreached.
    """
    for row in range(lo, hi):
        u = first + row
        near = dist[u]
        if near > bound[0]:
            continue
        for i in range(indptr[row], indptr[row + 1]):
            # Cast the weight first: Numba would add float32 and an integer in float64.
            w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[i])
            v = targets[i]
            _check_arc(u, v, dist.dtype.type(near + w), dist[v], bound[0], parent, is_explained, is_shorter)


@kernel(lanes=256, vertex_t="parent", weight_t="weights", dist_t="dist")
def check_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, weights, shape, parent, dist, bound,
    is_explained, is_shorter,
):  # fmt: skip
    """As check_arcs, for the edges of blocks; `shape` is (segment_bits, both_ways).

    Work items are units (see Blocks).
    """
    segment_bits = shape[0]
    both_ways = shape[1]
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = tile_starts[tile] + (words[e] >> segment_bits)
                v = unit_segments[unit] + (words[e] & mask)
                w = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[e])
                near = dist[u]
                far = dist[v]
                if near <= bound[0]:
                    _check_arc(u, v, dist.dtype.type(near + w), far, bound[0], parent, is_explained, is_shorter)
                if both_ways and far <= bound[0]:
                    _check_arc(v, u, dist.dtype.type(far + w), near, bound[0], parent, is_explained, is_shorter)
