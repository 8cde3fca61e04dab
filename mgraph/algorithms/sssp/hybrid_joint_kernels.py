"""Near before far by all cores in one loop: wide buckets of sparse graphs, with a barrier only where a bucket ends.

    each core, until few vertices wait:
        relax the vertices of its near, first in first out; append those lowered below the bound to this near, all
            others to the far of their owner
        barrier; find the least distance in its far; barrier
        raise the bound, as every core does; barrier; move what is below it from its far to its near; barrier

An entry is a vertex below its distance. It counts while the vertex has this distance: each lowering makes one entry, so
that of the last one is relaxed. The word of a vertex is its predecessor below its distance, and falls by an atomic
minimum: among equally near predecessors the first remains. An arc leads farther: weights are at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_barrier import wait_for_all
from mgraph.backends.numba_prefetch import prefetch

# The state of a core: the ends of its near, which is circular; why it ends early; the nearest distance in its far, and
# the entries there; vertices that it has relaxed, those that came below a bound, and arcs. A cache line at least.
HEAD, TAIL, REASON, NEAREST, WAITING, RELAXED, ENTERED, SCANNED = range(8)
NUM_WORDS = 16
# Why all cores return: no vertex waits, or few; a core has relaxed arcs for a pause; a list is full; vertices are
# relaxed again and again; a core has failed. Of two reasons of cores the larger counts.
GOES_ON, ENDED, NARROW, PAUSED, FULL, WASTEFUL, FAILED = range(7)
# Where a bucket begins and ends, and its width; the vertices that were relaxed before, and that came below a bound.
START, BOUND, WIDTH, RELAXED_BEFORE, ENTERED_BEFORE = range(5)
NUM_BOUNDS = 5
ONE = np.uint64(1)
# A distance is above the vertex, or the predecessor, in a word.
DISTANCE_BITS = np.uint64(32)
VERTEX_MASK = np.uint64(0xFFFFFFFF)
# Vertices that follow one another have one owner: those of some cache lines.
OWNER_BITS = np.uint64(6)
# The width is doubled where a bucket has fewer vertices for each core, and halved where more than 1 / REPEATED_SHARE
# of those relaxed were relaxed again.
MIN_RELAXED = 512
REPEATED_SHARE = 8
# Vertices that all cores may relax again, in addition to as many as were found.
MAX_REPEATED = 1 << 16
MAX_WIDTH = 1 << 30
# How many entries ahead in near the first arc of a row is prefetched, and then the word at its end.
ENDS_AHEAD = np.uint64(3)
ARCS_AHEAD = np.uint64(8)


class Lists(NamedTuple):
    """Entries by core: near; far by owner and by the core that wrote them; and the states.

    `num_far` has the length of each far by writer and owner: a core writes cache lines of its own.
    """

    near: np.ndarray
    far: np.ndarray
    num_far: np.ndarray
    states: np.ndarray


def waiting_in(lists: Lists) -> np.ndarray:
    """Return the vertices of all entries in far."""
    cores = range(len(lists.num_far))
    entries = [lists.far[owner, writer, : lists.num_far[writer, owner]] for owner in cores for writer in cores]
    return (np.concatenate(entries) & VERTEX_MASK).astype(np.uint32)


@inline
def begin_joint(waiting, words, num_cores, lists):
    """Give the vertices that wait to their owners."""
    for i in range(len(waiting)):
        v = np.uint64(waiting[i])
        owner = (v >> OWNER_BITS) % np.uint64(num_cores)
        lists.far[owner, 0, lists.num_far[0, owner]] = words[v] >> DISTANCE_BITS << DISTANCE_BITS | v
        lists.num_far[0, owner] += 1


@inline
def settle_jointly(core, num_cores, barrier, lists, bounds, limits, indptr, targets, weights, words):
    """Settle buckets as one of all cores; return why all have ended.

    `limits` are the largest distance, the arcs after which a core pauses, and how many vertices are few.
    """
    farthest, pause, few = limits
    start, bound, width, relaxed_before, entered_before = bounds
    while True:
        relax_own(core, num_cores, lists, bound, farthest, pause, indptr, targets, weights, words)
        if not wait_for_all(barrier, num_cores):
            return FAILED
        find_nearest(core, num_cores, lists, words)
        if not wait_for_all(barrier, num_cores):
            return FAILED
        # All cores read the same and decide the same. No state is written before the next barrier.
        relaxed, entered, waiting, nearest, reason = sum_up(num_cores, lists.states)
        if relaxed > 2 * entered + MAX_REPEATED:
            reason = WASTEFUL
        elif reason == GOES_ON and waiting < few:
            reason = NARROW if waiting > 0 else ENDED
        if reason != GOES_ON:
            if core == 0:
                bounds[:] = start, bound, width, relaxed_before, entered_before
            return reason
        width = next_width(width, relaxed - relaxed_before, entered - entered_before, num_cores)
        start = nearest
        bound = start + width
        relaxed_before = relaxed
        entered_before = entered
        if not wait_for_all(barrier, num_cores):
            return FAILED
        move_below(core, num_cores, lists, bound)
        if not wait_for_all(barrier, num_cores):
            return FAILED


@inline
def sum_up(num_cores, states):
    """Return what all cores have relaxed, found below a bound, and let wait; the nearest distance; why one ends."""
    relaxed = entered = waiting = reason = np.int64(0)
    nearest = np.int64(VERTEX_MASK)
    for core in range(num_cores):
        relaxed += states[core, RELAXED]
        entered += states[core, ENTERED]
        waiting += states[core, WAITING]
        reason = max(reason, states[core, REASON])
        nearest = min(nearest, states[core, NEAREST])
    return relaxed, entered, waiting, nearest, reason


@inline
def next_width(width, relaxed, entered, num_cores):
    """Return the width of the next bucket, from what was relaxed in this one, and came below its bound."""
    if (relaxed - entered) * REPEATED_SHARE > entered:
        return max(width >> 1, 1)
    if relaxed < MIN_RELAXED * num_cores and width < MAX_WIDTH:
        return 2 * width
    return width


@inline
def find_nearest(core, num_cores, lists, words):
    """Drop the entries of a core's far that do not count any more; publish the others' number and least distance."""
    nearest = VERTEX_MASK
    waiting = np.int64(0)
    for writer in range(num_cores):
        entries = lists.far[core, writer]
        left = 0
        for i in range(lists.num_far[writer, core]):
            entry = entries[i]
            d = entry >> DISTANCE_BITS
            if words[entry & VERTEX_MASK] >> DISTANCE_BITS == d:
                entries[left] = entry
                left += 1
                nearest = min(nearest, d)
        lists.num_far[writer, core] = left
        waiting += left
    lists.states[core, NEAREST] = nearest
    lists.states[core, WAITING] = waiting


@inline
def move_below(core, num_cores, lists, bound):
    """Move what is below the bound from a core's far to the beginning of its near, which is empty."""
    near = lists.near[core]
    tail = np.uint64(0)
    entered = np.int64(0)
    for writer in range(num_cores):
        entries = lists.far[core, writer]
        left = 0
        for i in range(lists.num_far[writer, core]):
            entry = entries[i]
            if np.int64(entry >> DISTANCE_BITS) < bound:
                near[tail] = entry
                tail += ONE
                entered += 1
            else:
                entries[left] = entry
                left += 1
        lists.num_far[writer, core] = left
    lists.states[core, HEAD] = 0
    lists.states[core, TAIL] = tail
    lists.states[core, ENTERED] += entered


