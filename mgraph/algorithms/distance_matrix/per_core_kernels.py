"""Search from a source by one core, again and again: shortest paths by buckets, and hops by a queue.

    near: the entries of vertices that wait, in SLOTS buckets from `base` on, each a list
    far: the list of all entries beyond these buckets
    settle the first entry of the first bucket; its vertex may be lowered again within the bucket
    where near is empty: the buckets begin anew at the least key in far

An entry has the distance to which its vertex was lowered; one that is not the vertex's distance any more is dropped.
Freed entries are used again, the last one first, so that those in use are in the cache. The arcs of a vertex are
prefetched when it is inserted, so that they are in the cache when it is settled. Where most weights are far below the
width of a bucket, a vertex may be settled many times in it: such a search is given up, and begun anew with Dijkstra's
algorithm (mgraph/algorithms/sssp/hybrid_kernels.py).
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.sssp.hybrid_kernels import (
    MAX_SCANNED,
    MAX_SIZE,
    MIN_DEGREE,
    NUM_SEARCH_WORDS,
    settle_nearest,
)
from mgraph.algorithms.sssp.radix_queue import begin_queue
from mgraph.backends.kernel import inline, merged
from mgraph.backends.numba_helpers import arcs_of, top_of
from mgraph.backends.numba_prefetch import prefetch_arcs

# Buckets of near: their heads are in the L1 cache.
SLOTS = 1024
NONE = -1
# A search that has scanned more arcs than this multiple of the graph's is given up.
MAX_RESCANS = 4
GIVEN_UP = -1
# Numbers of buckets are at most this, which 64 bits hold.
LAST_BUCKET = 2.0**62


@merged
def bucket_of(key, inverse):
    """Return the number of the bucket of a distance; it rises with the distance."""
    return np.int64(min(np.float64(key) * inverse, LAST_BUCKET))


@merged
def insert(heads, nexts, entry, key, base, inverse, far, least):
    """Insert an entry into near or far; return far, the least key in it, and whether the entry is in near."""
    place = bucket_of(key, inverse) - base
    is_near = place < SLOTS
    if is_near:
        nexts[entry] = heads[place]
        heads[place] = entry
    else:
        nexts[entry] = far
        far = entry
        least = min(least, key)
    return far, least, is_near


@merged
def take_entry(nexts, free, used):
    """Return an entry that is not in use, with the list of free ones and the number of entries ever used."""
    entry = free
    if free == NONE:
        entry = np.int64(used)
        used += 1
    else:
        free = np.int64(nexts[entry])
    return entry, free, used


@inline
def deal_far(dist, heads, keys, vertices, nexts, inverse, far, least, free):
    """Begin near at the least key in far, and insert all entries of far anew.

    Return the number of the first bucket, how many entries are in near, far, the least key in it, and the list of free
    entries.
    """
    base = bucket_of(least, inverse)
    num_near = 0
    entry = far
    far = np.int64(NONE)
    least = top_of(dist)
    while entry != NONE:
        following = np.int64(nexts[entry])
        key = keys[entry]
        if key == dist[vertices[entry]]:
            far, least, is_near = insert(heads, nexts, entry, key, base, inverse, far, least)
            num_near += is_near
        else:
            nexts[entry] = free
            free = entry
        entry = following
    return base, num_near, far, least, free


@inline
def count_settled(until, dist, inverse, bucket, num_settled):
    """Return how many of the first vertices of `until` are nearer than a bucket: at least `num_settled`."""
    while num_settled < len(until):
        key = dist[until[num_settled]]
        if key == top_of(dist) or bucket_of(key, inverse) >= bucket:
            break
        num_settled += 1
    return num_settled


@merged
def begin_buckets(start, dist, heads, keys, vertices, nexts, found):
    """Set the distance of the start, and insert the first entry into near."""
    heads[:] = NONE
    dist[start] = 0
    found[0] = start
    keys[0] = 0
    vertices[0] = start
    nexts[0] = NONE
    heads[0] = 0


@inline
def settle_buckets(
    indptr, targets, weights, start, until, min_degree, inverse, limit, dist, heads, keys, vertices, nexts, found
):
    """Find the distances from `start`, at least those of `until` if there are any; return the number of vertices found.

    `found` lists them. Vertices of less than `min_degree` arcs have none to be relaxed.
    """
    begin_buckets(start, dist, heads, keys, vertices, nexts, found)
    base = slot = scanned = np.int64(0)
    far = free = np.int64(NONE)
    least = top_of(dist)
    num_near = num_found = used = 1
    num_settled = 0
    while num_near > 0 or far != NONE:
        if num_near == 0:
            base, num_near, far, least, free = deal_far(dist, heads, keys, vertices, nexts, inverse, far, least, free)
            slot = np.int64(0)
            continue
        if heads[slot] == NONE:
            while heads[slot] == NONE:
                slot += 1
            num_settled = count_settled(until, dist, inverse, base + slot, num_settled)
            if 0 < num_settled == len(until):
                break
        entry = np.int64(heads[slot])
        heads[slot] = nexts[entry]
        num_near -= 1
        d = keys[entry]
        u = np.int64(vertices[entry])
        nexts[entry] = free
        free = entry
        if d != dist[u]:
            continue
        begin, end = arcs_of(indptr, u)
        scanned += end - begin
        # A vertex relaxed needs an entry for each arc, at most.
        if scanned > MAX_RESCANS * len(targets) or used + end - begin > len(keys):
            return GIVEN_UP
        for i in range(begin, end):
            v = targets[i]
            through = dist.dtype.type(d + dist.dtype.type(weights[i]))
            before = dist[v]
            if through >= before or through > limit:
                continue
            dist[v] = through
            if before == top_of(dist):
                found[num_found] = v
                num_found += 1
            first, last = arcs_of(indptr, v)
            if last - first >= min_degree:
                prefetch_arcs(targets, weights, first)
                entry, free, used = take_entry(nexts, free, used)
                keys[entry] = through
                vertices[entry] = v
                far, least, is_near = insert(heads, nexts, entry, through, base, inverse, far, least)
                num_near += is_near
    return num_found


@inline
def settle_by_queue(indptr, targets, weights, start, until, min_degree, limit, dist, keys, vertices, nexts):
    """Find the distances from `start` by Dijkstra's algorithm; the arrays from `keys` on have a queue's length."""
    far_keys = np.empty_like(keys)
    far_vertices = np.empty_like(vertices)
    state = np.empty(NUM_SEARCH_WORDS, np.int64)
    parents = np.empty(len(dist), vertices.dtype)
    dist[:] = top_of(dist)
    dist[start] = 0
    waiting = np.empty(1, vertices.dtype)
    waiting[0] = start
    begin_queue(far_keys, far_vertices, nexts, state, waiting, dist)
    state[MAX_SIZE] = len(keys)
    state[MIN_DEGREE] = min_degree
    state[MAX_SCANNED] = np.iinfo(np.int64).max
    settle_nearest(
        keys, vertices, far_keys, far_vertices, nexts, state, indptr, targets, weights, limit, until, dist, parents,
        parents[:0],
    )  # fmt: skip


@inline
def search_sources(
    lo, hi, indptr, targets, weights, starts, until, has_columns, min_degree, capacity, inverse, limit, rows
):
    """Write the distances from starts[lo..hi] to the vertices `until`, or to all without columns, to rows lo..hi."""
    n = len(indptr) - 1
    heads = np.empty(SLOTS, np.int64)
    keys = np.empty(capacity, rows.dtype)
    vertices = np.empty(capacity, targets.dtype)
    nexts = np.empty(capacity, np.int64)
    found = np.empty(n, targets.dtype)
    dist = np.empty(n if has_columns else 0, rows.dtype)
    dist[:] = top_of(rows)
    for i in range(lo, hi):
        if not has_columns:
            dist = rows[i]
            dist[:] = top_of(rows)
        num_found = settle_buckets(
            indptr, targets, weights, starts[i], until, min_degree, inverse, limit, dist, heads, keys, vertices, nexts,
            found,
        )  # fmt: skip
        if num_found == GIVEN_UP:
            settle_by_queue(indptr, targets, weights, starts[i], until, min_degree, limit, dist, keys, vertices, nexts)
        if has_columns:
            for k in range(len(until)):
                rows[i, k] = dist[until[k]]
            if num_found == GIVEN_UP:
                dist[:] = top_of(rows)
            # Only what was found is reset.
            for k in range(num_found):
                dist[found[k]] = top_of(rows)


@inline
def search_levels(lo, hi, indptr, targets, starts, until, has_columns, limit, rows):
    """Write the hops from starts[lo..hi] to the vertices `until`, or to all without columns, to rows lo..hi.

    Whether a vertex is new can hardly be predicted: each target is appended, and the next one overwrites it unless it
    is new.
    """
    n = len(indptr) - 1
    top = top_of(rows)
    found = np.empty(n + 1, targets.dtype)
    level = np.empty(n if has_columns else 0, rows.dtype)
    level[:] = top
    for i in range(lo, hi):
        if not has_columns:
            level = rows[i]
            level[:] = top
        level[starts[i]] = 0
        found[0] = starts[i]
        num_found = np.int64(1)
        num_settled = 0
        k = np.int64(0)
        here = rows.dtype.type(0)
        while k < num_found and here < limit:
            if has_columns:
                while num_settled < len(until) and level[until[num_settled]] != top:
                    num_settled += 1
                if num_settled == len(until):
                    break
            end = num_found
            here = rows.dtype.type(here + 1)
            for j in range(k, end):
                u = np.int64(found[j])
                for arc in range(indptr[u], indptr[u + 1]):
                    v = targets[arc]
                    before = level[v]
                    found[num_found] = v
                    num_found += np.int64(before == top)
                    level[v] = min(before, here)
            k = end
        if has_columns:
            for j in range(len(until)):
                rows[i, j] = level[until[j]]
            for j in range(num_found):
                level[found[j]] = top
