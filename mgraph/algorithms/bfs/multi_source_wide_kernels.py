"""Multi-source breadth-first search with WORDS words a vertex, for one GPU.

The words are those of multi_source_kernels.py: word w of vertex v, at v * WORDS + w, has the bits of roots 64 * w to
64 * w + 63. `alive` has the bits of the roots with a frontier: others reach no further vertex, and are not required.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_or
from mgraph.backends.shared_names import Constants

# Words of a vertex: together they are the 32 bytes that a GPU loads at least.
WORDS = 4
# Rows of at least this many arcs are gathered by a block of threads.
BLOCK_ROW = 1024
SIZES = Constants(words=WORDS, block_row=BLOCK_ROW)


@kernel(lanes=256, vertex_t="targets")
def push_wide(lo, hi, frontier, indptr, targets, front, incoming):
    """Set the bits of the frontier's vertices lo..hi in the words of their targets."""
    for k in range(lo, hi):
        u = np.int64(frontier[k])
        for arc in range(indptr[u], indptr[u + 1]):
            v = np.int64(targets[arc])
            for w in range(WORDS):
                word = front[u * WORDS + w]
                if word & ~incoming[v * WORDS + w] != 0:
                    atomic_or(incoming, v * WORDS + w, word)


@kernel(lanes=8, vertex_t="targets")
def pull_wide(lo, hi, rows, indptr, targets, front, seen, alive, incoming):
    """Gather neighbors' words at the vertices rows[lo..hi], until all roots that are alive have reached the vertex."""
    for k in range(lo, hi):
        _gather(np.int64(rows[k]), indptr, targets, front, seen, alive, incoming)


@kernel(lanes=256, vertex_t="targets")
def pull_wide_long(lo, hi, rows, indptr, targets, front, seen, alive, incoming):
    """Do the same for vertices of long rows."""
    for k in range(lo, hi):
        _gather(np.int64(rows[k]), indptr, targets, front, seen, alive, incoming)


@inline
def _gather(v, indptr, targets, front, seen, alive, incoming):
    for w in range(WORDS):
        wanted = alive[w] & ~seen[v * WORDS + w]
        for arc in range(indptr[v], indptr[v + 1]):
            incoming[v * WORDS + w] |= wanted & front[np.int64(targets[arc]) * WORDS + w]


@kernel(vertex_t="frontier")
def settle_wide(
    lo, hi, indptr, in_indptr, level, num_owned, incoming, seen, front, planes, frontier, rows, alive, counters
):
    """Make the new bits the front and record their level; list the front, and the vertices that are open.

    A vertex is open if a root that was alive has not reached it. Those of short rows are listed from the beginning of
    `rows`, those of long ones from its end. A plane is written whole at its first level, 1 << k. The second half of
    `alive` collects the roots of the new front. `counters` are: vertices of the front, arcs that leave it, open
    vertices of short rows, of long rows, arcs into open ones.
    """
    for v in range(lo, hi):
        is_front = False
        is_open = False
        for w in range(WORDS):
            at = v * WORDS + w
            new = incoming[at] & ~seen[at]
            incoming[at] = 0
            front[at] = new
            seen[at] |= new
            if new != 0:
                is_front = True
                atomic_or(alive, WORDS + w, new)
            k = 0
            while level >> k != 0:
                if (level >> k) & 1:
                    word = k * num_owned * WORDS + at
                    planes[word] = new if level == 1 << k else planes[word] | new
                k += 1
            if alive[w] & ~seen[at] != 0:
                is_open = True
        if is_front:
            frontier[atomic_add(counters, 0, 1)] = v
            atomic_add(counters, 1, indptr[v + 1] - indptr[v])
        if is_open:
            length = in_indptr[v + 1] - in_indptr[v]
            if length < BLOCK_ROW:
                rows[atomic_add(counters, 2, 1)] = v
            else:
                rows[num_owned - 1 - atomic_add(counters, 3, 1)] = v
            atomic_add(counters, 4, length)


@kernel(vertex_t="frontier")
def count_wide(lo, hi, frontier, front, counts):
    """Add to the count of each root the frontier's vertices that have its bit."""
    for i in range(lo, hi):
        for root in range(64 * WORDS):
            word = front[np.int64(frontier[i]) * WORDS + root // 64]
            atomic_add(counts, root, (word >> (root % 64)) & 1)


@kernel()
def levels_wide(lo, hi, seen, planes, num_planes, num_owned, root, levels):
    """Assemble one root's levels from the planes."""
    for v in range(lo, hi):
        at = v * WORDS + root // 64
        level = 0
        for k in range(num_planes):
            level |= ((planes[k * num_owned * WORDS + at] >> (root % 64)) & 1) << k
        levels[v] = level if (seen[at] >> (root % 64)) & 1 else np.iinfo(np.int32).max
