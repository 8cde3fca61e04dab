"""Boruvka's steps: select each tree's lightest edge, break cycles of two, join trees, contract edges.

An edge is found by one of its arcs. Those from lower to higher ends rise with (lower position, higher position), and
name edges; of edges outside a tree (`list_outside`) others are found too, and sorted. A work list holds for each edge
the trees of its ends, adjacent in `ends`, and its place in the total order: `keys` is weight << shift | name where both
fit; else `keys` is the weight and `edges` the name. Weights are integers of the same order: `weight_sort_key`.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, position_of, row_of_arc, weight_sort_key

# No edge: larger than any key.
TOP = np.iinfo(np.int64).max
# Hops after which one launch of `join` stops on the way to a root.
HOPS = 128


@kernel(lanes=8, vertex_t="targets", weight_t="weights")
def lightest_arcs(lo, hi, indptr, targets, weights, base, longest, lowest, above, arcs):
    """Find every vertex's lightest arc, the first of equal ones, and its target.

    No arc is lighter than `lowest`. A vertex without arcs leads to itself, over arc TOP; so does one of `longest` arcs
    or more, a hub, which others choose. Rows are in order of position, so the first arc of a weight is the first edge.
    """
    for v in range(lo, hi):
        above[v] = base + v
        arcs[v] = TOP
        if indptr[v + 1] - indptr[v] >= longest:
            continue
        least = lowest
        for i in range(indptr[v], indptr[v + 1]):
            key = weight_sort_key(weights[i])
            if arcs[v] == TOP or key < least:
                arcs[v] = i
                least = key
                if key == lowest:
                    break
        if arcs[v] != TOP:
            above[v] = targets[arcs[v]]


@kernel(vertex_t="targets", weight_t="weights")
def sample_edges(lo, hi, step, indptr, num_rows, targets, weights, labels, base, stride, multiplier, keys, positions):
    """Write weight and lower position of the edge at every `step`-th arc; TOP for one inside a tree.

    TOP too for an arc to a lower position, where the edge is not.
    """
    for i in range(lo, hi):
        arc = i * step
        row = row_of_arc(indptr, num_rows, arc)
        own = position_of(np.int64(base + row), stride, multiplier)
        keys[i] = TOP
        positions[i] = TOP
        if labels[base + row] != labels[targets[arc]] and position_of(np.int64(targets[arc]), stride, multiplier) > own:
            keys[i] = weight_sort_key(weights[arc])
            positions[i] = own


@inline
def first_higher(targets, first, last, own, stride, multiplier):
    """Return the first arc of a row, first .. last, to a position above the row's own."""
    while first < last:
        middle = (first + last) >> 1
        if position_of(np.int64(targets[middle]), stride, multiplier) > own:
            last = middle
        else:
            first = middle + 1
    return first


@inline
def append_edges(found, names, length, capacity, counters, place, ends, keys, edges):
    """Append a thread's buffer to a work list of counters[place] edges, up to its capacity."""
    first = atomic_add(counters, place, length)
    for i in range(max(min(length, capacity - first), 0)):
        ends[2 * (first + i)] = found[0, i]
        ends[2 * (first + i) + 1] = found[1, i]
        keys[first + i] = found[2, i]
        if edges is not None:
            edges[first + i] = names[i]


@kernel(vertex_t="targets", weight_t="weights")
def list_light(lo, hi, indptr, targets, weights, labels, bounds, counters, ends, keys, edges):
    """List the edges between trees up to a bound, by their arcs, in any order; work items are arcs.

    The bound is a weight, bounds[0], and of the edges of this weight the last lower position, bounds[1]. No more than
    bounds[2] edges are written, but all are counted. There are bounds[3] rows, from state bounds[4] on; bounds[5] and
    bounds[6] are stride and multiplier of the partition, bounds[7] is the shift of a weight in a key.
    """
    heaviest = bounds[0]
    capacity = bounds[2]
    num_rows = bounds[3]
    base = bounds[4]
    found = np.empty((3, BUFFER), np.int64)
    names = np.empty(BUFFER, np.int64)
    length = 0
    row = row_of_arc(indptr, num_rows, lo)
    start = lo
    while start < hi:
        while indptr[row + 1] <= start:
            row += 1
        end = min(indptr[row + 1], hi)
        u = labels[base + row]
        own = position_of(np.int64(base + row), bounds[5], bounds[6])
        is_beyond = own > bounds[1]
        for arc in range(first_higher(targets, start, end, own, bounds[5], bounds[6]), end):
            key = weight_sort_key(weights[arc])
            if key > heaviest or (is_beyond and key == heaviest):
                continue
            v = labels[targets[arc]]
            if u == v:
                continue
            found[0, length] = u
            found[1, length] = v
            found[2, length] = key if edges is not None else key << bounds[7] | arc
            names[length] = arc
            length += 1
            if length == BUFFER:
                append_edges(found, names, length, capacity, counters, 0, ends, keys, edges)
                length = 0
        start = end
    append_edges(found, names, length, capacity, counters, 0, ends, keys, edges)


