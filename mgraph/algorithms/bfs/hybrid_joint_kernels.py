"""Push levels by all cores of a CPU rank in one loop, with one barrier a level.

    each core, until few arcs are left to push or a pull pays:
        take vertices of the frontier, some at a time; stage the arcs that may lower a word, but leave rows of hubs
        if there may be hubs: barrier; stage a share of every hub's arcs
        where many are staged, and at the end: lower the words
        barrier; add up what all cores have found

The words are those of hybrid_kernels.py; here an atomic minimum lowers them. A core waits for an atomic before it loads
anything else: so words are loaded for all staged arcs first. The first core to lower the word of a vertex that is not
reached lists the vertex in the queue.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.hybrid_kernels import (
    AHEAD,
    ARCS_LEFT,
    ONE,
    PARENT_BITS,
    PULLED,
    SCANNED,
    UNREACHED,
)
from mgraph.algorithms.bfs.step import pull_pays
from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_barrier import wait_for_all
from mgraph.backends.numba_helpers import flush
from mgraph.backends.numba_prefetch import prefetch

# What all cores find in a level: vertices, and their arcs; how many of the frontier are taken, and how many hubs.
# Three levels have a row each. Before the barrier at the end of a level one core resets the row of the next one, while
# others may still read that of the level before.
FOUND, FOUND_ARCS, TAKEN, HUBS = range(4)
NUM_ROWS = 3
NUM_WORDS = 16
# Arcs that a core stages before it lowers the words at their ends.
STAGED = np.uint64(1024)
# A core takes a chunk of the frontier at a time. Within these bounds there are CHUNKS_OF_SHARE for each core.
MIN_CHUNK = 16
MAX_CHUNK = 256
CHUNKS_OF_SHARE = 4
_pull_pays = inline(pull_pays)


@inline
def push_jointly(core, num_cores, barrier, counted, hubs, limits, indptr, targets, queue, words, counters):
    """Push levels as one of all cores; return False if a core has failed.

    The loop ends with the search, where a pull pays, after `last_level`, where a frontier has at most `narrow_arcs`,
    and before it has scanned more than `pause` arcs, though not before the first level. Rows of more than `longest` are
    hubs'.
    """
    last_level, narrow_arcs, pause, longest = limits
    level, begin, end, arcs, arcs_before, arcs_left = counters[: ARCS_LEFT + 1]
    size = len(words)
    scanned = np.int64(0)
    row = 0
    staged = np.empty(STAGED, queue.dtype), np.empty(STAGED, words.dtype)
    goes_on = True
    while goes_on:
        level += 1
        own = counted[row]
        row = (row + 1) % NUM_ROWS
        if core == 0:
            counted[row] = 0
        take_frontier(num_cores, level, begin, end, own, longest, hubs, staged, indptr, targets, queue, words)
        if len(hubs) > 0:
            if not wait_for_all(barrier, num_cores):
                return False
            push_rows(
                level, hubs, 0, own[HUBS], core, num_cores, own, len(targets), hubs, staged, indptr, targets,
                queue[end:], words,
            )  # fmt: skip
        if not wait_for_all(barrier, num_cores):
            return False
        # All cores read the same and decide the same.
        begin = end
        end += own[FOUND]
        scanned += arcs
        arcs_before = arcs
        arcs = own[FOUND_ARCS]
        arcs_left -= arcs
        goes_on = begin < end < size and level < last_level and narrow_arcs < arcs <= pause - scanned
        goes_on = goes_on and not _pull_pays(False, end - begin, arcs, arcs_before, size - end, arcs_left, size)
    if core == 0:
        counters[: PULLED + 1] = level, begin, end, arcs, arcs_before, arcs_left, 0
        counters[SCANNED] = scanned
    return True


@inline
def take_frontier(num_cores, level, begin, end, own, longest, hubs, staged, indptr, targets, queue, words):
    """Push vertices of the frontier that no other core has taken, until all are taken."""
    chunk = min(max((end - begin) // (CHUNKS_OF_SHARE * num_cores), MIN_CHUNK), MAX_CHUNK)
    found = queue[end:]
    while True:
        first = begin + atomic_add(own, TAKEN, chunk)
        if first >= end:
            break
        last = min(first + chunk, end)
        push_rows(level, queue, first, last, 0, 1, own, longest, hubs, staged, indptr, targets, found, words)


@inline
def push_rows(
    level, vertices, first, last, share, num_shares, own, longest, hubs, staged, indptr, targets, found, words
):  # fmt: skip
    """Push a share of each row of vertices first..last of a list.

    Rows longer than `longest` are hubs', and only listed.
    """
    ends, candidates = staged
    length = np.uint64(0)
    end = np.uint64(last)
    for k in range(np.uint64(first), end):
        if k + AHEAD < end:
            prefetch(targets, indptr[np.uint64(vertices[k + AHEAD])])
        u = np.uint64(vertices[k])
        word = level << PARENT_BITS | np.int64(u)
        i = np.uint64(indptr[u])
        row = np.uint64(indptr[u + ONE]) - i
        if row > np.uint64(longest):
            hubs[atomic_add(own, HUBS, 1)] = u
            continue
        row_end = i + row
        if num_shares > 1:
            row_end = i + row * np.uint64(share + 1) // np.uint64(num_shares)
            i += row * np.uint64(share) // np.uint64(num_shares)
        while i < row_end:
            part_end = min(row_end, i + STAGED - length)
            while i < part_end:
                v = np.uint64(targets[i])
                ends[length] = v
                candidates[length] = word
                # Without a branch: several words are on the way from memory at once.
                length += np.uint64(words[v] > word)
                i += ONE
            if length == STAGED:
                lower(length, own, ends, candidates, indptr, found, words)
                length = np.uint64(0)
    lower(length, own, ends, candidates, indptr, found, words)


@inline
def lower(length, own, ends, candidates, indptr, found, words):
    """Lower the words at the ends of staged arcs; list what no core had reached."""
    for k in range(length):
        prefetch(indptr, ends[k])
    arcs = np.int64(0)
    listed = 0
    for k in range(length):
        v = np.uint64(ends[k])
        # A stale word is larger: the atomic minimum resolves it.
        if words[v] <= candidates[k] or atomic_min(words, v, candidates[k]) != UNREACHED:
            continue
        arcs += np.int64(np.uint64(indptr[v + ONE]) - np.uint64(indptr[v]))
        ends[listed] = v
        listed += 1
    flush(ends, listed, found, own)
    atomic_add(own, FOUND_ARCS, arcs)
