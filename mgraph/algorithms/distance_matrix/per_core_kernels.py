"""Search from a source by one core, again and again: shortest paths near before far, and hops by a queue.

    every core, until all sources are taken:
        take the next source
        settle buckets as a search of one source does (mgraph/algorithms/sssp/hybrid_near_kernels.py)
        where that is wasteful: settle what waits by Dijkstra's algorithm (mgraph/algorithms/sssp/hybrid_kernels.py)
        copy the columns, and reset what was found

No predecessors are kept.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.sssp.hybrid_kernels import FOUND as FOUND_NEAREST
from mgraph.algorithms.sssp.hybrid_kernels import MAX_SCANNED, MAX_SIZE, MIN_DEGREE, NUM_SEARCH_WORDS, settle_nearest
from mgraph.algorithms.sssp.hybrid_near_kernels import (
    FOUND,
    MIN_WAITING_DEGREE,
    REASON,
    WASTE_LIMIT,
    WASTEFUL,
    WIDTH,
    begin_near,
    settle_near,
    take_waiting,
)
from mgraph.algorithms.sssp.radix_queue import begin_queue
from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import arcs_of, top_of


@inline
def settle_by_queue(queue, waiting, min_degree, indptr, targets, weights, limit, until, dist, listed):
    """Settle vertices that wait, and all behind them, one after the other; return the number of vertices found."""
    keys, vertices, far_keys, far_vertices, nexts = queue
    state = np.empty(NUM_SEARCH_WORDS, np.int64)
    begin_queue(far_keys, far_vertices, nexts, state, waiting, dist)
    state[MAX_SIZE] = len(keys)
    state[MIN_DEGREE] = min_degree
    state[MAX_SCANNED] = np.iinfo(np.int64).max
    settle_nearest(
        keys, vertices, far_keys, far_vertices, nexts, state, indptr, targets, weights, limit, until, dist, None, listed
    )
    return state[FOUND_NEAREST]


@inline
def search_source(
    start, near, far, where, state, bounds, queue, indptr, targets, weights, limit, until, dist, listed
):  # fmt: skip
    """Find the distances from `start`, at least those of `until` if there are any; return the number of vertices found.

    `listed` has the first of them. All of `where` is NOWHERE, before and after.
    """
    dist[start] = 0
    listed[0] = start
    begin_near(listed[:1], near, far, where, state, bounds, dist)
    settle_near(near, far, where, state, bounds, indptr, targets, weights, limit, until, dist, None, listed[1:])
    num_found = 1 + state[FOUND]
    num_waiting = take_waiting(near, far, where, state)
    if state[REASON] == WASTEFUL:
        num_found += settle_by_queue(
            queue, far[:num_waiting], state[MIN_WAITING_DEGREE], indptr, targets, weights, limit, until, dist,
            listed[num_found:],
        )  # fmt: skip
    return num_found


@inline
def search_sources(
    lo, hi, num_taken, indptr, targets, weights, starts, until, parameters, width, limit, work, queues, rows
):
    """Write distances to the vertices `until`, or to all without columns, to the rows of the sources that are taken.

    Cores lo..hi take them; each has a row of every array of `work` and `queues`. Without columns there are no distances
    in `work`. `parameters` are those of a search in its state.
    """
    nears, fars, lists, wheres, dists = work
    has_columns = dists.shape[1] > 0
    state = parameters.copy()
    bounds = np.zeros(WIDTH + 1, rows.dtype)
    for core in range(lo, hi):
        keys, vertices, far_keys, far_vertices, nexts = queues
        queue = keys[core], vertices[core], far_keys[core], far_vertices[core], nexts[core]
        listed = lists[core]
        while True:
            i = atomic_add(num_taken, 0, 1)
            if i >= len(starts):
                break
            dist = dists[core] if has_columns else rows[i]
            if not has_columns:
                dist[:] = top_of(rows)
            # The arcs found do not include those of the source.
            begin, end = arcs_of(indptr, starts[i])
            state[WASTE_LIMIT] = parameters[WASTE_LIMIT] + 2 * (end - begin)
            bounds[WIDTH] = width
            num_found = search_source(
                starts[i], nears[core], fars[core], wheres[core], state, bounds, queue, indptr, targets, weights, limit,
                until, dist, listed,
            )  # fmt: skip
            if has_columns:
                for k in range(len(until)):
                    rows[i, k] = dist[until[k]]
                if num_found > len(listed):
                    dist[:] = top_of(rows)
                else:
                    for k in range(num_found):
                        dist[listed[k]] = top_of(rows)


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
