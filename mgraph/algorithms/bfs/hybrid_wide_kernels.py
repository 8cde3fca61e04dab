"""One level of a breadth-first search by all cores of a CPU rank: atomic minima of the words of hybrid_kernels.py."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.hybrid_kernels import ONE, PARENT_BITS, UNREACHED
from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, row_of_arc, test_bit

# What one level found: vertices, their arcs, and the arcs that it scanned.
FOUND, FOUND_ARCS, FOUND_SCANNED = range(3)


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
    """Set the bits of vertices, by one core: it needs no atomics."""
    for i in range(np.uint64(len(vertices))):
        v = np.uint64(vertices[i])
        bits[v >> np.uint64(5)] |= np.uint32(1) << np.uint32(v & np.uint64(31))
