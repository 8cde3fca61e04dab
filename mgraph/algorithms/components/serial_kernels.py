"""Union-find by one core: no other thread hooks a tree meanwhile, so that nothing is atomic.

`parents` holds a position for every position: itself for a root, else a smaller one of the same tree. Rows are sorted
by position.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

# Indices are unsigned: Numba tests signed ones for being negative.
ONE = np.uint64(1)


@inline
def make_roots(parents):
    """Make every position a tree by itself."""
    for v in range(len(parents)):
        parents[v] = v


@inline
def find(parents, v):
    """Return the root of v's tree; entries on the path skip to their grandparents."""
    parent = np.uint64(parents[v])
    above = np.uint64(parents[parent])
    while above != parent:
        parents[v] = above
        v = above
        parent = np.uint64(parents[v])
        above = np.uint64(parents[parent])
    return parent


@inline
def link_rows(lo, hi, directed, indptr, targets, parents):
    """Join the trees of both ends of the arcs of rows lo..hi; return how many joins there were.

    An undirected edge is an arc of both its ends: the arc to the lower one is scanned.
    """
    num_joins = 0
    for u in range(np.uint64(lo), np.uint64(hi)):
        root = find(parents, u)
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
            v = np.uint64(targets[i])
            if not directed and v > u:
                break
            other = find(parents, v)
            if other == root:
                continue
            num_joins += 1
            parents[max(root, other)] = min(root, other)
            root = min(root, other)
    return num_joins


@inline
def take_first_edges(lo, hi, indptr, targets, parents, taken, num_taken):
    """Take the arcs of rows lo..hi to higher positions, in order, that join two trees; return how many are taken."""
    for u in range(np.uint64(lo), np.uint64(hi)):
        root = find(parents, u)
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
            v = np.uint64(targets[i])
            if v < u:
                continue
            other = find(parents, v)
            if other == root:
                continue
            taken[num_taken] = i
            num_taken += 1
            parents[max(root, other)] = min(root, other)
            root = min(root, other)
    return num_taken


@inline
def flatten(parents):
    """Make every entry its root: in rising order, as each parent is smaller than its child."""
    for v in range(np.uint64(len(parents))):
        parents[v] = parents[np.uint64(parents[v])]
