"""Multi-source breadth-first search with WORDS words a vertex, for one GPU.

The words are those of multi_source_kernels.py: word w of vertex v, at v * WORDS + w, has the bits of roots 64 * w to
64 * w + 63. `marks` are two bitmaps, of whole 64-bit words each: of the vertices in the front, and of the open ones,
which some root may still reach. The words in `front` of a vertex that is not in the front are 0, or of an earlier
front: bits that its neighbors have got since. `state` has the parts of STATE.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_and, atomic_or
from mgraph.backends.shared_names import Constants, Offsets

# Words of a vertex: together they are the 32 bytes that a GPU loads at least.
WORDS = 4
# Rows of at least this many arcs are gathered by a block of threads.
BLOCK_ROW = 1024
# `tile`: threads that gather a short row; a pair of them loads the words of a neighbor. (With 4, 8 and 16 of them 1,024
# roots of rmat22 take 17, 19 and 24 ms on one H200.) `steps`, `block_steps`: neighbors that a pair loads at once, in a
# short row and in a long one. `max_rounds`: a tile tests whether it has all wanted bits after 1, 2, 4 .. max_rounds
# times that. `pull_blocks`: thread blocks of a multiprocessor, which bound the registers.
SIZES = Constants(words=WORDS, block_row=BLOCK_ROW, tile=4, steps=2, block_steps=4, max_rounds=4, pull_blocks=5)
# Roots with a front, whether only neighbors in the front are gathered, roots that have a front at the next level, and
# counts: vertices of the next front, arcs into it, open vertices of long rows, arcs into open vertices.
STATE = Offsets(alive=WORDS, tests_front=1, reached=WORDS, num_front=1, front_arcs=1, num_long=1, open_arcs=1)

_ALIVE = STATE["alive"]
_TESTS_FRONT = STATE["tests_front"]
_REACHED = STATE["reached"]
_NUM_FRONT = STATE["num_front"]
_FRONT_ARCS = STATE["front_arcs"]
_NUM_LONG = STATE["num_long"]
_OPEN_ARCS = STATE["open_arcs"]


@inline
def marks_bytes(num_owned):
    """Return the bytes of one of the bitmaps in `marks`."""
    return (num_owned + 63) // 64 * 8


@kernel(lanes=32, vertex_t="targets")
def pull_bitmaps(lo, hi, indptr, targets, front, marks, level, num_owned, seen, next_front, next_marks, planes, state):
    """Gather neighbors' words at the open vertices 8 * lo .. 8 * hi of short rows, and settle what is new.

    A gather ends when all roots that are alive have reached the vertex. The bytes of both bitmaps are written.
    """
    open_at = marks_bytes(num_owned)
    for k in range(lo, hi):
        was_open = np.int64(marks[open_at + k])
        front_bits = 0
        open_bits = was_open
        for bit in range(8):
            v = 8 * k + bit
            if (was_open >> bit) & 1 and indptr[v + 1] - indptr[v] < BLOCK_ROW:
                found = _pull(v, indptr, targets, front, marks, level, num_owned, seen, next_front, planes, state)
                front_bits |= (found & 1) << bit
                if found & 2 == 0:
                    open_bits &= ~(1 << bit)
        next_marks[k] = front_bits
        next_marks[open_at + k] = open_bits


@kernel(lanes=256, vertex_t="targets")
def pull_bitmaps_long(
    lo, hi, rows, indptr, targets, front, marks, level, num_owned, seen, next_front, next_marks, planes, state
):
    """Do the same at the open ones of the vertices rows[lo..hi], of long rows, once all bytes are written."""
    open_at = marks_bytes(num_owned)
    for k in range(lo, hi):
        v = np.int64(rows[k])
        if (marks[open_at + (v >> 3)] >> (v & 7)) & 1 != 0:
            found = _pull(v, indptr, targets, front, marks, level, num_owned, seen, next_front, planes, state)
            if found & 1:
                atomic_or(next_marks, v >> 3, 1 << (v & 7))
            if found & 2 == 0:
                atomic_and(next_marks, open_at + (v >> 3), ~(1 << (v & 7)))


@inline
def _pull(v, indptr, targets, front, marks, level, num_owned, seen, next_front, planes, state):
    """Return 1 if the vertex has new bits, plus 2 if it stays open."""
    is_front = 0
    is_open = 0
    for w in range(WORDS):
        at = v * WORDS + w
        wanted = state[_ALIVE + w] & ~seen[at]
        found = np.int64(0)
        for arc in range(indptr[v], indptr[v + 1]):
            u = np.int64(targets[arc])
            if state[_TESTS_FRONT] == 0 or (marks[u >> 3] >> (u & 7)) & 1 != 0:
                found |= front[u * WORDS + w]
        fresh = wanted & found
        next_front[at] = fresh
        if fresh != 0:
            is_front = 1
            _settle_word(at, fresh, level, num_owned, seen, planes, state)
        if wanted & ~found != 0:
            is_open = 2
    _count(is_front != 0, is_open != 0, indptr[v + 1] - indptr[v], state)
    return is_front | is_open


@inline
def _settle_word(at, fresh, level, num_owned, seen, planes, state):
    """Record new bits in the planes of the level's binary digits; the plane that the level begins is 0."""
    seen[at] |= fresh
    atomic_or(state, _REACHED + at % WORDS, fresh)
    k = 0
    while level >> k != 0:
        if (level >> k) & 1:
            planes[k * num_owned * WORDS + at] |= fresh
        k += 1


