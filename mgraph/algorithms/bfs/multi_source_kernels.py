"""Multi-source breadth-first search: every vertex has a word, in which each of up to 64 roots has a bit.

`incoming` collects the bits that arcs carry to a vertex. Of owned vertices `seen` has the roots that have reached them,
`front` those that did in the level before. Plane k holds bit k of each root's level.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_or
from mgraph.backends.numba_helpers import BUFFER, flush, hold, row_of_arc


@kernel(vertex_t="targets")
def push_words(lo, hi, frontier, num_frontier, offsets, indptr, targets, front, incoming, found, counters):
    """Set the bits of each frontier vertex's word in its targets; a target with a word that was 0 is found.

    Work items are the frontier's arcs: row frontier[k] has arcs offsets[k] .. offsets[k + 1].
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    k = row_of_arc(offsets, num_frontier, lo)
    arc = lo
    while arc < hi:
        u = frontier[k]
        word = front[u]
        begin = indptr[u] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = targets[begin + i]
            if word & ~incoming[v] != 0 and atomic_or(incoming, v, word) == 0:
                length = hold(buffer, length, v, found, counters)
        arc = end
        k += 1
    flush(buffer, length, found, counters)


@kernel(vertex_t="states")
def merge_words(lo, hi, states, words, incoming):
    """Merge the words that other ranks sent for owned vertices."""
    for i in range(lo, hi):
        atomic_or(incoming, states[i], words[i])


@kernel(vertex_t="targets")
def pull_words(lo, hi, rows, num_rows, offsets, indptr, targets, fronts, seen, all_roots_mask, incoming):
    """Gather neighbors' words at vertices that some root has not reached.

    Work items are the arcs of these rows, as the frontier's are of push_words; `fronts` are of all state indices,
    `incoming` is of the owned vertices, `all_roots_mask` has the bits of all roots.
    """
    k = row_of_arc(offsets, num_rows, lo)
    arc = lo
    while arc < hi:
        v = rows[k]
        begin = indptr[v] - offsets[k]
        end = min(offsets[k + 1], hi)
        wanted = all_roots_mask & ~seen[v]
        word = np.int64(0)
        for i in range(arc, end):
            if wanted & ~word == 0:
                break
            word |= fronts[targets[begin + i]]
        if wanted & word != 0:
            atomic_or(incoming, v, wanted & word)
        arc = end
        k += 1


@kernel(vertex_t="frontier")
def settle_words(
    lo, hi, indptr, in_indptr, level, num_owned, all_roots_mask, incoming, seen, front, planes, frontier, rows, counters
):
    """Make the new bits the front and record their level; list the front and open vertices.

    A vertex that some root has not reached is open. `counters` are: vertices of the front, arcs that leave it, open
    vertices, arcs into them.
    """
    num_front = 0
    leaving = 0
    num_open = 0
    entering = 0
    for v in range(lo, hi):
        new = incoming[v] & ~seen[v]
        incoming[v] = 0
        front[v] = new
        if new != 0:
            seen[v] |= new
            num_front += 1
            leaving += indptr[v + 1] - indptr[v]
            k = 0
            while level >> k != 0:
                if (level >> k) & 1:
                    planes[k * num_owned + v] |= new
                k += 1
        if seen[v] != all_roots_mask:
            num_open += 1
            entering += in_indptr[v + 1] - in_indptr[v]
    i = atomic_add(counters, 0, num_front)
    atomic_add(counters, 1, leaving)
    j = atomic_add(counters, 2, num_open)
    atomic_add(counters, 3, entering)
    for v in range(lo, hi):
        if front[v] != 0:
            frontier[i] = v
            i += 1
        if seen[v] != all_roots_mask:
            rows[j] = v
            j += 1


@kernel(vertex_t="frontier")
def count_roots(lo, hi, frontier, front, counts):
    """Add to the count of each root the frontier's vertices that have its bit.

    Words are added 64 columns at a time: bit b of digits[k] is digit k of the count of root b.
    """
    digits = np.zeros(64, np.int64)
    for i in range(lo, hi):
        carry = front[frontier[i]]
        k = 0
        while carry != 0:
            digit = digits[k]
            digits[k] = digit ^ carry
            carry &= digit
            k += 1
    for root in range(64):
        count = 0
        for k in range(64):
            count |= ((digits[k] >> root) & 1) << k
        atomic_add(counts, root, count)


@kernel()
def levels_of_root(lo, hi, seen, planes, num_planes, num_owned, root, levels):
    """Assemble one root's levels from the planes."""
    for v in range(lo, hi):
        level = 0
        for k in range(num_planes):
            level |= ((planes[k * num_owned + v] >> root) & 1) << k
        levels[v] = level if (seen[v] >> root) & 1 else np.iinfo(np.int32).max
