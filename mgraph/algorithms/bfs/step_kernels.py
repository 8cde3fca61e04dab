"""Breadth-first search, one level at a time: push from the frontier, or pull into unreached vertices.

`parents` hold positions and only decrease, so that the smallest candidate wins in any order.
`counters` are: vertices found, their arcs, arcs scanned.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, position_of, row_of_arc, set_bit, test_bit


@kernel(vertex_t="targets")
def push_level(
    lo, hi, frontier, num_frontier, offsets, indptr, targets, visited, base, first, multiplier, parents, found, counters
):
    """Propose each arc's source as parent of its target; a target's first candidate finds it.

    Work items are the frontier's arcs: row k has arcs offsets[k] .. offsets[k + 1]; vertex base + u has
    row u and position u * multiplier + first. `visited` is of
    the levels before and only read here. A thread that finds `parents` already as small as its own
    candidate has nothing to add; a stale larger value is resolved by the atomic minimum.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    none = np.iinfo(targets.dtype).max
    length = 0
    k = row_of_arc(offsets, num_frontier, lo)
    arc = lo
    while arc < hi:
        u = frontier[k] - base
        position = u * multiplier + first
        begin = indptr[u] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = targets[begin + i]
            if test_bit(visited, v) or parents[v] <= position:
                continue
            if atomic_min(parents, v, position) == none:
                if length == BUFFER:
                    flush(buffer, length, found, counters)
                    length = 0
                buffer[length] = v
                length += 1
        arc = end
        k += 1
    flush(buffer, length, found, counters)


@kernel(vertex_t="states")
def merge_parents(lo, hi, states, positions, visited, parents, found, counters):
    """Merge the candidate parents that other ranks sent for owned vertices, as push_level does."""
    none = np.iinfo(states.dtype).max
    for i in range(lo, hi):
        v = states[i]
        if not test_bit(visited, v) and atomic_min(parents, v, positions[i]) == none:
            found[atomic_add(counters, 0, 1)] = v


@kernel(vertex_t="targets")
def pull_level(lo, hi, indptr, targets, frontier, visited, base, stride, multiplier, parents, found, counters):
    """Scan each unreached vertex's row for one on the frontier.

    Rows are in order of position: the first hit is the smallest. Vertex v has the state index base + v.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    scanned = 0
    for v in range(lo, hi):
        if test_bit(visited, base + v):
            continue
        for i in range(indptr[v], indptr[v + 1]):
            scanned += 1
            u = targets[i]
            if test_bit(frontier, u):
                parents[base + v] = position_of(u, stride, multiplier)
                if length == BUFFER:
                    flush(buffer, length, found, counters)
                    length = 0
                buffer[length] = base + v
                length += 1
                break
    flush(buffer, length, found, counters)
    atomic_add(counters, 2, scanned)


@kernel(vertex_t="found")
def settle_level(lo, hi, found, indptr, base, level, visited, levels, lengths, counters):
    """Mark vertices found here as visited, note their level and the length of their rows."""
    arcs = 0
    for i in range(lo, hi):
        local = found[i] - base
        set_bit(visited, found[i])
        levels[local] = level
        lengths[i] = indptr[local + 1] - indptr[local]
        arcs += lengths[i]
    atomic_add(counters, 1, arcs)


@kernel(vertex_t="states")
def mark_bits(lo, hi, states, bits):
    """Set the bit of every state index."""
    for i in range(lo, hi):
        set_bit(bits, states[i])