@inline
def room_in_far(core, num_cores, lists):
    """Return how many arcs of a core may lead to far: all of them to one owner."""
    longest = np.int64(0)
    for writer in range(num_cores):
        longest = max(longest, lists.num_far[core, writer])
    return np.int64(lists.far.shape[2]) - longest


@inline
def relax_own(core, num_cores, lists, end, farthest, pause, indptr, targets, weights, words):
    """Relax the vertices of a core's near until none is left, or the core has a reason to end early."""
    near = lists.near[core]
    far = lists.far
    num_far = lists.num_far
    state = lists.states[core]
    mask = np.uint64(near.shape[0] - 1)
    head = np.uint64(state[HEAD])
    tail = np.uint64(state[TAIL])
    scanned = state[SCANNED]
    relaxed = entered = np.int64(0)
    bound = np.uint64(end)
    last_arc = np.uint64(len(targets)) - ONE
    room = room_in_far(core, num_cores, lists)
    reason = GOES_ON
    while head != tail:
        if scanned > pause:
            reason = PAUSED
            break
        if tail - head > ARCS_AHEAD:
            prefetch(targets, indptr[near[(head + ARCS_AHEAD) & mask] & VERTEX_MASK])
            # The last row may be empty.
            prefetch(words, targets[min(np.uint64(indptr[near[(head + ENDS_AHEAD) & mask] & VERTEX_MASK]), last_arc)])
        entry = near[head & mask]
        u = entry & VERTEX_MASK
        d = entry >> DISTANCE_BITS
        first = np.uint64(indptr[u])
        last = np.uint64(indptr[u + ONE])
        if words[u] >> DISTANCE_BITS != d:
            head += ONE
            continue
        row = np.int64(last - first)
        room = room if row <= room else room_in_far(core, num_cores, lists)
        if row > room or np.int64(tail - head) + row > np.int64(mask):
            reason = FULL
            break
        head += ONE
        relaxed += 1
        scanned += row
        room -= row
        for i in range(first, last):
            v = np.uint64(targets[i])
            through = d + np.uint64(weights[i])
            word = through << DISTANCE_BITS | u
            if word >= words[v] or through > np.uint64(farthest):
                continue
            before = atomic_min(words, v, word) >> DISTANCE_BITS
            entry = through << DISTANCE_BITS | v
            if through >= before:
                continue
            if through < bound:
                entered += before >= bound
                near[tail & mask] = entry
                tail += ONE
            else:
                owner = (v >> OWNER_BITS) % np.uint64(num_cores)
                far[owner, core, num_far[core, owner]] = entry
                num_far[core, owner] += 1
    state[: REASON + 1] = np.int64(head), np.int64(tail), reason
    state[RELAXED : SCANNED + 1] = state[RELAXED] + relaxed, state[ENTERED] + entered, scanned


@inline
def write_words(lo, hi, dist, parents, words):
    """Write the words of vertices lo..hi; an unreached one has all bits set."""
    for v in range(np.uint64(lo), np.uint64(hi)):
        words[v] = np.uint64(dist[v]) << DISTANCE_BITS | np.uint64(parents[v])


@inline
def read_words(lo, hi, words, indptr, dist, parents, found):
    """Write distances and predecessors of vertices lo..hi from their words; count those reached, and their arcs."""
    num_found = arcs = np.int64(0)
    for v in range(np.uint64(lo), np.uint64(hi)):
        d = words[v] >> DISTANCE_BITS
        dist[v] = d
        parents[v] = words[v] & VERTEX_MASK
        if d != VERTEX_MASK:
            num_found += 1
            arcs += np.int64(np.uint64(indptr[v + ONE]) - np.uint64(indptr[v]))
    atomic_add(found, 0, num_found)
    atomic_add(found, 1, arcs)
