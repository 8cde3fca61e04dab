"""Dijkstra's algorithm by one core, with a radix heap (radix_queue.py).

The loop has the insertion of an entry written out: as a function of radix_queue.py it makes searches 1.4 times as long.
The arcs of a vertex are prefetched when it is inserted, so that they are in the cache when it is settled.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.sssp.radix_queue import (
    BASE,
    FAR,
    LIMIT,
    MANY,
    NEAR,
    NUM_WORDS,
    drop_lowered,
    insert_far,
    pop,
    push,
    raise_limit,
    refill,
    spill,
)
from mgraph.backends.kernel import inline
from mgraph.backends.numba_helpers import arcs_of, top_of, weight_sort_key
from mgraph.backends.numba_prefetch import prefetch_arcs

# Counters of `settle_nearest`: entries of the queue; vertices found, and their arcs; arcs scanned; how often a vertex
# was lowered over an arc that leads no farther, so that its predecessor is not known. What it is given: how many may
# wait, the arcs of a vertex that it scans, at least, and how many it may have scanned before it pauses.
# They are words of the queue's state, after its own.
SIZE, FOUND, FOUND_ARCS, SCANNED, AS_FAR, MAX_SIZE, MIN_DEGREE, MAX_SCANNED = range(NUM_WORDS, NUM_WORDS + 8)
NUM_SEARCH_WORDS = NUM_WORDS + 8


@inline
def set_parent(parents, v, u, is_farther):
    """Make u the predecessor of a vertex that it lowered, if the arc leads farther; `parents` may be None."""
    if parents is not None:
        parents[v] = u if is_farther else np.iinfo(parents.dtype).max


@inline
def keep_first_parent(parents, v, u, is_farther):
    """Make u the predecessor of a vertex that is as far over it, if u is before the one that it has."""
    if parents is not None:
        parents[v] = min(u, parents[v]) if is_farther else parents[v]


@inline
def lower_over_arc(dist, parents, v, u, d, weight, cutoff):
    """Lower v over an arc from u, at distance d, if that leads nearer; return its distance before and after."""
    through = dist.dtype.type(d + dist.dtype.type(weight))
    before = dist[v]
    if through > before or through > cutoff or through == top_of(dist):
        return before, before
    if through == before:
        keep_first_parent(parents, v, u, d < through)
        return before, before
    dist[v] = through
    set_parent(parents, v, u, d < through)
    return before, through


@inline
def begin_search(starts, has_distances, has_parents, indptr, dist, parents, listed):
    """Reach and list the vertices from which a search begins, and no other; return their arcs.

    All distances, and all parents, may be those of unreached vertices already.
    """
    if not has_distances:
        dist[:] = top_of(dist)
    if not has_parents:
        parents[:] = np.iinfo(parents.dtype).max
    arcs = 0
    for i in range(len(starts)):
        u = starts[i]
        dist[u] = 0
        parents[u] = u
        listed[i] = u
        arcs += indptr[np.int64(u) + 1] - indptr[u]
    return arcs


@inline
def settle_nearest(
    keys, vertices, far_keys, far_vertices, nexts, state, indptr, targets, weights, cutoff, until, dist, parents, listed
):  # fmt: skip
    """Settle the nearest vertex of the queue until none waits, more than MAX_SIZE wait, or `until` are settled.

    After MAX_SCANNED arcs it pauses. Vertices of less than MIN_DEGREE arcs lead nowhere, or back, and are not inserted.
    The predecessor is the first nearer vertex, by position, that explains a distance; none over an arc that leads no
    farther; without parents none at all. What is found is listed while there is room.
    """
    num_settled = 0
    while state[SCANNED] <= state[MAX_SCANNED]:
        if state[NEAR] == 0:
            refill(keys, vertices, far_keys, far_vertices, nexts, state, dist)
        if state[NEAR] == 0 or state[NEAR] + state[FAR] > state[MAX_SIZE]:
            break
        d = keys[0]
        u = vertices[0]
        # Nearer than all that wait: over arcs of weight 0, others may be as far and not found.
        while num_settled < len(until) and dist[until[num_settled]] < d:
            num_settled += 1
        if 0 < num_settled == len(until):
            break
        pop(keys, vertices, state[NEAR])
        state[NEAR] -= 1
        if d != dist[u]:
            continue
        begin, end = arcs_of(indptr, u)
        state[SCANNED] += end - begin
        for i in range(begin, end):
            v = targets[i]
            before, through = lower_over_arc(dist, parents, v, u, d, weights[i], cutoff)
            if through == before:
                continue
            state[AS_FAR] += d == through
            first, last = arcs_of(indptr, v)
            if before == top_of(dist):
                if state[FOUND] < len(listed):
                    listed[state[FOUND]] = v
                state[FOUND] += 1
                state[FOUND_ARCS] += last - first
            if last - first >= state[MIN_DEGREE]:
                prefetch_arcs(targets, weights, first)
                if state[NEAR] + state[FAR] == len(keys):
                    drop_lowered(keys, vertices, far_keys, far_vertices, nexts, state, dist)
                bits = weight_sort_key(through)
                raise_limit(state, weight_sort_key(d), bits)
                if bits < state[LIMIT]:
                    push(keys, vertices, state[NEAR], through, v)
                    state[NEAR] += 1
                else:
                    insert_far(far_keys, far_vertices, nexts, state, through, v)
                if state[NEAR] > MANY and state[LIMIT] > state[BASE] + 1:
                    spill(keys, vertices, far_keys, far_vertices, nexts, state)
    state[SIZE] = state[NEAR] + state[FAR]
