"""Breadth-first search on one CPU rank: many levels by one core in one compiled loop, or one level by all cores.

A vertex has one word, `level << 32 | parent`: of all candidates the least is that of the nearest level, and there of
the smallest parent. So an arc takes one access and one comparison, and a candidate of several cores one atomic minimum.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.step import GROWTH, pull_pays
from mgraph.backends.kernel import inline, merged
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, row_of_arc, set_bit, test_bit
from mgraph.backends.numba_prefetch import prefetch

# The state of a search between calls of `push_levels`: its level; the part of the queue that is the frontier, its
# arcs, those of the frontier before, those of vertices that are not reached; whether the last level was pulled; what is
# next, and the arcs that the call scanned.
LEVEL, BEGIN, END, ARCS, ARCS_BEFORE, ARCS_LEFT, PULLED, NEXT, SCANNED = range(9)
NUM_COUNTERS = 9
# What one level found: vertices, their arcs, and the arcs that it scanned.
FOUND, FOUND_ARCS, FOUND_SCANNED = range(3)
# What is next: nothing, a push by all cores, a pull, more levels by one core.
ENDED, WIDE_PUSH, PULL, PAUSED = range(4)
# The compiled loop returns after this many arcs, a fraction of a second, so that an abort is noticed.
STEP_ARCS = 1 << 24
# The word of a vertex that is not reached: the level and the parent are those of none.
UNREACHED = np.iinfo(np.int64).max
PARENT_BITS = 32
# Indices are unsigned: Numba tests signed ones for being negative, which takes a fifth of the time.
ONE = np.uint64(1)
# While a frontier is pushed, the row of the vertex so far ahead in the queue is prefetched: where the order of vertices
# is random, a push takes two thirds of the time (random trees and sparse uniform graphs of 2^17 and 2^20 vertices).
AHEAD = np.uint64(8)
_pull_pays = inline(pull_pays)


@inline
def begin_search(starts, indptr, queue, words, counters):
    """Reach the vertices from which a search begins, and no other."""
    words[:] = UNREACHED
    counters[LEVEL] = 0
    counters[END] = len(starts)
    counters[ARCS_LEFT] = indptr[len(words)]
    for i in range(len(starts)):
        u = np.uint64(starts[i])
        queue[i] = u
        words[u] = u
        counters[ARCS] += np.int64(indptr[u + ONE]) - np.int64(indptr[u])
    counters[ARCS_LEFT] -= counters[ARCS]


@inline
def push_levels(last_level, max_arcs, until, indptr, targets, queue, words, counters):
    """Push level after level by one core, until the search ends or the next level is not to be pushed so.

    That is a level to pull, or one of more than `max_arcs` arcs; after STEP_ARCS arcs the loop pauses. The search ends
    when every vertex is reached, after `last_level`, or when all of `until` are reached.
    """
    size = len(words)
    level, begin, end, arcs, arcs_before, arcs_left, pulled = counters[: PULLED + 1]
    left_before = arcs_left
    pause = arcs_left - STEP_ARCS
    # With targets every level is tested in full.
    most = -1 if len(until) > 0 else max_arcs
    num_reached = 0
    following = ENDED
    while begin < end < size and level < last_level:
        while num_reached < len(until) and words[until[num_reached]] != UNREACHED:
            num_reached += 1
        if 0 < num_reached == len(until):
            break
        if _pull_pays(pulled != 0, end - begin, arcs, arcs_before, size - end, arcs_left, size):
            following = PULL
            break
        if arcs > max_arcs:
            following = WIDE_PUSH
            break
        if arcs_left < pause:
            following = PAUSED
            break
        pulled = 0
        # Most levels are narrow and grow less. In a path each vertex is a level, so that this test has to be short.
        is_narrow = True
        while is_narrow:
            level += 1
            arcs_before = arcs
            bound = min(GROWTH * arcs, most)
            begin, end, arcs = push(level, begin, end, indptr, targets, queue, words)
            arcs_left -= arcs
            is_narrow = arcs <= bound and begin < end < size and arcs_left >= pause and level < last_level
    counters[SCANNED] = left_before - arcs_left + counters[ARCS] - arcs
    counters[LEVEL] = level
    counters[BEGIN] = begin
    counters[END] = end
    counters[ARCS] = arcs
    counters[ARCS_BEFORE] = arcs_before
    counters[ARCS_LEFT] = arcs_left
    counters[PULLED] = pulled
    counters[NEXT] = following


@inline
def begin_levels(starts, last_level, max_arcs, until, indptr, targets, queue, words, counters):
    """Begin a search, and push its first levels: one call, which on small graphs takes most of the time."""
    begin_search(starts, indptr, queue, words, counters)
    push_levels(last_level, max_arcs, until, indptr, targets, queue, words, counters)


@merged
def push(level, begin, end, indptr, targets, queue, words):
    """Find the next level along the arcs of a frontier; return its part of the queue, and its arcs."""
    size = np.uint64(end)
    arcs = np.int64(0)
    last = np.uint64(end) - ONE
    is_wide = last - np.uint64(begin) > AHEAD
    for k in range(np.uint64(begin), np.uint64(end)):
        if is_wide:
            prefetch(targets, indptr[np.uint64(queue[min(k + AHEAD, last)])])
        u = np.uint64(queue[k])
        word = level << PARENT_BITS | np.int64(u)
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
            v = np.uint64(targets[i])
            before = words[v]
            if before > word:
                words[v] = word
                if before == UNREACHED:
                    queue[size] = v
                    size += ONE
                    arcs += np.int64(indptr[v + ONE]) - np.int64(indptr[v])
    return end, np.int64(size), arcs


@inline
def push_arcs(lo, hi, level, frontier, offsets, indptr, targets, words, queue, found):
    """Find a part of the next level along arcs lo..hi of a frontier, while other cores push the rest.

    Row k of the frontier has arcs offsets[k] .. offsets[k + 1]. A stale word is larger: the atomic minimum resolves it.
    """
    buffer = np.empty(BUFFER, queue.dtype)
    length = 0
    arcs = np.int64(0)
    k = row_of_arc(offsets, len(frontier), lo)
    arc = lo
    while arc < hi:
        u = np.int64(frontier[k])
        word = level << PARENT_BITS | u
        begin = indptr[u] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = np.int64(targets[begin + i])
            if words[v] <= word or atomic_min(words, v, word) != UNREACHED:
                continue
            arcs += indptr[v + 1] - indptr[v]
            if length == BUFFER:
                flush(buffer, length, queue, found)
                length = 0
            buffer[length] = v
            length += 1
        arc = end
        k += 1
    flush(buffer, length, queue, found)
    atomic_add(found, FOUND_ARCS, arcs)


@inline
def pull(lo, hi, level, frontier_bits, indptr, in_indptr, in_targets, words, queue, found):
    """Find a part of the next level in the rows of those of vertices lo..hi that are not reached.

    Rows are in order of position: the first hit is the smallest.
    """
    buffer = np.empty(BUFFER, queue.dtype)
    length = 0
    arcs = np.int64(0)
    scanned = np.int64(0)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if words[v] != UNREACHED:
            continue
        first = np.uint64(in_indptr[v])
        last = np.uint64(in_indptr[v + ONE])
        i = first
        while i < last:
            u = np.int64(in_targets[i])
            i += ONE
            if test_bit(frontier_bits, u):
                words[v] = level << PARENT_BITS | u
                arcs += indptr[v + ONE] - indptr[v]
                if length == BUFFER:
                    flush(buffer, length, queue, found)
                    length = 0
                buffer[length] = v
                length += 1
                break
        scanned += np.int64(i - first)
    flush(buffer, length, queue, found)
    atomic_add(found, FOUND_ARCS, arcs)
    atomic_add(found, FOUND_SCANNED, scanned)


@inline
def mark(vertices, bits):
    """Set the bits of vertices."""
    for i in range(len(vertices)):
        set_bit(bits, np.int64(vertices[i]))
