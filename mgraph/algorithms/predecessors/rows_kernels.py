"""Who explains a distance: the first arc, by position of its source, over which it comes out exactly.

Few arcs begin at vertices before the `core`, a distance in an array, None or 0 where there is none. These are offered
along: behind them what is lighter than the way from the core is all that can explain a distance.

Distances stand in a replicated array by state index; rows are those by target, in order of position.
Where `weights` is None every arc counts as 1, as levels do.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import class_edge, position_of, state_of, top_of

# As in the CUDA file: rows of more arcs are a warp's work, and of so many a block's.
SHORT_ROW, LONG_ROW = 64, 1024
# And of a row that stands by weight at most one arc in so many is looked at, or none if it has no offer.
LIGHT_SHARE = 4


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_nearer(
    lo,
    hi,
    indptr,
    targets,
    weights,
    long_rows,
    dist,
    digests,
    core,
    base,
    stride,
    multiplier,
    parents,
    counters,
):
    """Find for every vertex the first nearer one that explains its distance; count those with none.

    A vertex not reached is explained by nothing. Sources have their parent already, and so have others that were looked
    at or offered one; where there is a core, those with short rows are looked at all the same. Before `long_rows` stand
    those worth a block of threads; `digests` are the last bytes of the distances, or None.
    """
    none = np.iinfo(parents.dtype).max
    unexplained = 0
    top, begins = top_of(dist), dist.dtype.type(0) if core is None else core[0]
    for v in range(lo, hi):
        own, offered = dist[base + v], parents[v]
        is_short = indptr[v + 1] - indptr[v] <= SHORT_ROW
        if own == top or (offered != none and not (0 < begins < own and is_short)):
            continue
        unexplained += offered == none
        room = dist.dtype.type(own - begins if own > begins else 0)
        for i in range(indptr[v], indptr[v + 1]):
            weight = dist.dtype.type(1) if weights is None else dist.dtype.type(weights[i])
            # What is longer than the way from the core is no part of it; its start is not looked up.
            if room < weight:
                continue
            if digests is not None and digests[targets[i]] != np.uint8(own - weight):
                continue
            near = dist[targets[i]]
            if near < own and dist.dtype.type(near + weight) == own:
                parents[v] = min(offered, position_of(targets[i], stride, multiplier))
                unexplained -= offered == none
                break
    atomic_add(counters, 0, unexplained)


@kernel(dist_t="dist")
def find_core(lo, hi, step, dist, stride, multiplier, core):
    """Lower the core to the nearest of the first vertices by position, or of every so many."""
    for i in range(lo, hi):
        atomic_min(core, 0, dist[state_of(i * step, stride, multiplier)])


@kernel(lanes=32, block=256, vertex_t="targets", weight_t="weights", dist_t="dist")
def offer_early(lo, hi, indptr, targets, weights, dist, core, base, stride, multiplier, most, offers):
    """List the arcs out of what lies before the core that explain a distance: whose that is, and the arc's source.

    No more than `most` pairs are written down, behind one that counts all of them, and is 0 before.
    """
    top = top_of(dist)
    for u in range(lo, hi):
        own = dist[base + u]
        if own >= core[0]:
            continue
        for i in range(indptr[u], indptr[u + 1]):
            far = dist[targets[i]]
            if far > own and far != top and dist.dtype.type(own + dist.dtype.type(weights[i])) == far:
                place = 1 + atomic_add(offers, 0, 1)
                if place <= most:
                    offers[2 * place] = targets[i]
                    offers[2 * place + 1] = position_of(base + u, stride, multiplier)


@kernel(vertex_t="offers", dist_t="core")
def take_offers(lo, hi, offers, most, num_ranks, base, num_owned, parents, core):
    """Let every vertex that is owned here take the first of those offered to it.

    The ranks' offers follow each other, of each a pair that counts them and up to `most` more. If they are more on any,
    nobody takes one, and the core is none.
    """
    for r in range(num_ranks):
        if offers[2 * (most + 1) * r] > most:
            core[0] = 0
            return
    for i in range(lo, hi):
        count = 2 * (most + 1) * (i // most)
        offer = count + 2 * (1 + i % most)
        v = offers[offer] - base
        if i % most < offers[count] and 0 <= v < num_owned:
            atomic_min(parents, v, offers[offer + 1])


@kernel(dist_t="dist")
def digest_distances(lo, hi, dist, digests):
    """Take the last byte of every distance: a table of these stays in a cache where the distances do not."""
    for v in range(lo, hi):
        digests[v] = np.uint8(dist[v])


@kernel(lanes=32, block=256, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_nearer_by_weight(
    lo, hi, falling, indptr, targets, weights, scale, dist, core, base, stride, multiplier, parents
):
    """Find the same for long rows where rows stand by weight: most of their arcs are too heavy to look at.

    What has none stays open for find_nearer, which counts it, and so does what has too many light arcs, and no offer.
    `falling` says whether hardly a row is longer than the one before; without a core those that are may stay open.
    """
    none = np.iinfo(parents.dtype).max
    top, begins = top_of(dist), dist.dtype.type(0) if core is None else core[0]
    for v in range(lo, hi):
        own, begin, end = dist[base + v], indptr[v], indptr[v + 1]
        if end - begin <= SHORT_ROW or own == top or own <= begins:
            continue
        parent, last = parents[v], begin
        room = dist.dtype.type(own - begins)
        edge = class_edge(room, scale)
        while last < end and np.float64(weights[last]) * scale < edge:
            last += 1
        if last - begin > (end - begin) // LIGHT_SHARE and parent == none:
            continue
        for i in range(begin, last):
            weight = dist.dtype.type(weights[i])
            if room < weight:
                continue
            near = dist[targets[i]]
            if near < own and dist.dtype.type(near + weight) == own:
                parent = min(parent, position_of(targets[i], stride, multiplier))
        parents[v] = parent


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights", dist_t="dist")
def find_equal(lo, hi, indptr, targets, weights, dist, hops, base, stride, multiplier, parents, new_hops, counters):
    """Find for every vertex still without one the first, equally far, that was explained a hop before.

    These are vertices reached over weight zero, or over a weight that rounding absorbed. `hops` is a
    replicated byte per vertex, 1 where it was explained before this round; `new_hops` is its own slice.
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