@kernel(vertex_t="labels")
def list_rows(lo, hi, indptr, labels, base, counters, rows, lengths):
    """List the rows outside the giant, and their lengths, in any order; row r is of state base + r.

    The giant is the tree of state 0. counters[0] counts rows, counters[1] their arcs.
    """
    found = np.empty(BUFFER, np.int64)
    length = 0
    num_arcs = 0
    for row in range(lo, hi):
        if labels[base + row] == labels[0]:
            continue
        found[length] = row
        length += 1
        num_arcs += indptr[row + 1] - indptr[row]
        if length == BUFFER:
            append_rows(found, length, indptr, counters, rows, lengths)
            length = 0
    append_rows(found, length, indptr, counters, rows, lengths)
    atomic_add(counters, 1, num_arcs)


@inline
def append_rows(found, length, indptr, counters, rows, lengths):
    """Append a thread's buffer to a list of counters[0] rows."""
    first = atomic_add(counters, 0, length)
    for i in range(length):
        rows[first + i] = found[i]
        lengths[first + i] = indptr[found[i] + 1] - indptr[found[i]]


@inline
def append_arcs(found, length, capacity, counters, arcs):
    """Append a thread's buffer to a list of counters[0] arcs, up to its capacity."""
    first = atomic_add(counters, 0, length)
    for i in range(max(min(length, capacity - first), 0)):
        arcs[first + i] = found[i]


@kernel(vertex_t="targets", weight_t="weights")
def list_outside(lo, hi, offsets, rows, indptr, targets, weights, labels, bounds, counters, arcs, best):
    """List the edges outside the giant that lead from one tree to another, by arcs, in any order.

    Work items are the arcs of `rows`, of which none is in the giant; arc i of row r is indptr[rows[r]] + i -
    offsets[r]. An edge into the giant is found at the other end, another at its lower end. If there is `best`, of the
    edges of a row into the giant only the lightest is found, as weight << bounds[5] | arc: no other can be in a forest.

    No more than bounds[0] edges are written, but all are counted. There are bounds[1] rows in the list; bounds[2] is
    the state of the first row, bounds[3] and bounds[4] are stride and multiplier of the partition.
    """
    giant = labels[0]
    capacity = bounds[0]
    base = bounds[2]
    found = np.empty(BUFFER, np.int64)
    length = 0
    place = row_of_arc(offsets, bounds[1], lo)
    start = lo
    while start < hi:
        while offsets[place + 1] <= start:
            place += 1
        end = min(offsets[place + 1], hi)
        state = base + rows[place]
        u = labels[state]
        own = position_of(np.int64(state), bounds[3], bounds[4])
        first = indptr[rows[place]] - offsets[place]
        for arc in range(first + start, first + end):
            v = labels[targets[arc]]
            if v == giant and best is not None:
                key = weight_sort_key(weights[arc]) << bounds[5] | arc
                if key < best[place]:
                    atomic_min(best, place, key)
            elif u != v and (v == giant or position_of(np.int64(targets[arc]), bounds[3], bounds[4]) > own):
                found[length] = arc
                length += 1
                if length == BUFFER:
                    append_arcs(found, length, capacity, counters, arcs)
                    length = 0
        start = end
    append_arcs(found, length, capacity, counters, arcs)


@kernel()
def append_best(lo, hi, best, mask, capacity, counters, arcs):
    """Append the arcs of the rows' lightest edges, where there is one, to a list of counters[0]."""
    found = np.empty(BUFFER, np.int64)
    length = 0
    for place in range(lo, hi):
        if best[place] != TOP:
            found[length] = best[place] & mask
            length += 1
            if length == BUFFER:
                append_arcs(found, length, capacity, counters, arcs)
                length = 0
    append_arcs(found, length, capacity, counters, arcs)


@kernel(vertex_t="targets")
def find_ends(lo, hi, arcs, indptr, num_rows, targets, base, stride, multiplier, lower, higher):
    """Find the positions of the ends of edges, given by their arcs.

    Without `higher`, `lower` is lower << 32 | higher.
    """
    for i in range(lo, hi):
        near = position_of(np.int64(base + row_of_arc(indptr, num_rows, arcs[i])), stride, multiplier)
        far = position_of(np.int64(targets[arcs[i]]), stride, multiplier)
        if higher is None:
            lower[i] = min(near, far) << 32 | max(near, far)
        else:
            lower[i] = min(near, far)
            higher[i] = max(near, far)


