"""The four procedures of Boruvka's rounds, on flat arrays."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min

NONE = np.iinfo(np.int64).max
NO_BASE = np.iinfo(np.uint32).max


@kernel(lanes=32)
def first_leaving_arcs(lo, hi, indptr, targets, tree, begin, found):
    """Find the first arc to another tree in each list, from where the last round ended."""
    for v in range(lo, hi):
        arc = begin[v]
        while arc < indptr[v + 1] and tree[targets[arc]] == tree[v]:
            arc += 1
        begin[v] = arc
        found[v] = arc if arc < indptr[v + 1] else NONE


@kernel(lanes=32)
def first_leaving_compressed(lo, hi, indptr, targets, bases, remainders, multiples, tree, begin, found):
    """Find the same from compressed neighbors: a base for each vertex, a byte and two bits for each arc."""
    for v in range(lo, hi):
        arc = begin[v]
        while arc < indptr[v + 1]:
            target = targets[arc]
            if bases[v] != NO_BASE:
                multiple = multiples[arc >> 2] >> 2 * (arc & 3) & 3
                target = bases[v] + remainders[arc] + 256 * multiple
            if tree[target] != tree[v]:
                break
            arc += 1
        begin[v] = arc
        found[v] = arc if arc < indptr[v + 1] else NONE


@kernel(lanes=32, weight_t="weights")
def lightest_leaving_arcs(lo, hi, indptr, targets, weights, edges, tree, found):
    """Find the lightest arc to another tree in each list, which is not sorted; of equals that of the first edge."""
    for v in range(lo, hi):
        best = NONE
        for arc in range(indptr[v], indptr[v + 1]):
            if tree[targets[arc]] == tree[v]:
                continue
            if (
                best == NONE
                or weights[arc] < weights[best]
                or (weights[arc] == weights[best] and edges[arc] < edges[best])
            ):
                best = arc
        found[v] = best


@kernel()
def lightest_of_trees(lo, hi, found, weights, edges, tree, best):
    """Find the lightest edge of each tree: integer weight and number in one word."""
    for v in range(lo, hi):
        if found[v] != NONE:
            atomic_min(best, tree[v], (np.int64(weights[found[v]]) << 32) | edges[found[v]])


@kernel()
def least_weights(lo, hi, found, weights, tree, least):
    """Find the least weight of the edges out of each tree."""
    for v in range(lo, hi):
        if found[v] != NONE:
            atomic_min(least, tree[v], weights[found[v]])


@kernel()
def least_edges(lo, hi, found, weights, edges, tree, least, best):
    """Find the first edge of the least weight."""
    for v in range(lo, hi):
        if found[v] != NONE and weights[found[v]] == least[tree[v]]:
            atomic_min(best, tree[v], edges[found[v]])


@kernel()
def remove_cycles(lo, hi, best, starts, ends, tree, parent, forest, num_forest):
    """Point each tree at the other end of its lightest edge; of two that point at each other one is a root."""
    for t in range(lo, hi):
        if best[t] == NONE:
            parent[t] = t
            continue
        edge = best[t] & NO_BASE
        other = tree[ends[edge]] if tree[starts[edge]] == t else tree[starts[edge]]
        if best[other] != NONE and best[other] & NO_BASE == edge and t < other:
            parent[t] = t
        else:
            parent[t] = other
            forest[atomic_add(num_forest, 0, 1)] = edge


@kernel()
def join(lo, hi, parent):
    """Point each tree at its root."""
    for t in range(lo, hi):
        above = parent[t]
        while parent[above] != above:
            above = parent[above]
        parent[t] = above


@kernel()
def number_roots(lo, hi, parent, new_of_old, old_of_new, num_roots):
    """Give each root a new number."""
    for t in range(lo, hi):
        if parent[t] == t:
            number = atomic_add(num_roots, 0, 1)
            new_of_old[t] = number
            old_of_new[number] = t


@kernel()
def renumber(lo, hi, parent, new_of_old, tree):
    """Give each vertex the new number of its tree."""
    for v in range(lo, hi):
        tree[v] = new_of_old[parent[tree[v]]]
