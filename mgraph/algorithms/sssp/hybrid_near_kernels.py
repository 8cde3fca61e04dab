"""Near before far by one core: a queue of the vertices below a bound, and a list of all others that wait.

    while vertices wait:
        near, first in first out: relax the arcs of a vertex; what is lowered waits again, below the bound in near
        where near is empty, all below the bound is settled: raise it by the width of a bucket, and scan far

A vertex may be relaxed more than once. While that is rare it takes less time than an exact order (hybrid_kernels.py).
So a bucket is halved once many of its vertices are relaxed again, and the next one is twice as wide where the scan of
far took longer than the bucket. Where that does not help, or too many vertices wait, the loop returns. Once all targets
of a search are reached, no bucket goes beyond the farthest of them.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.sssp.hybrid_kernels import lower_over_arc
from mgraph.backends.kernel import inline
from mgraph.backends.numba_helpers import arcs_of, next_of, top_of
from mgraph.backends.numba_prefetch import prefetch, prefetch_arcs

# The state of a search between calls of `settle_near`: the ends of near, which is circular, and of far; vertices found,
# their arcs, arcs scanned, and how often a vertex was lowered over an arc that leads no farther; vertices relaxed in
# this bucket, and those relaxed again; entries of far that were scanned.
HEAD, TAIL, NUM_FAR, FOUND, FOUND_ARCS, SCANNED, AS_FAR, RELAXED, REPEATED, FAR_SCANNED = range(10)
# Its parameters: the most vertices that may wait; the least degree of a vertex that waits (of a lower degree it leads
# nowhere, or only back); the arcs, with entries of far, after which the loop pauses; by how many of these it may exceed
# twice the arcs of all found vertices before it is wasteful. Its result: why it returned.
WAITING_LIMIT, MIN_WAITING_DEGREE, PAUSE_LIMIT, WASTE_LIMIT, REASON = range(10, 15)
NUM_WORDS = 15
ENDED, PAUSED, TOO_WIDE, WASTEFUL = range(4)
# Where a vertex waits.
NOWHERE, IN_NEAR, IN_FAR = range(3)
# Where a bucket begins and ends, and its width.
START, BOUND, WIDTH = range(3)
# A bucket is halved once more than 1 / REPEATED_SHARE of the vertices relaxed in it were relaxed again; the slack keeps
# the first few repetitions from deciding.
REPEATED_SHARE = 6
REPEATED_SLACK = 64
# Raising the bound costs as much as relaxing this many vertices.
RAISE_VERTICES = 16
# Buckets are not widened until this many entries of far were scanned, which takes a microsecond: from a source among
# hubs they soon have more vertices by themselves, and a search of few vertices ends before.
CHEAP_SCANS = 1 << 10
# Arcs after which a bucket is narrowed if all targets of the search are reached by then.
ARCS_PER_CHECK = 1 << 10
# How many entries ahead in near a vertex has its first arcs prefetched, and then the distances at their ends.
ONE = np.uint64(1)
ENDS_AHEAD = np.uint64(3)
ARCS_AHEAD = np.uint64(8)


@inline
def bound_of(bounds, dist):
    """Return the bound a width above the start; where rounding absorbs the width it is doubled."""
    top = top_of(dist)
    start = bounds[START]
    while dist.dtype.type(start + bounds[WIDTH]) <= start and bounds[WIDTH] < top - start:
        bounds[WIDTH] += bounds[WIDTH]
    return dist.dtype.type(start + bounds[WIDTH]) if bounds[WIDTH] < top - start else dist.dtype.type(top)


@inline
def drop_from_far(far, where, state):
    """Drop entries of vertices that no longer wait in far; then each that does has one entry."""
    left = 0
    for k in range(state[NUM_FAR]):
        v = far[k]
        if where[v] == IN_FAR:
            far[left] = v
            left += 1
    state[FAR_SCANNED] += state[NUM_FAR]
    state[NUM_FAR] = left


@inline
def narrow_bucket(near, far, where, state, bounds, dist, end):
    """Lower the bound to `end`, if that is below it, and move vertices of near beyond it to far."""
    if end >= bounds[BOUND]:
        return
    bounds[BOUND] = end
    drop_from_far(far, where, state)
    mask = len(near) - 1
    kept = state[HEAD]
    for i in range(state[HEAD], state[TAIL]):
        v = near[i & mask]
        if dist[v] < end:
            near[kept & mask] = v
            kept += 1
        else:
            where[v] = IN_FAR
            far[state[NUM_FAR]] = v
            state[NUM_FAR] += 1
    state[TAIL] = kept


@inline
def halve_bucket(near, far, where, state, bounds, dist):
    """Halve the bucket's width."""
    half = dist.dtype.type(bounds[WIDTH] / 2)
    bounds[WIDTH] = half if half > 0 else bounds[WIDTH]
    narrow_bucket(near, far, where, state, bounds, dist, bound_of(bounds, dist))
    state[RELAXED] = 0
    state[REPEATED] = 0


