"""Pull one level of a breadth-first search, by one core of a CPU rank or all, in the words of hybrid_kernels.py."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.hybrid_kernels import ONE, PARENT_BITS, UNREACHED
from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import BUFFER, flush, test_bit

# What one level found: vertices, their arcs, and the arcs that it scanned.
FOUND, FOUND_ARCS, FOUND_SCANNED = range(3)


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
