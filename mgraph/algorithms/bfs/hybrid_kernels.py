"""Breadth-first search by one core: many levels of a narrow frontier in one compiled loop."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

# Counters of `expand_levels`: the part of the queue that is the frontier, arcs scanned, and those of the last level.
BEGIN, END, SCANNED, ARCS_BEFORE = range(4)
NUM_COUNTERS = 4
# Indices are unsigned: Numba tests signed ones for being negative, which takes a fifth of the time.
ONE = np.uint64(1)
WORD_SHIFT = np.uint64(5)
BIT_MASK = np.uint64(31)
BIT = np.uint32(1)


@inline
def expand_levels(
    queue, level, last_level, max_arcs, num_left, indptr, targets, until, visited, parents, levels, counters
):
    """Expand level after level; return the last one, whose frontier is empty, wide, or ends the search.

    A frontier is wide if it has more than `max_arcs` arcs. The search ends when no vertex is left, after `last_level`,
    or when all of `until` are reached. Bits of `visited` are of the levels before the next.
    """
    none = np.iinfo(parents.dtype).max
    begin = np.uint64(0)
    end = np.uint64(counters[END])
    full = end + np.uint64(num_left)
    scanned = arcs_before = num_reached = np.int64(0)
    while begin < end < full and level < last_level:
        while num_reached < len(until) and parents[until[num_reached]] != none:
            num_reached += 1
        arcs = np.int64(0)
        for k in range(begin, end):
            u = np.uint64(queue[k])
            visited[u >> WORD_SHIFT] |= BIT << np.uint32(u & BIT_MASK)
            arcs += indptr[u + ONE] - indptr[u]
        if arcs > max_arcs or 0 < num_reached == len(until):
            break
        level += 1
        scanned += arcs
        arcs_before = arcs
        size = end
        for k in range(begin, end):
            u = np.uint64(queue[k])
            for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
                v = np.uint64(targets[i])
                if visited[v >> WORD_SHIFT] >> np.uint32(v & BIT_MASK) & BIT:
                    continue
                parent = parents[v]
                if parent == none:
                    parents[v] = u
                    levels[v] = level
                    queue[size] = v
                    size += ONE
                elif u < np.uint64(parent):
                    parents[v] = u
        begin = end
        end = size
    counters[BEGIN] = begin
    counters[END] = end
    counters[SCANNED] = scanned
    counters[ARCS_BEFORE] = arcs_before
    return level