@kernel(vertex_t="targets", weight_t="weights")
def list_arcs(lo, hi, arcs, indptr, num_rows, targets, weights, labels, base, shift, ends, keys, edges):
    """Write a work list of edges, given by their arcs, under their places."""
    for i in range(lo, hi):
        key = weight_sort_key(weights[arcs[i]])
        ends[2 * i] = labels[base + row_of_arc(indptr, num_rows, arcs[i])]
        ends[2 * i + 1] = labels[targets[arcs[i]]]
        if edges is None:
            keys[i] = key << shift | i
        else:
            keys[i] = key
            edges[i] = i


@kernel(vertex_t="ends")
def find_lightest(lo, hi, ends, keys, best):
    """Find for every tree the least key among the edges that leave it."""
    for i in range(lo, hi):
        for tree in (ends[2 * i], ends[2 * i + 1]):
            # Most edges are not the lightest: a load spares them the atomic. A stale value is only higher.
            if keys[i] < best[tree]:
                atomic_min(best, tree, keys[i])


@kernel(vertex_t="ends")
def find_first(lo, hi, ends, keys, edges, best, first):
    """Find for every tree the first edge among those of its lightest weight."""
    for i in range(lo, hi):
        for tree in (ends[2 * i], ends[2 * i + 1]):
            if keys[i] == best[tree] and edges[i] < first[tree]:
                atomic_min(first, tree, edges[i])


@kernel(vertex_t="ends")
def hook(lo, hi, ends, names, best, above):
    """Make every tree a child of the one that its best edge leads to; one thread writes, as an edge has one name."""
    for i in range(lo, hi):
        u = ends[2 * i]
        v = ends[2 * i + 1]
        if names[i] == best[u]:
            above[u] = v
        if names[i] == best[v]:
            above[v] = u


@kernel(vertex_t="above")
def remove_cycles(lo, hi, above):
    """Make the smaller number of two trees that are hooked to each other a root.

    Only the smaller of a pair writes, its own entry. Another thread may read it before or after: it is neither that
    thread's number nor makes it the smaller of a pair.
    """
    for tree in range(lo, hi):
        if tree < above[tree] and above[above[tree]] == tree:
            above[tree] = tree


@kernel(vertex_t="above")
def take_edges(lo, hi, above, best, numbers, base, mask, forest):
    """Write the best edges of the trees that are not roots, densely; TOP where it is another rank's.

    Tree i here is base + i, and numbers[i] - numbers[0] of those before it are roots.
    """
    for i in range(lo, hi):
        if above[i] != base + i:
            place = i - (np.int64(numbers[i]) - np.int64(numbers[0]))
            forest[place] = TOP if best[i] == TOP else best[i] & mask


@kernel(vertex_t="above")
def join(lo, hi, above, is_root, counters):
    """Compress each tree's path by at most HOPS hops; count in counters[0] those that need more.

    Other threads shorten paths meanwhile, which changes no path's end.
    """
    num_short = 0
    for tree in range(lo, hi):
        root = above[tree]
        for _ in range(HOPS):
            if above[root] == root:
                break
            root = above[root]
        num_short += above[root] != root
        above[tree] = root
        is_root[tree] = root == tree
    atomic_add(counters, 0, num_short)


@kernel(vertex_t="above")
def renumber(lo, hi, num_trees, above, numbers, counters, labels):
    """Give every tree the number of its root, numbers[root]; counters[2] becomes the number of roots."""
    for tree in range(lo, hi):
        labels[tree] = numbers[above[tree]]
        if tree == num_trees - 1:
            counters[2] = numbers[num_trees]


@kernel(vertex_t="labels")
def contract(lo, hi, ends, keys, edges, labels, counters, new_ends, new_keys, new_edges):
    """List the edges that still lead from one tree to another, by the trees' new numbers, in any order.

    The new list is counted in counters[1].
    """
    found = np.empty((3, BUFFER), np.int64)
    names = np.empty(BUFFER, np.int64)
    length = 0
    for i in range(lo, hi):
        u = labels[ends[2 * i]]
        v = labels[ends[2 * i + 1]]
        if u == v:
            continue
        found[0, length] = u
        found[1, length] = v
        found[2, length] = keys[i]
        if edges is not None:
            names[length] = edges[i]
        length += 1
        if length == BUFFER:
            append_edges(found, names, length, TOP, counters, 1, new_ends, new_keys, new_edges)
            length = 0
    append_edges(found, names, length, TOP, counters, 1, new_ends, new_keys, new_edges)
