"""Find predecessors over arcs that lead no farther by one core: each such arc is scanned once, whatever the hops."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline


@inline
def explain_as_far(queue, hops, indptr, targets, weights, dist, parents):
    """Find predecessors over arcs that lead no farther, hop by hop from the vertices that have one.

    Of those one hop nearer it is the first by position. `hops` are 0 before.
    """
    none = np.iinfo(parents.dtype).max
    size = 0
    for v in range(len(dist)):
        if parents[v] != none:
            queue[size] = v
            size += 1
    explain_from(queue, size, hops, indptr, targets, weights, dist, parents)


@inline
def explain_from(queue, size, hops, indptr, targets, weights, dist, parents):
    """Go on from the first `size` vertices of the queue, those of the last hop."""
    none = np.iinfo(parents.dtype).max
    k = 0
    while k < size:
        u = queue[k]
        k += 1
        d = dist[u]
        hop = hops[u] + 1
        for i in range(indptr[u], indptr[np.int64(u) + 1]):
            v = targets[i]
            if dist[v] != d or dist.dtype.type(d + dist.dtype.type(weights[i])) != d:
                continue
            if parents[v] == none:
                parents[v] = u
                hops[v] = hop
                queue[size] = v
                size += 1
            elif hops[v] == hop and u < parents[v]:
                parents[v] = u
