"""Spread colors within regions, and take vertices of known components out of the graph.

Vertices are states. The priority of a vertex is a number of its own; colors and regions are priorities. `numbering` is
(pivot, factor, inverse, mask): the priority of a state is (state - pivot) * factor & mask, and inverse undoes it. So
the pivot has priority 0, and the priorities of neighboring states are far apart.

`live` has the bit of every vertex in no known component. An arc counts if both its ends are live and in one
region. Colors only fall, and the color of a vertex is at any time the priority of a vertex with a way to it: threads
may lower them in any order, and a stale value does no harm.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, hold, row_of_arc, set_bit, test_bit


@inline
def priority_of(state, numbering):
    """Return the priority of a state."""
    return (np.int64(state) - numbering[0]) * numbering[1] & numbering[3]


@inline
def state_of_priority(priority, numbering):
    """Return the state that has a priority."""
    return np.int64(priority) * numbering[2] + numbering[0] & numbering[3]


@kernel(lanes=32, vertex_t="colors")
def paint(lo, hi, live, numbering, colors):
    """Give every live vertex its own priority as color; work items are words of `live`."""
    for word in range(lo, hi):
        for i in range(32):
            if live[word] >> i & 1:
                colors[32 * word + i] = priority_of(32 * word + i, numbering)


@kernel(vertex_t="targets")
def push_colors(
    lo, hi, frontier, num_frontier, offsets, begins, targets, live, regions, colors, marked, found, counters
):  # fmt: skip
    """Lower the color of every arc's target to the color of its source; list, once each, targets that this lowers.

    The arcs of frontier[k] are offsets[k] .. offsets[k + 1] of all, and begin at begins[k] in `targets`. A source that
    is lowered meanwhile is listed itself. counters[0] is the length of `found`.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    k = row_of_arc(offsets, num_frontier, lo)
    arc = lo
    while arc < hi:
        u = frontier[k]
        color = colors[u]
        region = regions[u]
        begin = begins[k] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = targets[begin + i]
            if not test_bit(live, v) or regions[v] != region or colors[v] <= color:
                continue
            if color < atomic_min(colors, v, color) and set_bit(marked, v):
                length = hold(buffer, length, v, found, counters)
        arc = end
        k += 1
    flush(buffer, length, found, counters)


@kernel(vertex_t="listed")
def follow_colors(lo, hi, listed, numbering, colors, marked, found, counters):
    """Lower the color of every listed vertex to the color of the vertex that it names, and so on to the last.

    What reaches that vertex reaches this one. The last vertex names itself, whichever of the others has been lowered
    already: so the result does not depend on the order of threads.
    """
    buffer = np.empty(BUFFER, listed.dtype)
    length = 0
    for i in range(lo, hi):
        v = listed[i]
        before = colors[v]
        color = before
        further = colors[state_of_priority(color, numbering)]
        while further < color:
            color = further
            further = colors[state_of_priority(color, numbering)]
        if color < before:
            atomic_min(colors, v, color)
            if set_bit(marked, v):
                length = hold(buffer, length, v, found, counters)
    flush(buffer, length, found, counters)


@kernel(vertex_t="states")
def merge_colors(lo, hi, states, values, base, num_owned, colors, marked, found, counters):
    """Lower the colors of states that ranks have lowered; list, once each, those that are owned."""
    for i in range(lo, hi):
        v = states[i]
        atomic_min(colors, v, values[i])
        if v >= base and v < base + num_owned and set_bit(marked, v):
            found[atomic_add(counters, 0, 1)] = v


@kernel(vertex_t="listed")
def list_lowered(lo, hi, listed, before, base, colors, found, counters):
    """List the vertices of another color than that of `before`, which begins at state `base`."""
    buffer = np.empty(BUFFER, listed.dtype)
    length = 0
    for i in range(lo, hi):
        v = listed[i]
        if colors[v] != before[v - base]:
            length = hold(buffer, length, v, found, counters)
    flush(buffer, length, found, counters)


@kernel(vertex_t="listed")
def settle_colors(lo, hi, listed, base, numbering, regions, colors, roots, left, settled, counters):
    """List the vertices that are settled, with their roots, and those that are left.

    A vertex is settled if its new color is the region that it was in. `counters` are the lengths of both lists.
    """
    left_buffer = np.empty(BUFFER, listed.dtype)
    settled_buffer = np.empty(BUFFER, listed.dtype)
    num_left = num_settled = 0
    for i in range(lo, hi):
        v = listed[i]
        if colors[v] != regions[v]:
            num_left = hold(left_buffer, num_left, v, left, counters)
            continue
        roots[v - base] = state_of_priority(colors[v], numbering)
        num_settled = hold(settled_buffer, num_settled, v, settled, counters[1:])
    flush(left_buffer, num_left, left, counters)
    flush(settled_buffer, num_settled, settled, counters[1:])


@kernel(lanes=32, vertex_t="targets")
def trim(lo, hi, listed, base, indptr, targets, live, regions, left, trimmed, counters):
    """List the vertices with no arc in their row that counts, and those that are left.

    `counters` are the lengths of both lists, of `left` first, and the arcs scanned: each row up to its first arc that
    counts.
    """
    for i in range(lo, hi):
        v = listed[i]
        region = regions[v]
        begin = indptr[v - base]
        end = indptr[v - base + 1]
        arc = begin
        while arc < end and (not test_bit(live, targets[arc]) or regions[targets[arc]] != region):
            arc += 1
        if arc < end:
            left[atomic_add(counters, 0, 1)] = v
        else:
            trimmed[atomic_add(counters, 1, 1)] = v
        atomic_add(counters, 2, min(arc + 1, end) - begin)


@kernel(vertex_t="roots", id_t="smallest")
def lower_labels(lo, hi, roots, users, base, smallest):
    """Lower smallest[root] to the smallest user id of a component; without `users`, row i has user id base + i."""
    for i in range(lo, hi):
        user = base + i if users is None else np.int64(users[i])
        if smallest[roots[i]] > user:
            atomic_min(smallest, roots[i], user)


@kernel()
def label_isolated(lo, hi, first, labels):
    """Label the user ids that have no label with themselves: they have no arcs. Row i has user id first + i."""
    for i in range(lo, hi):
        if labels[i] < 0:
            labels[i] = first + i
