"""Relax light arcs, and pull over them at the end of a bucket.

`bounds` holds, in the state's dtype: below what all is settled, below what is near, the cutoff, the begin of the bucket
that was settled last, and the distance below which a vertex is pulled from. `scale` makes classes of weights
(class_of in backends/numba_helpers.py), by which a row's lightest arcs are sorted. Where all of these are light enough
the whole row is read.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, LIGHTEST_BITS, class_edge, flush, hold, inline, light_end, set_bit


@kernel(vertex_t="targets", weight_t="weights", dist_t="dist")
def relax_light(
    lo, hi, frontier, indptr, targets, weights, lightest_targets, lightest_weights, scale, bounds, dist, marked, near,
    counters,
):  # fmt: skip
    """Relax the arcs that end no farther than the bound; list, once each, vertices lowered below it.

    `counters` are the length of near, the arcs, and the sum of the rows' lengths. As in relax_frontier a source that is
    lowered meanwhile is found itself.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = arcs = total = 0
    bound = bounds[1]
    cutoff = bounds[2]
    for k in range(lo, hi):
        u = frontier[k]
        d = dist[u]
        begin = indptr[u]
        end = indptr[u + 1]
        total += end - begin
        first = begin >> LIGHTEST_BITS
        last = end >> LIGHTEST_BITS
        split = light_end(lightest_weights, first, last, scale, class_edge(bound - d, scale))
        near_targets = targets
        near_weights = weights
        if split < last:
            near_targets = lightest_targets
            near_weights = lightest_weights
            begin = first
            end = split
        for i in range(begin, end):
            through = dist.dtype.type(d + dist.dtype.type(near_weights[i]))
            if through > bound or through > cutoff:
                continue
            v = near_targets[i]
            if through >= dist[v]:
                continue
            if through < atomic_min(dist, v, through) and through < bound and set_bit(marked, v):
                length = hold(buffer, length, v, near, counters)
        arcs += end - begin
    flush(buffer, length, near, counters)
    atomic_add(counters, 1, arcs)
    atomic_add(counters, 2, total)


@kernel(vertex_t="near", dist_t="dist")
def list_settled(lo, hi, indptr, dist, bounds, marked, settled, near, lowest, counters):
    """Scan all distances: list the settled bucket's vertices; mark and list near ones.

    `counters` are the lengths of near and of settled, and the sum of the settled rows' lengths.
    """
    near_buffer = np.empty(BUFFER, near.dtype)
    settled_buffer = np.empty(BUFFER, near.dtype)
    num_near = num_settled = total = 0
    begin = bounds[3]
    end = bounds[0]
    bound = bounds[1]
    best = lowest[0]
    for v in range(lo, hi):
        d = dist[v]
        if d >= bound:
            best = min(best, d)
        elif d >= end:
            set_bit(marked, v)
            num_near = hold(near_buffer, num_near, v, near, counters)
        elif d >= begin:
            total += indptr[v + 1] - indptr[v]
            num_settled = hold(settled_buffer, num_settled, v, settled, counters[1:])
    flush(near_buffer, num_near, near, counters)
    flush(settled_buffer, num_settled, settled, counters[1:])
    atomic_min(lowest, 0, best)
    atomic_add(counters, 2, total)


@kernel(vertex_t="targets", weight_t="weights", dist_t="dist")
def pull_distances(
    lo, hi, indptr, targets, weights, lightest_targets, lightest_weights, scale, bounds, dist, near, lowest, counters
):
    """Lower unsettled distances over the arcs from settled vertices, and list near vertices.

    Where unsettled vertices are pulled from too, those that are lowered are near. No vertex of the bucket that was
    settled last is nearer than its begin: arcs too heavy for that are skipped. `counters` are the length of near, the
    arcs scanned, and the sum of the settled rows' lengths.
    """
    buffer = np.empty(BUFFER, near.dtype)
    num_near = arcs = total = 0
    begin = bounds[3]
    settled = bounds[0]
    bound = bounds[1]
    cutoff = bounds[2]
    pull_limit = bounds[4]
    best = lowest[0]
    for v in range(lo, hi):
        d = before = dist[v]
        row_begin = indptr[v]
        row_end = indptr[v + 1]
        if d < settled:
            total += row_end - row_begin if d >= begin else 0
            continue
        i = row_begin >> LIGHTEST_BITS
        last = row_end >> LIGHTEST_BITS
        edge = class_edge(d - begin, scale)
        while i < last and np.float64(lightest_weights[i]) * scale < edge:
            through = _pulled(d, lightest_targets[i], lightest_weights[i], dist, pull_limit, cutoff)
            if through < d:
                d = through
                edge = class_edge(d - begin, scale)
            arcs += 1
            i += 1
        if i == last:
            for j in range(row_begin, row_end):
                if begin + dist.dtype.type(weights[j]) < d:
                    d = _pulled(d, targets[j], weights[j], dist, pull_limit, cutoff)
            arcs += row_end - row_begin
        dist[v] = d
        if d < bound and (d < before or pull_limit == settled):
            num_near = hold(buffer, num_near, v, near, counters)
        elif d >= bound:
            best = min(best, d)
    flush(buffer, num_near, near, counters)
    atomic_min(lowest, 0, best)
    atomic_add(counters, 1, arcs)
    atomic_add(counters, 2, total)


@inline
def _pulled(d, u, weight, dist, pull_limit, cutoff):
    """Return the distance over the arc from u, if that is below `d`; else `d`."""
    near = dist[u]
    if near >= pull_limit:
        return d
    through = dist.dtype.type(near + dist.dtype.type(weight))
    return through if through < d and through <= cutoff else d
