"""Breadth-first search by one core: many levels in one compiled loop, each pushed or pulled."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.step import pull_pays
from mgraph.backends.kernel import inline, merged

# The state of a search between calls of `search_levels`: its level; the part of the queue that is the frontier, its
# arcs, those of the frontier before, those of vertices that are not reached; whether the last level was pulled; what is
# next, and the arcs that the call scanned.
LEVEL, BEGIN, END, ARCS, ARCS_BEFORE, ARCS_LEFT, PULLING, NEXT, SCANNED = range(9)
NUM_COUNTERS = 9
# What is next: nothing, a push or a pull by all cores, more levels by one core.
ENDED, WIDE_PUSH, WIDE_PULL, PAUSED = range(4)
# Indices are unsigned: Numba tests signed ones for being negative, which takes a fifth of the time.
ONE = np.uint64(1)
_pull_pays = inline(pull_pays)


@inline
def begin_search(starts, indptr, queue, parents, levels, counters):
    """Reach the vertices from which a search begins, and no other."""
    parents[:] = np.iinfo(parents.dtype).max
    levels[:] = np.iinfo(levels.dtype).max
    counters[LEVEL] = 0
    counters[END] = len(starts)
    counters[ARCS_LEFT] = indptr[len(levels)]
    for i in range(len(starts)):
        u = np.uint64(starts[i])
        queue[i] = u
        parents[u] = u
        levels[u] = 0
        counters[ARCS] += indptr[u + ONE] - indptr[u]
    counters[ARCS_LEFT] -= counters[ARCS]


@inline
def search_levels(last_level, bounds, indptr, targets, in_indptr, in_targets, until, queue, parents, levels, counters):
    """Search level after level, until the frontier is empty or wide, or the search ends.

    A frontier is wide if it has more than bounds[0] arcs to push, or a pull scans more than bounds[1] vertices; after
    bounds[2] arcs the loop pauses. The search ends when every vertex is reached, after `last_level`, or when all of
    `until` are reached.
    """
    none = np.iinfo(levels.dtype).max
    size = len(levels)
    level, begin, end, arcs, arcs_before, arcs_left, pulled = counters[: PULLING + 1]
    scanned = np.int64(0)
    num_reached = 0
    following = ENDED
    while begin < end < size and level < last_level:
        while num_reached < len(until) and levels[until[num_reached]] != none:
            num_reached += 1
        if 0 < num_reached == len(until):
            break
        pulling = _pull_pays(pulled != 0, end - begin, arcs, arcs_before, size - end, arcs_left, size)
        if pulling and size > bounds[1]:
            following = WIDE_PULL
            break
        if not pulling and arcs > bounds[0]:
            following = WIDE_PUSH
            break
        if scanned > bounds[2]:
            following = PAUSED
            break
        level += 1
        arcs_before = arcs
        pulled = np.int64(pulling)
        if pulling:
            begin, end, arcs, more = pull(level, end, indptr, in_indptr, in_targets, queue, parents, levels)
        else:
            more = arcs
            begin, end, arcs = push(level, begin, end, indptr, targets, queue, parents, levels)
        scanned += more
        arcs_left -= arcs
    counters[LEVEL] = level
    counters[BEGIN] = begin
    counters[END] = end
    counters[ARCS] = arcs
    counters[ARCS_BEFORE] = arcs_before
    counters[ARCS_LEFT] = arcs_left
    counters[PULLING] = pulled
    counters[NEXT] = following
    counters[SCANNED] = scanned


@merged
def push(level, begin, end, indptr, targets, queue, parents, levels):
    """Find the next level along the arcs of a frontier; return its part of the queue, and its arcs."""
    size = np.uint64(end)
    arcs = np.int64(0)
    for k in range(np.uint64(begin), np.uint64(end)):
        u = np.uint64(queue[k])
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
            v = np.uint64(targets[i])
            found = levels[v]
            if found < level:
                continue
            if found == level:
                if u < np.uint64(parents[v]):
                    parents[v] = u
                continue
            levels[v] = level
            parents[v] = u
            queue[size] = v
            size += ONE
            arcs += indptr[v + ONE] - indptr[v]
    return end, np.int64(size), arcs


@inline
def pull(level, end, indptr, in_indptr, in_targets, queue, parents, levels):
    """Find the next level in the rows of vertices that are not reached; return as push, and the arcs scanned.

    Rows are in order of position: the first hit is the smallest.
    """
    none = np.iinfo(levels.dtype).max
    size = np.uint64(end)
    arcs = scanned = np.int64(0)
    for v in range(np.uint64(len(levels))):
        if levels[v] != none:
            continue
        first = np.uint64(in_indptr[v])
        last = np.uint64(in_indptr[v + ONE])
        i = first
        while i < last:
            u = np.uint64(in_targets[i])
            i += ONE
            # A vertex found by this pull has the next level.
            if levels[u] == level - 1:
                levels[v] = level
                parents[v] = u
                queue[size] = v
                size += ONE
                arcs += indptr[v + ONE] - indptr[v]
                break
        scanned += np.int64(i - first)
    return end, np.int64(size), arcs, scanned
