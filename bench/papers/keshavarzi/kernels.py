"""Kernels of the four searches. On the CPU one core does many levels of a queue in one call."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel, persistent
from mgraph.backends.numba_atomics import atomic_add, atomic_min

BLOCK = 512
UNREACHED = np.iinfo(np.int32).max


@kernel(block=BLOCK)
def expand_masked(lo, hi, indptr, targets, visited, mask, levels, updating):
    """Set the next level at neighbors of the mask that are not visited, and mark them."""
    for u in range(lo, hi):
        if mask[u]:
            mask[u] = 0
            for arc in range(indptr[u], indptr[u + 1]):
                if not visited[targets[arc]]:
                    levels[targets[arc]] = levels[u] + 1
                    updating[targets[arc]] = 1


@kernel(block=BLOCK)
def commit_masked(lo, hi, updating, mask, visited, is_any):
    """Put marked vertices into the mask, as visited."""
    for v in range(lo, hi):
        if updating[v]:
            updating[v] = 0
            mask[v] = 1
            visited[v] = 1
            is_any[0] = 1


@kernel(lanes=32, block=BLOCK)
def expand_by_warps(lo, hi, indptr, targets, level, levels, is_any):
    """Set the next level at neighbors of each vertex on the level, a warp for each vertex."""
    for u in range(lo, hi):
        if levels[u] == level:
            for arc in range(indptr[u], indptr[u + 1]):
                if levels[targets[arc]] > level + 1:
                    levels[targets[arc]] = level + 1
                    is_any[0] = 1


@kernel(block=BLOCK)
def expand_queue(lo, hi, indptr, targets, queue, level, levels, next, next_count):
    """Reach the neighbors of a level's vertices, and queue those that are new."""
    for i in range(lo, hi):
        u = queue[i]
        for arc in range(indptr[u], indptr[u + 1]):
            v = targets[arc]
            if levels[v] == UNREACHED and atomic_min(levels, v, level + 1) == UNREACHED:
                next[atomic_add(next_count, 0, 1)] = v


@persistent(block=BLOCK)
def expand_levels(lo, hi, indptr, targets, least, most, heavy, abort, arrived, levels, queue, set_aside, words):
    """Process levels while each has at least `least` and fewer than `most` vertices."""


@inline
def expand_levels_on_core(indptr, targets, most, levels, queue, words):
    """Process levels of fewer than `most` vertices; words are a level's head and tail in the queue, and its number."""
    head = words[0]
    tail = words[1]
    level = words[2]
    while 0 < tail - head < most:
        end = tail
        for i in range(head, end):
            u = queue[i]
            for arc in range(indptr[u], indptr[u + 1]):
                v = targets[arc]
                if levels[v] == UNREACHED:
                    levels[v] = level + 1
                    queue[tail] = v
                    tail += 1
        head = end
        level += 1
    words[0] = head
    words[1] = tail
    words[2] = level