@inline
def end_of(until, dist):
    """Return the least bound at which all of `until` are settled; the bound of all vertices if some are not reached."""
    top = top_of(dist)
    farthest = dist.dtype.type(0)
    for k in range(len(until)):
        farthest = max(farthest, dist[until[k]])
        if farthest == top:
            return farthest
    return dist.dtype.type(next_of(dist, farthest)) if len(until) > 0 else dist.dtype.type(top)


@inline
def scan_far(near, far, where, state, bounds, dist, end):
    """Raise the bound where near is empty, move what is below it from far to near; return whether any vertex waits.

    The bound is at most `end`.
    """
    is_costly = state[NUM_FAR] + RAISE_VERTICES > state[RELAXED] and state[FAR_SCANNED] > CHEAP_SCANS
    drop_from_far(far, where, state)
    waiting = state[NUM_FAR]
    if waiting == 0:
        return False
    if is_costly and bounds[WIDTH] < top_of(dist) / 2:
        bounds[WIDTH] += bounds[WIDTH]
    least = dist.dtype.type(top_of(dist))
    for k in range(waiting):
        least = min(least, dist[far[k]])
    bounds[START] = least
    bounds[BOUND] = min(bound_of(bounds, dist), end)
    left = 0
    for k in range(waiting):
        v = far[k]
        if dist[v] < bounds[BOUND]:
            where[v] = IN_NEAR
            near[state[TAIL] & (len(near) - 1)] = v
            state[TAIL] += 1
        else:
            far[left] = v
            left += 1
    state[NUM_FAR] = left
    state[RELAXED] = 0
    state[REPEATED] = 0
    return True


@inline
def take_waiting(near, far, where, state):
    """Move all vertices that wait to far, and return their number; then all of `where` is NOWHERE."""
    drop_from_far(far, where, state)
    num_waiting = state[NUM_FAR]
    mask = len(near) - 1
    for i in range(state[HEAD], state[TAIL]):
        far[num_waiting] = near[i & mask]
        num_waiting += 1
    for k in range(num_waiting):
        where[far[k]] = NOWHERE
    return num_waiting


@inline
def begin_near(waiting, near, far, where, state, bounds, dist):
    """Begin with vertices that wait; all of `where` is NOWHERE."""
    for i in range(len(waiting)):
        far[i] = waiting[i]
        where[waiting[i]] = IN_FAR
    state[: FAR_SCANNED + 1] = 0
    state[NUM_FAR] = len(waiting)
    # The first scan of far must not widen the bucket.
    state[RELAXED] = len(dist) + RAISE_VERTICES
    scan_far(near, far, where, state, bounds, dist, dist.dtype.type(top_of(dist)))


@inline
def is_wasteful(scanned, found_arcs, limit):
    """Return whether too many arcs and entries of far were scanned for what was found."""
    return scanned > 2 * found_arcs + limit


@inline
def has_many_repeated(repeated, relaxed):
    """Return whether to halve the width: a bucket has relaxed too many vertices repeatedly."""
    return repeated * REPEATED_SHARE > relaxed + REPEATED_SLACK


@inline
def prefetch_ahead(near, head, mask, indptr, targets, weights, dist):
    """Prefetch the first arcs of a vertex ahead in near, and distances at the ends of those of a nearer one."""
    first = np.uint64(indptr[np.uint64(near[(head + ENDS_AHEAD) & mask])])
    # The last row may have one arc, or none; a branch would take a quarter of a search.
    last = np.uint64(len(targets)) - ONE
    prefetch(dist, targets[min(first, last)])
    prefetch(dist, targets[min(first + ONE, last)])
    prefetch_arcs(targets, weights, indptr[np.uint64(near[(head + ARCS_AHEAD) & mask])])


