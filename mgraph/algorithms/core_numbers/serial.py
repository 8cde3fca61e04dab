"""Find core numbers on one CPU rank vertex by vertex, by one core.

    sort the vertices by their arcs left; starts[k] = the place of the first one with k arcs
    for each vertex v, in this order, which changes meanwhile: its arcs left are its core number
        for each neighbor u with more arcs left:
            swap u with the first vertex of as many arcs, which from now on is no longer one of these
            u loses an arc

Each arc is scanned once, each vertex is moved in constant time, and there are no launches (Batagelj, Zaversnik): levels
of few vertices cost no more than others.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard, degrees
from mgraph.types import Array

# More threads peel faster together, by peeling.py, if levels are few: of graphs of more than MANY_ARCS arcs a vertex
# there are many. (On 16 cores of a Xeon one core takes a twelfth of the time on RMAT graphs, and 2 to 3 times as long
# on sparse random graphs of 2^20 vertices.)
MAX_SERIAL_THREADS = 8
MANY_ARCS = 6
# The compiled loop returns after this many arcs, a fraction of a second, so that an abort is noticed.
STEP_ARCS = 1 << 24


def find_core_numbers(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the core number of each owned vertex, as int64."""
    rows = [(shard.rows.indptr, shard.rows.targets)]
    left = shard.degrees
    if shard.info.directed:
        rows.append((shard.incoming.indptr, shard.incoming.targets))
        left = left + degrees(shard.incoming)
    size = len(left)
    starts = np.zeros(int(left.max(initial=0)) + 2, np.int64)
    places, vertices = (np.empty(size, shard.partition.dtype) for _ in range(2))
    sort_by_arcs(left, starts, vertices, places)
    done = 0
    while done < size:
        if shard.backend.stopped is not None:
            raise CommAborted(shard.backend.stopped)
        before = done
        done, arcs = peel_on(done, STEP_ARCS, *rows[0], *rows[-1], len(rows) > 1, left, starts, vertices, places)
        trace.superstep(method="serial", frontier=done - before, arcs=arcs)
    return left


@inline
def sort_by_arcs(left, starts, vertices, places):
    """Sort vertices by their arcs left; find the place of each, and where those of each number of arcs start."""
    for v in range(len(left)):
        starts[left[v] + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for v in range(len(left)):
        place = starts[left[v]]
        vertices[place] = v
        places[v] = place
        starts[left[v]] += 1
    for k in range(len(starts) - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@inline
def peel_on(done, most_arcs, indptr, targets, in_indptr, in_targets, both, left, starts, vertices, places):
    """Peel vertices from place `done` on, until all are or `most_arcs` arcs are scanned; return how many, and arcs."""
    scanned = 0
    while done < len(vertices) and scanned < most_arcs:
        v = np.uint64(vertices[done])
        scanned += _lose(indptr[v], indptr[v + np.uint64(1)], targets, left[v], left, starts, vertices, places)
        if both:
            begin = in_indptr[v]
            end = in_indptr[v + np.uint64(1)]
            scanned += _lose(begin, end, in_targets, left[v], left, starts, vertices, places)
        done += 1
    return done, scanned


@inline
def _lose(begin, end, targets, core, left, starts, vertices, places):
    """Take an arc from each target that has more than `core` left; return the arcs scanned."""
    for i in range(np.uint64(begin), np.uint64(end)):
        u = np.uint64(targets[i])
        arcs = left[u]
        if arcs > core:
            place = np.uint64(places[u])
            first = np.uint64(starts[np.uint64(arcs)])
            other = vertices[first]
            vertices[place] = other
            places[np.uint64(other)] = place
            vertices[first] = u
            places[u] = first
            starts[np.uint64(arcs)] += 1
            left[u] = arcs - 1
    return end - begin


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the arcs left, places and vertices; or of what translates them to user ids."""
    owned = sizes.owned
    search = (8 + 2 * sizes.vertex) * owned + (8 * owned if sizes.directed else 0)
    return max(search, 8 * owned + sizes.id_bytes * owned + 8 * sizes.users)


VARIANT = Variant(
    "core_numbers.serial",
    when=f"on one CPU rank, if it has at most {MAX_SERIAL_THREADS} threads or there are over {MANY_ARCS} arcs a vertex",
    applies=lambda conditions: (
        conditions.is_one_cpu and (conditions.threads <= MAX_SERIAL_THREADS or conditions.arcs_per_vertex > MANY_ARCS)
    ),
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=find_core_numbers,
)