@inline
def _count(is_front, is_open, length, state):
    if is_front:
        atomic_add(state, _NUM_FRONT, 1)
        atomic_add(state, _FRONT_ARCS, length)
    if is_open:
        atomic_add(state, _OPEN_ARCS, length)
        if length >= BLOCK_ROW:
            atomic_add(state, _NUM_LONG, 1)


@kernel(lanes=32)
def settle_bitmaps(lo, hi, indptr, level, num_owned, seen, next_front, next_marks, planes, state):
    """Settle pushed bits of the vertices 32 * lo .. 32 * hi, and write their bytes of both bitmaps."""
    open_at = marks_bytes(num_owned)
    for k in range(4 * lo, 4 * hi):
        front_bits = 0
        open_bits = 0
        for bit in range(min(8, num_owned - 8 * k)):
            v = 8 * k + bit
            is_front = False
            is_open = False
            for w in range(WORDS):
                at = v * WORDS + w
                fresh = next_front[at] & ~seen[at]
                next_front[at] = fresh
                if fresh != 0:
                    is_front = True
                    _settle_word(at, fresh, level, num_owned, seen, planes, state)
                if state[_ALIVE + w] & ~seen[at] != 0:
                    is_open = True
            front_bits |= int(is_front) << bit
            open_bits |= int(is_open) << bit
            _count(is_front, is_open, indptr[v + 1] - indptr[v], state)
        next_marks[k] = front_bits
        next_marks[open_at + k] = open_bits


@kernel(vertex_t="frontier")
def list_front(lo, hi, indptr, marks, frontier, counters):
    """List the front's vertices among lo..hi, and count them and the arcs that leave them."""
    for v in range(lo, hi):
        if (marks[v >> 3] >> (v & 7)) & 1 != 0:
            frontier[atomic_add(counters, 0, 1)] = v
            atomic_add(counters, 1, indptr[v + 1] - indptr[v])


@kernel(lanes=256, vertex_t="targets")
def push_front(lo, hi, frontier, indptr, targets, front, next_front):
    """Set the bits of the frontier's vertices lo..hi in the words of their targets."""
    for k in range(lo, hi):
        u = np.int64(frontier[k])
        for arc in range(indptr[u], indptr[u + 1]):
            v = np.int64(targets[arc])
            for w in range(WORDS):
                word = front[u * WORDS + w]
                if word & ~next_front[v * WORDS + w] != 0:
                    atomic_or(next_front, v * WORDS + w, word)


@kernel(vertex_t="frontier")
def count_front(lo, hi, frontier, front, counts):
    """Add to the count of each root the frontier's vertices that have its bit."""
    for i in range(lo, hi):
        for root in range(64 * WORDS):
            word = front[np.int64(frontier[i]) * WORDS + root // 64]
            atomic_add(counts, root, (word >> (root % 64)) & 1)


@kernel()
def assemble_levels(lo, hi, seen, planes, num_planes, num_owned, root, levels):
    """Assemble one root's levels from the planes."""
    for v in range(lo, hi):
        at = v * WORDS + root // 64
        level = 0
        for k in range(num_planes):
            level |= ((planes[k * num_owned * WORDS + at] >> (root % 64)) & 1) << k
        levels[v] = level if (seen[at] >> (root % 64)) & 1 else np.iinfo(np.int32).max
