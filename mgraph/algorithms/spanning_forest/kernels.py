"""Boruvka's steps: select each tree's lightest edge, break cycles of two, join trees, contract edges.

A rank has the edges at their lower ends: edge e of its row u is arc `uppers[u] + e - offsets[u]`, so that e rises with
(lower position, higher position). A work list holds for each edge the trees of its ends, adjacent in `ends`, and its
place in the total order: `keys` is weight << 32 | edge where both fit 32 bits; else `keys` is the weight and `edges`
the edge. Weights are integers of the same order: `weight_sort_key`.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, has_bit, position_of, row_of_arc, weight_sort_key

# No edge: larger than any key.
TOP = np.iinfo(np.int64).max
# The edge in a key that holds both.
EDGE_MASK = 2**32 - 1
# Hops after which one launch of `join` stops on the way to a root.
HOPS = 128


@kernel(lanes=8, vertex_t="targets", weight_t="weights")
def lightest_arcs(lo, hi, indptr, targets, weights, base, longest, above, arcs):
    """Find every vertex's lightest arc, the first of equal ones, and its target.

    A vertex without arcs leads to itself, over arc TOP. Rows of `longest` arcs and more are left to
    `lightest_arcs_of_hubs`. Rows are in order of position, so the first arc of a weight is the first edge.
    """
    for v in range(lo, hi):
        if indptr[v + 1] - indptr[v] >= longest:
            continue
        above[v] = base + v
        arcs[v] = TOP
        for i in range(indptr[v], indptr[v + 1]):
            if arcs[v] == TOP or weight_sort_key(weights[i]) < weight_sort_key(weights[arcs[v]]):
                arcs[v] = i
        if arcs[v] != TOP:
            above[v] = targets[arcs[v]]


@kernel(lanes=256, vertex_t="targets", weight_t="weights")
def lightest_arcs_of_hubs(lo, hi, num_rows, num_runs, indptr, targets, weights, longest, above, arcs):
    """Find the lightest arc of every vertex with `longest` arcs or more.

    Work items are runs of rows: each has every `num_runs`-th, so that adjacent long rows are dealt to different blocks.
    """
    for run in range(lo, hi):
        for v in range(run, num_rows, num_runs):
            if indptr[v + 1] - indptr[v] < longest:
                continue
            first = indptr[v]
            for i in range(indptr[v], indptr[v + 1]):
                if weight_sort_key(weights[i]) < weight_sort_key(weights[first]):
                    first = i
            arcs[v] = first
            above[v] = targets[first]


@kernel(vertex_t="targets")
def find_uppers(lo, hi, indptr, targets, base, stride, multiplier, uppers, lengths):
    """Find in every row the first arc to a higher position, and the number of arcs from there on."""
    for row in range(lo, hi):
        own = position_of(np.int64(base + row), stride, multiplier)
        first = indptr[row]
        last = indptr[row + 1]
        while first < last:
            middle = (first + last) >> 1
            if position_of(np.int64(targets[middle]), stride, multiplier) > own:
                last = middle
            else:
                first = middle + 1
        uppers[row] = first
        lengths[row] = indptr[row + 1] - first


@kernel()
def find_arcs(lo, hi, chosen, offsets, num_rows, uppers, rows, arcs):
    """Find the row and the arc of edges."""
    for i in range(lo, hi):
        row = row_of_arc(offsets, num_rows, chosen[i])
        rows[i] = row
        arcs[i] = uppers[row] + chosen[i] - offsets[row]


@kernel(vertex_t="targets", weight_t="weights")
def sample_edges(lo, hi, step, packed, offsets, num_rows, uppers, targets, weights, labels, base, keys):
    """Write the keys of every `step`-th edge, TOP for one inside a tree.

    `packed` keys hold the edge as well.
    """
    for i in range(lo, hi):
        e = i * step
        row = row_of_arc(offsets, num_rows, e)
        arc = uppers[row] + e - offsets[row]
        keys[i] = TOP
        if labels[base + row] != labels[targets[arc]]:
            key = weight_sort_key(weights[arc])
            keys[i] = key << 32 | e if packed else key


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


@kernel(lanes=32, vertex_t="labels")
def mark_tree(lo, hi, num_states, labels, tree, bits):
    """Write a bitmap of the states in a tree; work items are its words."""
    for word in range(lo, hi):
        bits[word] = 0
        for state in range(32 * word, min(32 * word + 32, num_states)):
            if labels[state] == tree:
                bits[word] |= np.uint32(1) << np.uint32(state & 31)


@kernel(vertex_t="targets", weight_t="weights")
def list_edges(lo, hi, offsets, uppers, targets, weights, labels, base, inside, bounds, counters, ends, keys, edges):
    """List the edges between trees that have keys bounds[0] .. bounds[1], in any order.

    No more than bounds[2] are written, but all of them are counted; there are bounds[3] rows. `labels` has the tree of
    every state; `inside`, if given, is a bitmap of the states in tree bounds[4], the giant: a lookup there is cheaper.
    """
    min_key = bounds[0]
    max_key = bounds[1]
    capacity = bounds[2]
    num_rows = bounds[3]
    found = np.empty((3, BUFFER), np.int64)
    names = np.empty(BUFFER, np.int64)
    length = 0
    row = row_of_arc(offsets, num_rows, lo)
    start = lo
    while start < hi:
        while offsets[row + 1] <= start:
            row += 1
        end = min(offsets[row + 1], hi)
        u = labels[base + row]
        shift = uppers[row] - offsets[row]
        for e in range(start, end):
            if u == bounds[4] and has_bit(inside, np.int64(targets[e + shift])):
                continue
            key = weight_sort_key(weights[e + shift])
            if edges is None:
                key = key << 32 | e
            if key < min_key or key > max_key:
                continue
            v = labels[targets[e + shift]]
            if u == v:
                continue
            found[0, length] = u
            found[1, length] = v
            found[2, length] = key
            names[length] = e
            length += 1
            if length == BUFFER:
                append_edges(found, names, length, capacity, counters, 0, ends, keys, edges)
                length = 0
        start = end
    append_edges(found, names, length, capacity, counters, 0, ends, keys, edges)


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
