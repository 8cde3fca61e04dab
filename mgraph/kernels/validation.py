"""Look at every arc once: which tree edges are there, and which distances could be shorter."""

from __future__ import annotations

from mgraph.kernels.pair import kernel


@kernel(lanes=32, vertex_t="targets", weight_t="weights", dist_t="dist")
def check_arcs(lo, hi, first, indptr, targets, weights, parent, dist, bound, is_explained, is_shorter):
    """Mark the targets whose tree edge explains their distance, and those that an arc would bring nearer.

    `first` is the state index of row 0; `parent` and `dist` cover every state. `bound` has one entry, the
    largest distance a vertex can have: who is farther is not reached.
    """
    state = dist.dtype.type
    for row in range(lo, hi):
        u = first + row
        if dist[u] > bound[0]:
            continue
        for i in range(indptr[row], indptr[row + 1]):
            v = targets[i]
            # Cast first: float32 + integer would be summed in float64.
            w = state(1) if weights is None else state(weights[i])
            longer = state(dist[u] + w)
            # Several arcs may mark one target at a time: all of them write the same 1.
            if longer == dist[v] and parent[v] == u:
                is_explained[v] = 1
            if longer < dist[v] and longer <= bound[0]:
                is_shorter[v] = 1
