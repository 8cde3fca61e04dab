"""Find strongly connected components on one CPU rank by a search in depth, which scans every arc once.

    for each vertex that was not visited: search from it in depth
        visit v: put it on the stack; low = its place there
            an arc to an unvisited vertex: visit that one; low = min(low, its low)
            an arc to a vertex on the stack: low = min(low, its place)
        leave v: if low is its own place, v and all above it on the stack are a component; take them off

The search (Tarjan, 1972) is serial, as SciPy's is, and long paths cost it no more than short ones. It needs no in-rows.
Coloring scans each arc several times, and takes rounds: two cores do not make up for that.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard
from mgraph.types import Array, none_of

# Arcs between two looks at whether the call was ended: a fraction of a second.
STEP_ARCS = 1 << 24
UNVISITED = 0


def find_strong_components(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the state of the root of each vertex's component: the vertex of it that was visited first."""
    rows = shard.rows
    size = shard.num_owned
    places = np.zeros(size, shard.partition.dtype)
    stack, way, lows, roots = (np.empty_like(places) for _ in range(4))
    nexts = np.empty(size, np.int64)
    cursor = np.zeros(3, np.int64)
    arrays = (rows.indptr, rows.targets, places, stack, way, lows, nexts, roots, cursor)
    taken = none_of(places.dtype)
    while cursor[0] < size:
        if shard.backend.stopped is not None:
            raise CommAborted(shard.backend.stopped)
        before = cursor[0]
        arcs = search_in_depth(STEP_ARCS, taken, *arrays)
        trace.superstep(method="depth", frontier=int(cursor[0] - before), arcs=arcs)
    return roots


@inline
def search_in_depth(most_arcs, taken, indptr, targets, places, stack, way, lows, nexts, roots, cursor):
    """Search on where `cursor` is, until all is found or `most_arcs` arcs are scanned; return the arcs scanned.

    `places` are places on the stack, from 1; those of vertices in known components are `taken`. `way` are the vertices
    from the start of the search to where it is, each with its low and its next arc. `cursor` has the start of the
    search, and the lengths of way and stack.
    """
    start = cursor[0]
    depth = cursor[1]
    top = cursor[2]
    scanned = 0
    while start < len(roots) and scanned < most_arcs:
        visited = np.int64(-1)
        if depth == 0:
            if places[start] != UNVISITED:
                start += 1
                continue
            visited = start
        else:
            v = np.int64(way[depth - 1])
            low = np.int64(lows[depth - 1])
            begin = nexts[depth - 1]
            end = indptr[v + 1]
            arc = begin
            while arc < end and places[targets[arc]] != UNVISITED:
                low = min(low, np.int64(places[targets[arc]]))
                arc += 1
            scanned += arc - begin
            if arc < end:
                visited = np.int64(targets[arc])
                lows[depth - 1] = low
                nexts[depth - 1] = arc
        if visited >= 0:
            way[depth] = visited
            nexts[depth] = indptr[visited]
            stack[top] = visited
            top += 1
            places[visited] = top
            lows[depth] = top
            depth += 1
            continue
        depth -= 1
        if low == places[v]:
            for i in range(low - 1, top):
                roots[stack[i]] = v
                places[stack[i]] = taken
            top = low - 1
        # What belongs to a component that is complete has a greater low than all that are left.
        if depth > 0 and low < lows[depth - 1]:
            lows[depth - 1] = low
    cursor[0] = start
    cursor[1] = depth
    cursor[2] = top
    return scanned


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the search, or of labels by state and by user id, which come after it."""
    search = (5 * sizes.vertex + 8) * sizes.owned
    labels = sizes.vertex * sizes.owned + sizes.id_bytes * (sizes.states + sizes.owned) + 8 * sizes.users
    return max(search, labels)


VARIANT = Variant(
    "strong_components.depth_first",
    when="on one rank without persistent kernels",
    applies=lambda conditions: conditions.is_one_cpu,
    bytes=_bytes,
    loop=find_strong_components,
)
