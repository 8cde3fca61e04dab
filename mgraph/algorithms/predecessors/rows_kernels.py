"""Find the arc that explains each distance: the first, by position of its source, that sums to it.

Few arcs leave vertices below the dense-region `threshold`, a distance in an array, None or 0 where there is none. These
push their candidates: above it only arcs lighter than the way from the threshold can explain a distance.

Distances are in a replicated array by state index; rows are those by target, in order of position. Where `weights` is
None every arc counts as 1, as levels do.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import (
    LIGHTEST_BITS,
    class_edge,
    light_end,
    position_of,
    state_of,
    top_of,
)

# As in the CUDA file: rows of more arcs are scanned by a warp, and of at least BLOCK_ROW by a thread block.
LANE_ROW = 64
BLOCK_ROW = 1024
# Arcs that a CPU tests before it branches on whether one of them explains the distance.
GROUP = 32


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_nearer(
    lo,
    hi,
    indptr,
    targets,
    weights,
    long_rows,
    dist,
    low_bytes,
    threshold,
    base,
    stride,
    multiplier,
    parents,
    counters,
):
    """Find for every vertex the first nearer one that explains its distance; count those without.

    An unreached vertex is explained by nothing. Sources have their parent already, and so have vertices that an earlier
    kernel found one or a candidate for; with a threshold, those with short rows are scanned all the same. Rows worth a
    thread block lie before `long_rows`; `low_bytes` are the last bytes of the distances, or None.
    """
    none = np.iinfo(parents.dtype).max
    unexplained = 0
    top = top_of(dist)
    dense_begin = dist.dtype.type(0) if threshold is None else threshold[0]
    for v in range(lo, hi):
        own = dist[base + v]
        candidate = parents[v]
        is_short = indptr[v + 1] - indptr[v] <= LANE_ROW
        if own == top or (candidate != none and not (0 < dense_begin < own and is_short)):
            continue
        unexplained += candidate == none
        max_weight = dist.dtype.type(own - dense_begin if own > dense_begin else 0)
        end = indptr[v + 1]
        i = first_explaining(indptr[v], end, targets, weights, own, max_weight, dist, low_bytes)
        if i < end:
            parents[v] = min(candidate, position_of(targets[i], stride, multiplier))
            unexplained -= candidate == none
    atomic_add(counters, 0, unexplained)


@kernel(dist_t="dist")
def find_core(lo, hi, step, dist, stride, multiplier, threshold):
    """Lower the threshold to the least distance of the first vertices by position, or of every `step`-th."""
    for i in range(lo, hi):
        atomic_min(threshold, 0, dist[state_of(i * step, stride, multiplier)])


@kernel(lanes=32, block=256, vertex_t="targets", weight_t="weights", dist_t="dist")
def offer_early(lo, hi, indptr, targets, weights, dist, threshold, base, stride, multiplier, capacity, candidates):
    """List the arcs out of vertices below the threshold that explain a distance: target and source.

    No more than `capacity` pairs are written, behind one that counts all of them, and is 0 before.
    """
    top = top_of(dist)
    for u in range(lo, hi):
        own = dist[base + u]
        if own >= threshold[0]:
            continue
        for i in range(indptr[u], indptr[u + 1]):
            far = dist[targets[i]]
            if far > own and far != top and dist.dtype.type(own + dist.dtype.type(weights[i])) == far:
                place = 1 + atomic_add(candidates, 0, 1)
                if place <= capacity:
                    candidates[2 * place] = targets[i]
                    candidates[2 * place + 1] = position_of(base + u, stride, multiplier)


@kernel(vertex_t="candidates", dist_t="threshold")
def take_offers(lo, hi, candidates, capacity, num_ranks, base, num_owned, parents, threshold):
    """Merge all ranks' candidates for the vertices that are owned here.

    Each rank has a pair that counts its candidates, and up to `capacity` more. If any rank has more, none is used, and
    the threshold becomes 0, none.
    """
    for r in range(num_ranks):
        if candidates[2 * (capacity + 1) * r] > capacity:
            threshold[0] = 0
            return
    for i in range(lo, hi):
        count = 2 * (capacity + 1) * (i // capacity)
        candidate = count + 2 * (1 + i % capacity)
        v = candidates[candidate] - base
        if i % capacity < candidates[count] and 0 <= v < num_owned:
            atomic_min(parents, v, candidates[candidate + 1])


@kernel(dist_t="dist")
def digest_distances(lo, hi, dist, low_bytes):
    """Write the last byte of every distance: this table fits a cache where the distances do not."""
    for v in range(lo, hi):
        low_bytes[v] = np.uint8(dist[v])


@kernel(lanes=32, block=256, vertex_t="lightest_targets", weight_t="lightest_weights", dist_t="dist")
def find_nearer_by_weight(
    lo, hi, falling, indptr, lightest_targets, lightest_weights, scale, dist, threshold, base, stride, multiplier,
    parents,
):  # fmt: skip
    """Find parents among the lightest arcs of long rows: most other arcs are too heavy to explain a distance.

    A row is left out if all of its lightest arcs are light, as further ones may be: where it has a candidate it is
    searched by find_before_candidates, else by find_nearer. Vertices without a parent are counted by find_nearer.
    `falling` says that hardly a row is longer than the one before; without a threshold those that are may be left out.
    """
    none = parents.dtype.type(np.iinfo(parents.dtype).max)
    top = top_of(dist)
    dense_begin = dist.dtype.type(0) if threshold is None else threshold[0]
    for v in range(lo, hi):
        own = dist[base + v]
        if indptr[v + 1] - indptr[v] <= LANE_ROW or own == top or own <= dense_begin:
            continue
        max_weight = dist.dtype.type(own - dense_begin)
        begin = indptr[v] >> LIGHTEST_BITS
        end = indptr[v + 1] >> LIGHTEST_BITS
        light = light_end(lightest_weights, begin, end, scale, class_edge(max_weight, scale))
        if light == end:
            continue
        first = none
        for i in range(np.uint64(begin), np.uint64(light)):
            u = np.uint64(lightest_targets[i])
            weight = dist.dtype.type(lightest_weights[i])
            near = dist[u]
            explains = (weight <= max_weight) & (near < own) & (dist.dtype.type(near + weight) == own)
            position = parents.dtype.type(position_of(u, stride, multiplier))
            first = min(first, position if explains else none)
        parents[v] = min(parents[v], first)


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_before_candidates(
    lo, hi, indptr, targets, weights, lightest_weights, scale, dist, threshold, base, stride, multiplier, parents
):
    """Search long rows for a parent before their candidate, if find_nearer_by_weight leaves them out.

    It leaves out a row if all of its lightest arcs are light, and every row of a rank without lightest arcs.
    find_nearer leaves out long rows that have a candidate.
    """
    none = np.iinfo(parents.dtype).max
    top = top_of(dist)
    dense_begin = threshold[0]
    for v in range(lo, hi):
        own = dist[base + v]
        begin = indptr[v]
        end = indptr[v + 1]
        if end - begin <= LANE_ROW or own == top or not 0 < dense_begin < own or parents[v] == none:
            continue
        max_weight = dist.dtype.type(own - dense_begin)
        if lightest_weights is not None:
            last = end >> LIGHTEST_BITS
            edge = class_edge(max_weight, scale)
            if light_end(lightest_weights, begin >> LIGHTEST_BITS, last, scale, edge) < last:
                continue
        i = first_explaining(begin, end, targets, weights, own, max_weight, dist, None)
        if i < end:
            parents[v] = min(parents[v], position_of(targets[i], stride, multiplier))


@inline
def first_explaining(begin, end, targets, weights, own, max_weight, dist, low_bytes):
    """Return the first of the arcs begin..end that explains the distance `own`; `end` if none does.

    An arc longer than the way from the threshold is no part of the path. A group of arcs is read to its end, without a
    branch at the first that explains the distance: it would be mispredicted.
    """
    while begin < end:
        first = np.uint64(begin)
        count = min(end - begin, GROUP)
        hit = np.uint32(GROUP)
        for k in range(np.uint64(count)):
            u = np.uint64(targets[first + k])
            weight = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[first + k])
            if low_bytes is not None and low_bytes[u] != np.uint8(own - weight):
                continue
            near = dist[u]
            explains = (weight <= max_weight) & (near < own) & (dist.dtype.type(near + weight) == own)
            hit = min(hit, np.uint32(k) if explains else np.uint32(GROUP))
        if hit < GROUP:
            return begin + hit
        begin += count
    return end


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_equal(lo, hi, indptr, targets, weights, dist, hops, base, stride, multiplier, parents, new_hops, counters):
    """Find for every open vertex the first, equally far, that was explained a hop before.

    These are vertices reached over weight zero, or over a weight that rounding absorbed. `hops` is a replicated byte
    per vertex, 1 where it was explained before this round; `new_hops` is its own slice.
    """
    none = np.iinfo(parents.dtype).max
    found = 0
    top = top_of(dist)
    for v in range(lo, hi):
        own = dist[base + v]
        if parents[v] != none or own == top:
            continue
        for i in range(indptr[v], indptr[v + 1]):
            u = targets[i]
            weight = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[i])
            if hops[u] and dist[u] == own and dist.dtype.type(own + weight) == own:
                parents[v] = position_of(u, stride, multiplier)
                new_hops[v] = 1
                found += 1
                break
    atomic_add(counters, 0, found)
