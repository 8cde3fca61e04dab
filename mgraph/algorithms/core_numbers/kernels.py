"""Peel vertices of few remaining neighbors.

Vertices are states. `left` has, for each owned vertex, the number of its arcs that remain; of one that is peeled it is
the level at which it was, which is its core number. A level peels every vertex that has no more arcs left than its
number, in any order: the same vertices are peeled.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, hold


@inline
def lose(left, v, count, level):
    """Take arcs from a vertex that is not peeled; return whether this peels it.

    Between an atomic below the level and the one that makes up for it, others see fewer arcs than the level: they
    leave the vertex alone, or make up for their own.
    """
    if left[v] <= level:
        return False
    old = atomic_add(left, v, -count)
    below = min(old, level) - (old - count)
    if below > 0:
        atomic_add(left, v, below)
    return old > level and old - count <= level


@kernel(lanes=32, vertex_t="targets")
def peel(
    lo, hi, frontier, base, num_owned, level, indptr, targets, in_indptr, in_targets, left, losses, found, counters
):
    """Take an arc from every neighbor of the frontier, and of the vertices that this peels.

    A vertex leads to one that it peels, and this to a next one: so a long way takes one launch. `found` lists all
    others that are peeled, and, once each, states of other ranks: `losses` counts what they lose. `counters` are the
    length of `found` and the arcs scanned. A directed graph has in-rows too.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    scanned = 0
    for k in range(lo, hi):
        v = np.int64(frontier[k])
        while v >= 0:
            row = v - base
            v = np.int64(-1)
            begin = indptr[row]
            num = indptr[row + 1] - begin
            more = 0 if in_indptr is None else in_indptr[row + 1] - in_indptr[row]
            scanned += num + more
            for i in range(num + more):
                if in_indptr is None or i < num:
                    u = np.int64(targets[begin + i])
                else:
                    u = np.int64(in_targets[in_indptr[row] + i - num])
                if u < base or u >= base + num_owned:
                    if atomic_add(losses, u, 1) == 0:
                        length = hold(buffer, length, u, found, counters)
                elif lose(left, u - base, 1, level):
                    if v < 0:
                        v = u
                    else:
                        length = hold(buffer, length, u, found, counters)
    flush(buffer, length, found, counters)
    atomic_add(counters, 1, scanned)


@kernel(vertex_t="states")
def merge_losses(lo, hi, states, counts, base, level, left, found, counters):
    """Take the arcs that owned vertices lose by other ranks; list those that this peels."""
    for i in range(lo, hi):
        v = np.int64(states[i])
        if lose(left, v - base, np.int64(counts[i]), level):
            found[atomic_add(counters, 0, 1)] = v


@kernel(vertex_t="listed")
def list_level(lo, hi, listed, base, level, left, rest, found, counters):
    """List the vertices of as many arcs as the level, and those of more; peeled ones have fewer.

    `counters` are the lengths of both lists, of `rest` first, and the fewest arcs of a vertex in `rest`.
    """
    rest_buffer = np.empty(BUFFER, listed.dtype)
    found_buffer = np.empty(BUFFER, listed.dtype)
    num_rest = num_found = 0
    least = np.iinfo(np.int64).max
    for i in range(lo, hi):
        v = listed[i]
        arcs = left[np.int64(v) - base]
        if arcs == level:
            num_found = hold(found_buffer, num_found, v, found, counters[1:])
        elif arcs > level:
            num_rest = hold(rest_buffer, num_rest, v, rest, counters)
            least = min(least, arcs)
    flush(rest_buffer, num_rest, rest, counters)
    flush(found_buffer, num_found, found, counters[1:])
    atomic_min(counters, 2, least)
