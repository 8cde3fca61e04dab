"""Relax the arcs of a frontier, and sort the lowered vertices into near and far.

`dist` only ever falls. `bounds` holds, in the state's dtype: below what all is settled, below what is near, and the
cutoff. `counters` are the lengths of the queues in the order of the parameters. `lowest` falls to the smallest distance
that was seen to wait; it may have fallen since.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, clear_bit, flush, hold, row_of_arc, set_bit


@kernel(vertex_t="targets", weight_t="weights", dist_t="dist")
def relax_frontier(
    lo, hi, frontier, num_frontier, offsets, begins, targets, weights, bounds, dist, marked, found, counters
):
    """Lower the distance of every arc's target; append targets lowered for the first time in this round to `found`.

    The arcs of frontier[k] are offsets[k] .. offsets[k + 1] of all, and begin at begins[k] in `targets`.

    A source may be lowered by another thread while its row is relaxed: then it is found itself, and its row is relaxed
    again. `marked` makes a vertex found once, however often it is lowered.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    cutoff = bounds[2]
    k = row_of_arc(offsets, num_frontier, lo)
    arc = lo
    while arc < hi:
        state = frontier[k]
        source_dist = dist[state]
        begin = begins[k] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = targets[begin + i]
            through = dist.dtype.type(source_dist + dist.dtype.type(weights[begin + i]))
            if through >= dist[v] or through > cutoff:
                continue
            if through < atomic_min(dist, v, through) and set_bit(marked, v):
                length = hold(buffer, length, v, found, counters)
        arc = end
        k += 1
    flush(buffer, length, found, counters)


@kernel(vertex_t="states", dist_t="values")
def merge_distances(lo, hi, states, values, dist, marked, found, counters):
    """Merge received distances of vertices owned here, as relax_frontier does."""
    for i in range(lo, hi):
        v = states[i]
        if values[i] < atomic_min(dist, v, values[i]) and set_bit(marked, v):
            found[atomic_add(counters, 0, 1)] = v


@kernel(vertex_t="states")
def clear_marks(lo, hi, states, marked):
    """Clear the mark of every state index."""
    for i in range(lo, hi):
        clear_bit(marked, states[i])


@kernel(vertex_t="found", dist_t="dist")
def split_found(lo, hi, found, dist, bounds, keeps, in_far, near, far, lowest, counters):
    """Queue lowered vertices: in near if below the bound, else in far.

    Far is appended to if it is kept as a queue and the vertex does not wait there already.
    """
    near_buffer = np.empty(BUFFER, found.dtype)
    far_buffer = np.empty(BUFFER, found.dtype)
    num_near = num_far = 0
    best = lowest[0]
    for i in range(lo, hi):
        v = found[i]
        d = dist[v]
        if d < bounds[1]:
            num_near = hold(near_buffer, num_near, v, near, counters)
            continue
        best = min(best, d)
        if keeps and set_bit(in_far, v):
            num_far = hold(far_buffer, num_far, v, far, counters[1:])
    flush(near_buffer, num_near, near, counters)
    flush(far_buffer, num_far, far, counters[1:])
    atomic_min(lowest, 0, best)


@kernel(vertex_t="far", dist_t="dist")
def split_far(lo, hi, far, dist, bounds, in_far, near, next_far, lowest, counters):
    """Move vertices below the new bound from far to near, and drop those that were relaxed meanwhile."""
    near_buffer = np.empty(BUFFER, far.dtype)
    far_buffer = np.empty(BUFFER, far.dtype)
    num_near = num_far = 0
    best = lowest[0]
    for i in range(lo, hi):
        v = far[i]
        d = dist[v]
        if d >= bounds[1]:
            best = min(best, d)
            num_far = hold(far_buffer, num_far, v, next_far, counters[1:])
            continue
        clear_bit(in_far, v)
        if d >= bounds[0]:
            num_near = hold(near_buffer, num_near, v, near, counters)
    flush(near_buffer, num_near, near, counters)
    flush(far_buffer, num_far, next_far, counters[1:])
    atomic_min(lowest, 0, best)


@kernel(vertex_t="near", dist_t="dist")
def scan_distances(lo, hi, dist, bounds, near, lowest, counters):
    """Find what split_far finds where far is not kept: scan the distances lo..hi."""
    buffer = np.empty(BUFFER, near.dtype)
    num_near = 0
    settled = bounds[0]
    bound = bounds[1]
    best = lowest[0]
    for v in range(lo, hi):
        d = dist[v]
        if d >= bound:
            best = min(best, d)
        elif d >= settled:
            num_near = hold(buffer, num_near, v, near, counters)
    flush(buffer, num_near, near, counters)
    atomic_min(lowest, 0, best)


@kernel(vertex_t="states")
def measure_rows(lo, hi, states, indptr, stride, begins, lengths):
    """Look up the begin and the length of the row of each owned state."""
    for i in range(lo, hi):
        local = np.int64(states[i]) % stride
        begins[i] = indptr[local]
        lengths[i] = indptr[local + 1] - indptr[local]
