"""Breadth-first search on one CPU rank: many levels by one core in one compiled loop.

A vertex has one word, `level << 32 | parent`: of all candidates the least is that of the nearest level, and there of
the smallest parent. So an arc takes one access and one comparison.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.step import GROWTH, pull_pays
from mgraph.backends.kernel import inline
from mgraph.backends.numba_prefetch import prefetch

# The state of a search between calls of `push_levels`: its level; the part of the queue that is the frontier, its
# arcs, those of the frontier before, those of vertices that are not reached; whether the last level was pulled; what is
# next, and the arcs that the call scanned.
LEVEL, BEGIN, END, ARCS, ARCS_BEFORE, ARCS_LEFT, PULLED, NEXT, SCANNED = range(9)
NUM_COUNTERS = 9
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
TWO = np.uint64(2)
# While a frontier is pushed, the row of a vertex ahead in the queue is prefetched, and where the row of a
# found vertex begins: where the order of vertices is random, a push takes two thirds of the time (random trees and
# sparse uniform graphs of 2^17 and 2^20 vertices).
AHEAD = np.uint64(8)
# A frontier is irregular if, of SAMPLE rows from its middle on, more than MAX_CHANGES differ in length from the row
# before, and their mean length is below LONG_ROW (most arcs of longer rows find nothing). A frontier with fewer rows
# behind its middle is not.
SAMPLE = np.uint64(16)
MAX_CHANGES = np.uint64(6)
LONG_ROW = np.uint64(8)
# The most vertices and arcs of a level that `push_few` takes: for these nothing but a push by one core pays.
MAX_FEW = 8
FEW_ARCS = 64
# Where at most this many arcs are missing from rows of equal length, a row still begins within a cache line of where
# it would with none missing.
MISSING_ARCS = 8
# Pushing one arc costs at least as much as scanning this many words for unreached vertices, BLOCK words at once.
WORDS_PER_ARC = 4
BLOCK = 64
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
def push_levels(
    last_level, max_arcs, max_degree, is_directed, until, indptr, targets, queue, words, counters
):  # fmt: skip
    """Push level after level by one core, until the search ends or the next level is not to be pushed so.

    That is a level to pull, or one of more than `max_arcs` arcs, unless it is a run or leads to one. After
    STEP_ARCS arcs the loop pauses. The search ends when every vertex is reached, after `last_level`, or when all of
    `until` are reached. A level after which next to nothing is left is pulled here.
    """
    size = len(words)
    level, begin, end, arcs, arcs_before, arcs_left, pulled = counters[: PULLED + 1]
    # The arcs of the frontier and of all that is not reached.
    unscanned = unscanned_before = arcs + arcs_left
    pause = unscanned - STEP_ARCS
    # With targets every level is tested in full.
    most = -1 if len(until) > 0 else max_arcs
    num_reached = 0
    num_skipped = 0
    following = ENDED
    while begin < end < size and level < last_level:
        while num_reached < len(until) and words[until[num_reached]] != UNREACHED:
            num_reached += 1
        if 0 < num_reached == len(until):
            break
        if _pull_pays(pulled != 0, end - begin, arcs, arcs_before, size - end, arcs_left, size):
            following = PULL
            break
        if arcs > max_arcs and not (is_run(begin, end, queue) or leads_to_run(begin, end, indptr, targets, queue)):
            following = WIDE_PUSH
            break
        if unscanned < pause:
            following = PAUSED
            break
        pulled = 0
        level, begin, end, arcs, arcs_before, unscanned, skipped = push_small_levels(
            level, begin, end, arcs, unscanned, last_level, most, pause, max_degree, is_directed, indptr, targets,
            queue, words,
        )  # fmt: skip
        num_skipped += skipped
        arcs_left = unscanned - arcs
    counters[SCANNED] = unscanned_before - unscanned - num_skipped
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
    starts, is_filled, words_and_none, last_level, max_arcs, max_degree, is_directed, until, indptr, targets, queue,
    words, counters,
):  # fmt: skip
    """Begin a search, and push its first levels: one call, which on small graphs takes most of the time."""
    begin_search(starts, is_filled, indptr, queue, words_and_none, counters)
    push_levels(last_level, max_arcs, max_degree, is_directed, until, indptr, targets, queue, words, counters)


@inline
def push_small_levels(
    level, begin, end, arcs, unscanned, last_level, most, pause, max_degree, is_directed, indptr, targets, queue, words
):  # fmt: skip
    """Push a level, and those after it that need no test but whether the search goes on.

    These have at most `most` arcs, and do not grow much. Return the level, its part of the queue and arcs, those of the
    level before, those of the level and all that is not reached, and how many of others have not been scanned.
    """
    size = len(words)
    skipped = 0
    few = MAX_FEW if most >= FEW_ARCS else 0
    is_next = True
    while is_next:
        if end - begin <= few and arcs <= FEW_ARCS:
            level, begin, end, scanned = push_few(
                level, begin, end, last_level, max_degree, indptr, targets, queue, words
            )
            arcs_before = FEW_ARCS
            unscanned -= scanned
        elif not is_directed and WORDS_PER_ARC * (unscanned - 3 * (size - end) * max_degree) > size:
            # The frontier has twice the arcs that all unreached vertices may have, and those that their scan costs.
            level += 1
            begin, end, scanned, left = pull_rest(level, end, indptr, targets, queue, words)
            arcs_before = unscanned - left
            skipped += arcs_before - scanned
            unscanned = left
        else:
            level += 1
            if has_irregular_rows(begin, end, indptr, queue):
                begin, end, scanned = push_irregular(level, begin, end, indptr, targets, queue, words)
            else:
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
    return level, begin, end, arcs, arcs_before, unscanned, skipped


@inline
def pull_rest(level, end, indptr, targets, queue, words):
    """Find a level of an undirected graph in the rows of all that is not reached.

    Return its part of the queue, the arcs scanned, and those of all that was not reached.
    """
    size = np.uint64(end)
    scanned = np.uint64(0)
    left = np.uint64(0)
    n = np.uint64(len(words))
    for first in range(np.uint64(0), n, np.uint64(BLOCK)):
        last = min(first + np.uint64(BLOCK), n)
        is_reached = True
        for v in range(first, last):
            is_reached &= words[v] != UNREACHED
        if is_reached:
            continue
        for v in range(first, last):
            if words[v] != UNREACHED:
                continue
            i = np.uint64(indptr[v])
            row_end = np.uint64(indptr[v + ONE])
            left += row_end - i
            while i < row_end:
                u = np.uint64(targets[i])
                i += ONE
                scanned += ONE
                # The level before; the parent is the first in the row, which is in order of position.
                if words[u] >> PARENT_BITS == level - 1:
                    words[v] = level << PARENT_BITS | np.int64(u)
                    queue[size] = v
                    size += ONE
                    break
    return end, np.int64(size), np.int64(scanned), np.int64(left)


@inline
def has_irregular_rows(begin, end, indptr, queue):
    """Return whether rows of a frontier are short and of many lengths: branches on what arcs find are mispredicted."""
    first = (np.uint64(begin) + np.uint64(end)) >> ONE
    last = first + SAMPLE
    if last > np.uint64(end):
        last = first
    changes = np.uint64(0)
    arcs = np.uint64(0)
    before = np.uint64(0)
    for k in range(first, last):
        u = np.uint64(queue[k])
        length = np.uint64(indptr[u + ONE]) - np.uint64(indptr[u])
        changes += np.uint64(length != before)
        arcs += length
        before = length
    return changes > MAX_CHANGES and arcs < LONG_ROW * SAMPLE


@inline
def is_run(begin, end, queue):
    """Return whether a frontier is likely a run of consecutive vertices, two or more.

    Its ends are as far from each other as in a run.
    """
    length = np.uint64(end) - np.uint64(begin)
    return length > ONE and np.uint64(queue[end - 1]) - np.uint64(queue[begin]) == length - ONE


@inline
def leads_to_run(begin, end, indptr, targets, queue):
    """Return whether a frontier is one vertex, and its neighbors are likely a run, as in a star.

    The frontier has arcs.
    """
    if end - begin != 1:
        return False
    u = np.uint64(queue[begin])
    first = np.uint64(indptr[u])
    last = np.uint64(indptr[u + ONE]) - ONE
    return np.uint64(targets[last]) - np.uint64(targets[first]) == last - first


@inline
def push(level, begin, end, indptr, targets, queue, words):
    """Find the next level along the arcs of a frontier; return its part of the queue, and the arcs scanned."""
    k = np.uint64(begin)
    last = np.uint64(end)
    size = last
    scanned = np.uint64(0)
    # The core itself prefetches rows that follow one another.
    ahead = np.uint64(len(words)) if is_run(begin, end, queue) else AHEAD
    while k < last:
        if size - k > ahead:
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
def push_irregular(level, begin, end, indptr, targets, queue, words):
    """Find the next level as `push` does, without a branch on what an arc finds.

    On irregular rows it takes two thirds to nine tenths of the time, on those of grids and meshes 1.4 times as long.
    """
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
            words[v] = min(before, word)
            prefetch(indptr, v)
            # Overwritten by the next one, unless it was found: the queue has room for one more than all vertices.
            queue[size] = v
            size += np.uint64(before == UNREACHED)
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
    # Where next to all rows are equally long, as in paths, the arcs of a vertex are prefetched without its row's start.
    is_uniform = max_degree * len(words) - len(targets) <= MISSING_ARCS
    length = np.uint64(max_degree) if is_uniform else np.uint64(0)
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
                        prefetch(targets, length * v)
                        queue[size] = v
                        size += ONE
            k += ONE
        if size - last == ONE and np.uint64(queue[last]) == u + ONE:
            size, level_word = follow_run(level_word, last_word, size, full, indptr, targets, queue, words)
            scanned += RUN_ARCS * (size - ONE - last)
            k = last = size - ONE
        elif size - last == TWO and last >= TWO and are_next(last, queue):
            size, level_word = follow_two_runs(level_word, last_word, size, full, indptr, targets, queue, words)
            scanned += RUN_ARCS * (size - TWO - last)
            k = last = size - TWO
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


@inline
def are_next(last, queue):
    """Return whether two vertices are next to the two before them in the queue, as where two runs go on."""
    first = np.uint64(queue[last]) - np.uint64(queue[last - TWO])
    second = np.uint64(queue[last + ONE]) - np.uint64(queue[last - ONE])
    # Each 1 or -1.
    return first + ONE <= TWO and second + ONE <= TWO


@inline
def follow_two_runs(level_word, last_word, size, full, indptr, targets, queue, words):
    """Push levels of two vertices each, as `follow_run` does: a run from either, up or down, where `are_next` holds."""
    u = np.uint64(queue[size - TWO])
    v = np.uint64(queue[size - ONE])
    step_u = u - np.uint64(queue[size - TWO - TWO])
    step_v = v - np.uint64(queue[size - TWO - ONE])
    while True:
        i = np.uint64(indptr[u])
        j = np.uint64(indptr[v])
        after_u = u + step_u
        after_v = v + step_v
        if (
            np.uint64(indptr[u + ONE]) - i != RUN_ARCS
            or np.uint64(indptr[v + ONE]) - j != RUN_ARCS
            or np.uint64(targets[i]) + ONE != u
            or np.uint64(targets[i + ONE]) != u + ONE
            or np.uint64(targets[j]) + ONE != v
            or np.uint64(targets[j + ONE]) != v + ONE
            or words[after_u] != UNREACHED
            or words[after_v] != UNREACHED
            or after_u == after_v
            or size >= full
            or level_word >= last_word
        ):
            return size, level_word
        level_word += 1 << PARENT_BITS
        words[after_u] = level_word | np.int64(u)
        words[after_v] = level_word | np.int64(v)
        queue[size] = after_u
        queue[size + ONE] = after_v
        size += TWO
        u = after_u
        v = after_v


@inline
def count_arcs(begin, end, indptr, queue):
    """Return how many arcs a part of the queue has."""
    arcs = np.int64(0)
    for k in range(np.uint64(begin), np.uint64(end)):
        u = np.uint64(queue[k])
        arcs += np.int64(indptr[u + ONE]) - np.int64(indptr[u])
    return arcs
