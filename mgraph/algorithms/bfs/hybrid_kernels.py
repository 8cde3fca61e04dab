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
UNREACHED = int(np.iinfo(np.int64).max)
PARENT_BITS = 32
PARENT_MASK = (1 << PARENT_BITS) - 1
# Indices are unsigned: Numba tests signed ones for being negative, which takes a fifth of the time.
ONE = np.uint64(1)
# While a frontier is pushed, the row of a vertex ahead in the queue is prefetched, and where the row of a
# found vertex begins: where the order of vertices is random, a push takes two thirds of the time (random trees and
# sparse uniform graphs of 2^17 and 2^20 vertices).
AHEAD = np.uint64(8)
# The most vertices and arcs of a level that `push_few` takes: for these nothing but a push by one core pays.
MAX_FEW = 8
FEW_ARCS = 64
# Of a vertex in a run: to the one before and the one after.
RUN_ARCS = np.uint64(2)
_pull_pays = inline(pull_pays)


@inline
def begin_search(starts, is_filled, indptr, queue, words_and_none, counters):
    """Reach the vertices from which a search begins, and no other; all words may have that value already."""
    if not is_filled:
        words_and_none[:] = UNREACHED
    counters[LEVEL] = 0
    counters[END] = len(starts)
    for i in range(len(starts)):
        u = np.uint64(starts[i])
        queue[i] = u
        words_and_none[u] = u
    counters[ARCS] = count_arcs(0, len(starts), indptr, queue)
    counters[ARCS_LEFT] = np.int64(indptr[len(words_and_none) - 1]) - counters[ARCS]


@inline
def push_levels(last_level, max_arcs, max_degree, until, indptr, targets, queue, words, counters):
    """Push level after level by one core, until the search ends or the next level is not to be pushed so.

    That is a level to pull, or one of more than `max_arcs` arcs; after STEP_ARCS arcs the loop pauses. The search ends
    when every vertex is reached, after `last_level`, or when all of `until` are reached.
    """
    size = len(words)
    level, begin, end, arcs, arcs_before, arcs_left, pulled = counters[: PULLED + 1]
    # The arcs of the frontier and of all that is not reached.
    unscanned = unscanned_before = arcs + arcs_left
    pause = unscanned - STEP_ARCS
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
        if unscanned < pause:
            following = PAUSED
            break
        pulled = 0
        level, begin, end, arcs, arcs_before, unscanned = push_small_levels(
            level, begin, end, arcs, unscanned, last_level, most, pause, max_degree, indptr, targets, queue, words
        )
        arcs_left = unscanned - arcs
    counters[SCANNED] = unscanned_before - unscanned
    counters[LEVEL] = level
    counters[BEGIN] = begin
    counters[END] = end
    counters[ARCS] = arcs
    counters[ARCS_BEFORE] = arcs_before
    counters[ARCS_LEFT] = arcs_left
    counters[PULLED] = pulled
    counters[NEXT] = following


@inline
def begin_levels(
    starts, is_filled, words_and_none, last_level, max_arcs, max_degree, until, indptr, targets, queue, words, counters
):  # fmt: skip
    """Begin a search, and push its first levels: one call, which on small graphs takes most of the time."""
    begin_search(starts, is_filled, indptr, queue, words_and_none, counters)
    push_levels(last_level, max_arcs, max_degree, until, indptr, targets, queue, words, counters)


@merged
def push_small_levels(
    level, begin, end, arcs, unscanned, last_level, most, pause, max_degree, indptr, targets, queue, words
):  # fmt: skip
    """Push a level, and those after it that need no test but whether the search goes on.

    These have at most `most` arcs, and do not grow much. Return the level, its part of the queue and arcs, those of the
    level before, and those of the level and all that is not reached.
    """
    size = len(words)
    few = MAX_FEW if most >= FEW_ARCS else 0
    is_next = True
    while is_next:
        if end - begin <= few and arcs <= FEW_ARCS:
            level, begin, end, scanned = push_few(
                level, begin, end, last_level, max_degree, indptr, targets, queue, words
            )
            arcs_before = FEW_ARCS
        else:
            level += 1
            begin, end, scanned = push(level, begin, end, indptr, targets, queue, words)
            arcs_before = scanned
        unscanned -= scanned
        # Most levels have too few vertices for arcs that would have to be counted.
        arcs = min((end - begin) * max_degree, unscanned)
        bound = min(GROWTH * (arcs_before + FEW_ARCS), most)
        is_counted = arcs > bound
        if is_counted:
            arcs = count_arcs(begin, end, indptr, queue)
        is_next = arcs <= bound and begin < end < size and unscanned >= pause and level < last_level
    if not is_counted:
        arcs = count_arcs(begin, end, indptr, queue) if end < size else unscanned
    return level, begin, end, arcs, arcs_before, unscanned