@inline
def relax_near(near, far, where, state, bounds, indptr, targets, weights, cutoff, pause, dist, parents, listed):
    """Relax the arcs of near until it is empty, `pause` are scanned, or too many wait or are relaxed again."""
    mask = np.uint64(len(near) - 1)
    # In registers: with all of them in the state a search takes a fifth longer.
    _, _, num_far, found, found_arcs, scanned, as_far, relaxed, repeated, far_scanned = state[: FAR_SCANNED + 1]
    waiting_limit, min_degree, _, waste_limit = state[WAITING_LIMIT : WASTE_LIMIT + 1]
    head = np.uint64(state[HEAD])
    tail = np.uint64(state[TAIL])
    bound = bounds[BOUND]
    ahead = ARCS_AHEAD if len(targets) > 0 else tail + mask
    while (
        head != tail
        and scanned + far_scanned <= pause
        and np.int64(tail - head) + num_far <= waiting_limit
        and not is_wasteful(scanned + far_scanned, found_arcs, waste_limit)
        and not has_many_repeated(repeated, relaxed)
    ):
        u = near[head & mask]
        head += ONE
        if tail - head > ahead:
            prefetch_ahead(near, head, mask, indptr, targets, weights, dist)
        where[u] = NOWHERE
        d = dist[u]
        begin, end = arcs_of(indptr, u)
        scanned += end - begin
        relaxed += 1
        for i in range(begin, end):
            v = targets[i]
            before, through = lower_over_arc(dist, parents, v, u, d, weights[i], cutoff)
            if through == before:
                continue
            as_far += d == through
            if before == top_of(dist):
                first_arc, last_arc = arcs_of(indptr, v)
                if found < len(listed):
                    listed[found] = v
                found += 1
                found_arcs += last_arc - first_arc
                if last_arc - first_arc < min_degree:
                    continue
            if through < bound and where[v] != IN_NEAR:
                # What was below the bound before, and is no longer in near, has been relaxed.
                repeated += before < bound
                where[v] = IN_NEAR
                near[tail & mask] = v
                tail += ONE
            elif through >= bound and where[v] == NOWHERE:
                where[v] = IN_FAR
                far[num_far] = v
                num_far += 1
    counts = np.int64(head), np.int64(tail), num_far, found, found_arcs, scanned, as_far, relaxed, repeated
    for k in range(len(counts)):
        state[k] = counts[k]


@inline
def settle_near(
    near, far, where, state, bounds, indptr, targets, weights, cutoff, until, dist, parents, listed
):  # fmt: skip
    """Settle buckets until no vertex waits or `until` are settled; REASON says why it returned.

    The predecessor is the first nearer vertex, by position, that explains a distance; none over an arc that leads no
    farther; without parents none at all. What is found is listed while there is room.
    """
    num_settled = 0
    state[REASON] = ENDED
    while state[REASON] == ENDED:
        left = len(until) - num_settled
        pause = state[PAUSE_LIMIT]
        if left > 0:
            pause = min(pause, state[SCANNED] + state[FAR_SCANNED] + ARCS_PER_CHECK + left)
        relax_near(near, far, where, state, bounds, indptr, targets, weights, cutoff, pause, dist, parents, listed)
        scanned = state[SCANNED] + state[FAR_SCANNED]
        if is_wasteful(scanned, state[FOUND_ARCS], state[WASTE_LIMIT]):
            state[REASON] = WASTEFUL
        elif state[HEAD] == state[TAIL]:
            while num_settled < len(until) and dist[until[num_settled]] < bounds[BOUND]:
                num_settled += 1
            if 0 < num_settled == len(until):
                break
            if not scan_far(near, far, where, state, bounds, dist, end_of(until[num_settled:], dist)):
                break
        elif has_many_repeated(state[REPEATED], state[RELAXED]):
            halve_bucket(near, far, where, state, bounds, dist)
        elif scanned > state[PAUSE_LIMIT]:
            state[REASON] = PAUSED
        elif left > 0 and scanned > pause:
            narrow_bucket(near, far, where, state, bounds, dist, end_of(until[num_settled:], dist))
        else:
            state[REASON] = TOO_WIDE
