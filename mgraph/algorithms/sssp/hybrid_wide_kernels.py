"""Relax the arcs of a frontier by all cores of a CPU rank, without an atomic for an arc.

    every core: read arcs of its share of the frontier, and list candidates: an end, and its distance over the arc
    every core: lower the vertices of its parts by their candidates; list those lowered below the bound

A vertex belongs to one part, by position, and a part to one core. With atomic minima instead, the cache lines of the
distances would move from core to core with nearly every arc. Candidates lie in pages of one part each. Where these are
full, the rest of the frontier follows in a further round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import BUFFER, LIGHTEST_BITS, class_edge, flush, hold
from mgraph.backends.numba_prefetch import prefetch

# Counters: vertices listed below the bound; pages in use; candidates for which room is reserved; vertices of the
# frontier that are taken; cores that stopped without room. Sums over all rounds: arcs, and the lengths of the rows.
NEAR, PAGES, RESERVED, TAKEN, STOPPED, ARCS, ROW_ARCS = range(7)
NUM_COUNTERS = 7
ONE = np.uint64(1)
# Vertices that follow one another and are of one part: some cache lines of every array of vertices, of which only those
# at an end may be of two parts.
PART_BITS = np.uint64(6)
# Candidates of a page.
PAGE_BITS = np.uint64(7)
PAGE = 1 << 7
LENGTH_BITS = 32
LENGTH_MASK = (1 << LENGTH_BITS) - 1
# Arcs in the staging buffer of a core, for which pages must have room. The distances at their ends are loaded before
# any candidate is written: the place of a candidate depends on the comparison before it, and would delay each load.
STAGED = 1 << 10
# How many vertices ahead in the frontier the start of a row is prefetched, its first arcs, and distances at their ends.
START_AHEAD = 16
ROW_AHEAD = 8
ENDS_AHEAD = 4
NUM_ENDS = 4
# How many candidates ahead the distance is prefetched that they may lower.
LOWER_AHEAD = np.uint64(16)


class Arcs(NamedTuple):
    """The rows of a graph, and their lightest arcs by class of weight (shard/lightest_arcs.py)."""

    indptr: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    lightest_targets: np.ndarray
    lightest_weights: np.ndarray
    scale: float


class TakenRows(NamedTuple):
    """By core, rows that it has taken from the frontier, with the distances from which they lead.

    The arcs are begins .. ends of the lightest ones, or of all. `spans` are the first row that is not done, and how
    many there are.
    """

    spans: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    are_lightest: np.ndarray
    distances: np.ndarray


class Candidates(NamedTuple):
    """Ends and distances in pages; of each page the part, above its length.

    `capacity` is how many there may be: more pages are only for those that are not full.
    """

    pages: np.ndarray
    ends: np.ndarray
    distances: np.ndarray
    capacity: int


@inline
def list_candidates(
    lo, hi, frontier, chunk, taken, arcs, only_light, limits, dist, queued, parts, candidates, counters
):
    """List candidates of what is left of the frontier, as cores lo..hi, until all is taken or there is no room.

    `limits` are the bound and the largest distance of a candidate. Only arcs that are light enough for the bound are
    read, if `only_light`.
    """
    if not has_room(candidates.capacity, counters):
        return
    staged = np.empty(STAGED, frontier.dtype), np.empty(STAGED, dist.dtype), np.empty(STAGED, dist.dtype)
    # The page of each part that this core fills, and its length.
    open_pages = np.empty(parts, np.uint64), np.zeros(parts, np.int64)
    for part in range(parts):
        open_pages[0][part] = np.uint64(atomic_add(counters, PAGES, 1)) << PAGE_BITS
    num_staged = 0
    for core in range(lo, hi):
        rows = taken.begins[core], taken.ends[core], taken.are_lightest[core], taken.distances[core]
        while num_staged >= 0:
            row, num_rows = taken.spans[core]
            if row == num_rows:
                first = min(atomic_add(counters, TAKEN, chunk), len(frontier))
                row = 0
                num_rows = min(chunk, len(frontier) - first)
                if num_rows == 0:
                    break
                take_rows(frontier, first, num_rows, arcs, only_light, limits[0], dist, queued, rows, counters)
            row, num_staged = stage_rows(
                row, num_rows, rows, arcs, num_staged, staged, limits[1], dist, parts, open_pages, candidates, counters
            )
            taken.spans[core] = row, num_rows
    if num_staged > 0:
        sort_staged(num_staged, staged, limits[1], dist, parts, open_pages, candidates, counters)
    for part in range(parts):
        page = open_pages[0][part] >> PAGE_BITS
        candidates.pages[page] = part << LENGTH_BITS | open_pages[1][part]


@inline
def has_room(capacity, counters):
    """Return whether there is room for as many candidates as a core stages; if not, count the core as stopped."""
    if atomic_add(counters, RESERVED, STAGED) + STAGED <= capacity:
        return True
    atomic_add(counters, STOPPED, 1)
    return False


@inline
def take_rows(frontier, first, num_rows, arcs, only_light, bound, dist, queued, rows, counters):
    """Look up the rows of a part of the frontier; what lowers one of its vertices from now on queues it again."""
    indptr, _, _, lightest_targets, lightest_weights, scale = arcs
    begins, ends, are_lightest, distances = rows
    last_lightest = np.uint64(len(lightest_targets)) - ONE
    num_arcs = row_arcs = np.int64(0)
    for row in range(num_rows):
        k = np.uint64(first + row)
        if k + START_AHEAD < len(frontier):
            prefetch(indptr, frontier[k + START_AHEAD])
            prefetch(dist, frontier[k + START_AHEAD])
            if only_light and len(lightest_targets) > 0:
                i = np.uint64(indptr[np.uint64(frontier[k + ROW_AHEAD])]) >> np.uint64(LIGHTEST_BITS)
                prefetch(lightest_targets, i)
                prefetch(lightest_weights, i)
                i = np.uint64(indptr[np.uint64(frontier[k + ENDS_AHEAD])]) >> np.uint64(LIGHTEST_BITS)
                for j in range(NUM_ENDS):
                    prefetch(dist, lightest_targets[min(i + np.uint64(j), last_lightest)])
        u = np.uint64(frontier[k])
        queued[u] = 0
        d = dist[u]
        begin = np.uint64(indptr[u])
        end = np.uint64(indptr[u + ONE])
        row_arcs += np.int64(end - begin)
        is_lightest = False
        if only_light:
            i = begin >> np.uint64(LIGHTEST_BITS)
            last = end >> np.uint64(LIGHTEST_BITS)
            edge = class_edge(bound - d, scale)
            # If the last of the lightest is light, further arcs of the row may be; if not, it ends the loop.
            if i < last and np.float64(lightest_weights[last - ONE]) * scale >= edge:
                is_lightest = True
                begin = i
                while np.float64(lightest_weights[i]) * scale < edge:
                    i += ONE
                end = i
        begins[row] = begin
        ends[row] = end
        are_lightest[row] = is_lightest
        distances[row] = d
        num_arcs += np.int64(end - begin)
    atomic_add(counters, ARCS, num_arcs)
    atomic_add(counters, ROW_ARCS, row_arcs)


@inline
def stage_rows(
    row, num_rows, rows, arcs, num_staged, staged, limit, dist, parts, open_pages, candidates, counters
):  # fmt: skip
    """Read rows from `row` on, and sort the staged arcs whenever they are many.

    Return the row that is next, and how many arcs are staged; -1 if pages have no room.
    """
    _, targets, weights, lightest_targets, lightest_weights, _ = arcs
    begins, ends, are_lightest, distances = rows
    staged_ends, through, _ = staged
    for k in range(row, num_rows):
        i = np.uint64(begins[k])
        end = np.uint64(ends[k])
        d = distances[k]
        while i < end:
            if num_staged == STAGED:
                sort_staged(num_staged, staged, limit, dist, parts, open_pages, candidates, counters)
                num_staged = 0
                if not has_room(candidates.capacity, counters):
                    begins[k] = i
                    return k, -1
            count = min(end - i, np.uint64(STAGED - num_staged))
            place = np.uint64(num_staged)
            if are_lightest[k]:
                for j in range(count):
                    staged_ends[place + j] = lightest_targets[i + j]
                    through[place + j] = d + through.dtype.type(lightest_weights[i + j])
            else:
                for j in range(count):
                    staged_ends[place + j] = targets[i + j]
                    through[place + j] = d + through.dtype.type(weights[i + j])
            i += count
            num_staged += np.int64(count)
    return num_rows, num_staged


@inline
def sort_staged(num_staged, staged, limit, dist, parts, open_pages, candidates, counters):
    """Add those of the staged arcs that lower their ends to the pages of the parts.

    A candidate is written in any case, and stays if the page's length grows: a branch would be mispredicted.
    """
    staged_ends, through, before = staged
    pages, ends, distances, _ = candidates
    page_of, length = open_pages
    for i in range(np.uint64(num_staged)):
        before[i] = dist[np.uint64(staged_ends[i])]
    for i in range(np.uint64(num_staged)):
        v = np.uint64(staged_ends[i])
        part = (v >> PART_BITS) & np.uint64(parts - 1)
        size = length[part]
        place = page_of[part] + np.uint64(size)
        ends[place] = v
        distances[place] = through[i]
        size += (through[i] <= limit) & (through[i] < before[i])
        length[part] = size
        if size == PAGE:
            pages[page_of[part] >> PAGE_BITS] = np.int64(part) << LENGTH_BITS | PAGE
            page_of[part] = np.uint64(atomic_add(counters, PAGES, 1)) << PAGE_BITS
            length[part] = 0


@inline
def lower_parts(lo, hi, num_pages, candidates, bound, dist, queued, near, lowest, counters):
    """Lower the vertices of parts lo..hi; list those below the bound, once each, and lower `lowest` to the others."""
    pages, ends, distances, _ = candidates
    buffer = np.empty(BUFFER, near.dtype)
    size = 0
    best = lowest[0]
    for part in range(lo, hi):
        for page in range(num_pages):
            if pages[page] >> LENGTH_BITS != part:
                continue
            begin = np.uint64(page) << PAGE_BITS
            for i in range(begin, begin + np.uint64(pages[page] & LENGTH_MASK)):
                prefetch(dist, ends[i + LOWER_AHEAD])
                prefetch(queued, ends[i + LOWER_AHEAD])
                v = np.uint64(ends[i])
                through = distances[i]
                if through >= dist[v]:
                    continue
                dist[v] = through
                if through >= bound:
                    best = min(best, through)
                elif queued[v] == 0:
                    queued[v] = 1
                    size = hold(buffer, size, v, near, counters)
    flush(buffer, size, near, counters)
    atomic_min(lowest, 0, best)