@inline
def push(level, begin, end, indptr, targets, queue, words):
    """Find the next level along the arcs of a frontier; return its part of the queue, and the arcs scanned."""
    k = np.uint64(begin)
    last = np.uint64(end)
    size = last
    scanned = np.uint64(0)
    while k < last:
        if size - k > AHEAD:
            prefetch(targets, indptr[np.uint64(queue[k + AHEAD])])
        u = np.uint64(queue[k])
        word = level << PARENT_BITS | np.int64(u)
        i = np.uint64(indptr[u])
        row_end = np.uint64(indptr[u + ONE])
        scanned += row_end - i
        while i < row_end:
            v = np.uint64(targets[i])
            before = words[v]
            if before > word:
                words[v] = word
                if before == UNREACHED:
                    prefetch(indptr, v)
                    queue[size] = v
                    size += ONE
            i += ONE
        k += ONE
    return end, np.int64(size), np.int64(scanned)


@inline
def push_few(level, begin, end, last_level, max_degree, indptr, targets, queue, words):
    """Push levels of few vertices, one after another; return the level, its part of the queue, and the arcs scanned.

    In a path each vertex is a level, so that the tests of a level are short. The word of a vertex that was just found
    is in the cache, and has its parent: the arc there is known to find nothing before the parent's word is loaded.
    """
    k = np.uint64(begin)
    last = np.uint64(end)
    size = last
    full = min(np.uint64(len(words)), size + np.uint64(STEP_ARCS // FEW_ARCS))
    last_word = last_level << PARENT_BITS
    level_word = level << PARENT_BITS
    has_long_rows = MAX_FEW * max_degree > FEW_ARCS
    scanned = np.uint64(0)
    while True:
        level_word += 1 << PARENT_BITS
        while k < last:
            u = np.uint64(queue[k])
            parent = np.uint64(words[u] & PARENT_MASK)
            word = level_word | np.int64(u)
            i = np.uint64(indptr[u])
            scanned += np.uint64(indptr[u + ONE]) - i
            # The end is read anew for each arc: LLVM would unroll the loop for long rows, which these are not.
            while i < np.uint64(indptr[u + ONE]):
                v = np.uint64(targets[i])
                i += ONE
                if v == parent:
                    continue
                before = words[v]
                if before > word:
                    words[v] = word
                    if before == UNREACHED:
                        prefetch(indptr, v)
                        queue[size] = v
                        size += ONE
            k += ONE
        if size - last == ONE and np.uint64(queue[last]) == u + ONE:
            size, level_word = follow_run(level_word, last_word, size, full, indptr, targets, queue, words)
            scanned += RUN_ARCS * (size - ONE - last)
            k = last = size - ONE
        # The difference is unsigned: where no vertex is found, it is large.
        is_over = size - last - ONE >= np.uint64(MAX_FEW) or size >= full or level_word >= last_word
        if is_over or (has_long_rows and count_arcs(last, size, indptr, queue) > FEW_ARCS):
            return level_word >> PARENT_BITS, np.int64(last), np.int64(size), np.int64(scanned)
        last = size


@inline
def follow_run(level_word, last_word, size, full, indptr, targets, queue, words):
    """Push levels of one vertex each, u, u + 1, u + 2, ..., where u - 1 is reached; return the queue's end, the level.

    The next vertex is guessed, and compared with the row: a core need not wait for a row to begin with the next one,
    which is most of the time of a path.
    """
    u = np.uint64(queue[size - ONE])
    i = np.uint64(indptr[u])
    row_end = np.uint64(indptr[u + ONE])
    while (
        row_end - i == RUN_ARCS
        and np.uint64(targets[i]) + ONE == u
        and np.uint64(targets[i + ONE]) == u + ONE
        and words[u + ONE] == UNREACHED
        and size < full
        and level_word < last_word
    ):
        level_word += 1 << PARENT_BITS
        words[u + ONE] = level_word | np.int64(u)
        u += ONE
        queue[size] = u
        size += ONE
        i = row_end
        row_end = np.uint64(indptr[u + ONE])
    return size, level_word


@merged
def count_arcs(begin, end, indptr, queue):
    """Return how many arcs a part of the queue has."""
    arcs = np.int64(0)
    for k in range(np.uint64(begin), np.uint64(end)):
        u = np.uint64(queue[k])
        arcs += np.int64(indptr[u + ONE]) - np.int64(indptr[u])
    return arcs


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
