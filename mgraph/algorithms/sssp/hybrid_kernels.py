"""Dijkstra's algorithm by one core, with a heap of four children a node.

The heap is two arrays, distances and vertices. A vertex is pushed each time it is lowered; an entry whose distance is
no longer the vertex's is dropped when it is popped.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, merged
from mgraph.backends.numba_helpers import top_of

# Counters of `settle_nearest`: entries of the heap; vertices found, and their arcs; arcs scanned; how often a vertex
# was lowered over an arc that leads no farther, so that its predecessor is not known.
SIZE, FOUND, FOUND_ARCS, SCANNED, AS_FAR = range(5)
NUM_COUNTERS = 5


@merged
def push(keys, vertices, size, key, vertex):
    """Push an entry to a heap of `size` entries."""
    i = size
    while i > 0:
        above = (i - 1) >> 2
        if keys[above] <= key:
            break
        keys[i] = keys[above]
        vertices[i] = vertices[above]
        i = above
    keys[i] = key
    vertices[i] = vertex


@merged
def pop(keys, vertices, size):
    """Remove the first entry of a heap of `size` entries."""
    last = size - 1
    key = keys[last]
    i = 0
    while True:
        first = 4 * i + 1
        if first >= last:
            break
        least = first
        for child in range(first + 1, min(first + 4, last)):
            if keys[child] < keys[least]:
                least = child
        if keys[least] >= key:
            break
        keys[i] = keys[least]
        vertices[i] = vertices[least]
        i = least
    keys[i] = key
    vertices[i] = vertices[last]


@inline
def push_all(waiting, dist, keys, vertices):
    """Push vertices with their distances to an empty heap."""
    for i in range(len(waiting)):
        push(keys, vertices, i, dist[waiting[i]], waiting[i])


@inline
def drop_lowered(keys, vertices, size, dist):
    """Drop the entries of vertices that were lowered since they were pushed; return how many are left."""
    kept = 0
    for i in range(size):
        key = keys[i]
        vertex = vertices[i]
        if dist[vertex] == key:
            push(keys, vertices, kept, key, vertex)
            kept += 1
    return kept


@inline
def settle_nearest(
    keys, vertices, max_size, min_degree, indptr, targets, weights, cutoff, until, dist, parents, counters
):
    """Settle the nearest vertex of the heap until none waits, more than `max_size` wait, or `until` are settled.

    Vertices of less than `min_degree` arcs are not pushed: theirs lead nowhere, or back. The predecessor is the first
    by position of those nearer vertices that explain a distance; none if it is over an arc that leads no farther.
    """
    top = top_of(dist)
    none = np.iinfo(parents.dtype).max
    size = counters[SIZE]
    found = found_arcs = scanned = as_far = num_settled = np.int64(0)
    while 0 < size <= max_size:
        d = keys[0]
        u = vertices[0]
        # Nearer than all that wait: over arcs of weight 0, others may be as far and not found yet.
        while num_settled < len(until) and dist[until[num_settled]] < d:
            num_settled += 1
        if 0 < num_settled == len(until):
            break
        pop(keys, vertices, size)
        size -= 1
        if d != dist[u]:
            continue
        begin = indptr[u]
        end = indptr[np.int64(u) + 1]
        scanned += end - begin
        for i in range(begin, end):
            v = targets[i]
            through = dist.dtype.type(d + dist.dtype.type(weights[i]))
            before = dist[v]
            if through > before or through > cutoff or through == top:
                continue
            if through == before:
                if d < through and u < parents[v]:
                    parents[v] = u
                continue
            dist[v] = through
            parents[v] = u if d < through else none
            as_far += d == through
            degree = indptr[np.int64(v) + 1] - indptr[v]
            if before == top:
                found += 1
                found_arcs += degree
            if degree >= min_degree:
                if size == len(keys):
                    size = drop_lowered(keys, vertices, size, dist)
                push(keys, vertices, size, through, v)
                size += 1
    counters[SIZE] = size
    counters[FOUND] = found
    counters[FOUND_ARCS] = found_arcs
    counters[SCANNED] = scanned
    counters[AS_FAR] = as_far


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
