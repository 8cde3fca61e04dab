"""Relax light arcs of weight-sorted rows, and process heavy ones at the end of a bucket.

`bounds` holds, in the state's dtype: below what all is settled, below what is near, the cutoff, the begin of the bucket
that was settled last, and the distance below which a vertex is pulled from. `scale` makes classes of weights
(class_of in backends/numba_helpers.py), by which rows are sorted: a few heavier arcs of a class may be taken for light.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, class_edge, flush, hold, light_end, set_bit


@kernel(vertex_t="targets", weight_t="weights", dist_t="dist")
def relax_light(lo, hi, frontier, indptr, targets, weights, scale, bounds, dist, marked, near, counters):
    """Relax the arcs that may end below the bound; list, once each, vertices lowered below it.

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
        edge = class_edge(bound - d, scale)
        i = begin
        while i < end and np.float64(weights[i]) * scale < edge:
            v = targets[i]
            through = dist.dtype.type(d + dist.dtype.type(weights[i]))
            i += 1
            if through >= dist[v] or through > cutoff:
                continue
            if through < atomic_min(dist, v, through) and through < bound and set_bit(marked, v):
                length = hold(buffer, length, v, near, counters)
        arcs += i - begin
        total += end - begin
    flush(buffer, length, near, counters)
    atomic_add(counters, 1, arcs)
    atomic_add(counters, 2, total)


@kernel(vertex_t="frontier", weight_t="weights", dist_t="dist")
def measure_heavy(lo, hi, frontier, indptr, weights, dist, bounds, scale, begins, lengths):
    """Find the heavy arcs of settled vertices: those that relax_light left out."""
    for i in range(lo, hi):
        v = frontier[i]
        end = indptr[v + 1]
        begins[i] = light_end(weights, indptr[v], end, scale, class_edge(bounds[0] - dist[v], scale))
        lengths[i] = end - begins[i]


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
def pull_distances(lo, hi, indptr, targets, weights, scale, bounds, dist, near, lowest, counters):
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
        if d < settled:
            total += indptr[v + 1] - indptr[v] if d >= begin else 0
            continue
        edge = class_edge(d - begin, scale)
        for i in range(indptr[v], indptr[v + 1]):
            if np.float64(weights[i]) * scale >= edge:
                break
            arcs += 1
            other = dist[targets[i]]
            if other >= pull_limit:
                continue
            through = dist.dtype.type(other + dist.dtype.type(weights[i]))
            if through < d and through <= cutoff:
                d = through
                edge = class_edge(d - begin, scale)
        dist[v] = d
        if d < bound and (d < before or pull_limit == settled):
            num_near = hold(buffer, num_near, v, near, counters)
        elif d >= bound:
            best = min(best, d)
    flush(buffer, num_near, near, counters)
    atomic_min(lowest, 0, best)
    atomic_add(counters, 1, arcs)
    atomic_add(counters, 2, total)
