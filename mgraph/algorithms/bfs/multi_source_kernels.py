"""Breadth-first searches from up to 64 roots together: a vertex has a word, and a root a bit of it.

`came` collects what the arcs bring, `seen` and `front` are of the vertices owned here: what has reached them, and what
of it in the level before. Bit k of a root's level stands in plane k.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_or
from mgraph.backends.numba_helpers import BUFFER, flush, hold, row_of_arc


@kernel(vertex_t="targets")
def push_words(lo, hi, frontier, num_frontier, offsets, indptr, targets, front, came, found, counters):
    """Bring the word of every frontier vertex to its targets; one to which nothing came before is found.

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
            if word & ~came[v] != 0 and atomic_or(came, v, word) == 0:
                length = hold(buffer, length, v, found, counters)
        arc = end
        k += 1
    flush(buffer, length, found, counters)


@kernel(vertex_t="states")
def merge_words(lo, hi, states, words, came):
    """Take the words that other ranks bring to vertices owned here."""
    for i in range(lo, hi):
        atomic_or(came, states[i], words[i])


@kernel(vertex_t="targets")
def pull_words(lo, hi, rows, num_rows, offsets, indptr, targets, fronts, seen, every, came):
    """Look from vertices that some root has not reached at the words of their neighbours.

    Work items are the arcs of these rows, as the frontier's are of push_words; `fronts` are of all state indices,
    `came` is of the vertices owned here, `every` has the bits of all roots.
    """
    k = row_of_arc(offsets, num_rows, lo)
    arc = lo
    while arc < hi:
        v = rows[k]
        begin = indptr[v] - offsets[k]
        end = min(offsets[k + 1], hi)
        wanted, word = every & ~seen[v], np.int64(0)
        for i in range(arc, end):
            if wanted & ~word == 0:
                break
            word |= fronts[targets[begin + i]]
        if wanted & word != 0:
            atomic_or(came, v, wanted & word)
        arc = end
        k += 1


@kernel(vertex_t="frontier")
def settle_words(
    lo, hi, indptr, in_indptr, level, num_owned, every, came, seen, front, planes, frontier, rows, counters
):
    """Keep of what came what is new, as the front, and note its level; list the front, and who is open.

    A vertex that some root has not reached is open. `counters` are: vertices of the front, arcs that leave it, open
    vertices, arcs into them.
    """
    num_front, leaving, num_open, entering = 0, 0, 0, 0
    for v in range(lo, hi):
        new = came[v] & ~seen[v]
        came[v] = 0
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
        if seen[v] != every:
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
        if seen[v] != every:
            rows[j] = v
            j += 1


@kernel()
def levels_of_root(lo, hi, seen, planes, num_planes, num_owned, root, levels):
    """Put together one root's levels from its bits."""
    for v in range(lo, hi):
        level = 0
        for k in range(num_planes):
            level |= ((planes[k * num_owned + v] >> root) & 1) << k
        levels[v] = level if (seen[v] >> root) & 1 else np.iinfo(np.int32).max
