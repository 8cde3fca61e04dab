"""Connected components: union-find whose roots are the smallest members, by hooking with minima.

`parents` holds a state index for every state: itself for a root, else a smaller one of the same
component. It only says more: a tree hangs under another, never comes apart. Any thread may hook and
shorten at any time, because

- a hook is an atomic minimum. If the entry was no longer a root's, the smaller of the two parents stays
  and the thread goes on to join both, so that no connection is lost, whoever came first;
- a shortened path skips to an ancestor, and whatever an entry has ever held is joined by entries below it.
  So it does no harm either to read an older value, as CUDA threads do that look into the nearest cache.

So after a launch the trees are the components of all arcs seen, and their roots do not depend on the
order of threads; what else an entry holds does.
"""

from __future__ import annotations

import numpy as np

from mgraph.kernels.atomics import atomic_add, atomic_min
from mgraph.kernels.common import row_of_arc, state_of
from mgraph.kernels.pair import inline, kernel

# How many labels the vote for the giant component asks, a warp's.
VOTERS = 32


@inline
def find(parents, v):
    """Return the root of v's tree; entries on the way skip to their grandparents."""
    parent = parents[v]
    if parent == v:
        return parent
    above = parents[parent]
    while above != parent:
        parents[v] = above
        v = parent
        parent = above
        above = parents[parent]
    return parent


@inline
def link(parents, u, v):
    """Join the trees of u and v: the larger root hangs under the smaller."""
    high, low = find(parents, u), find(parents, v)
    while high != low:
        if high < low:
            high, low = low, high
        old = atomic_min(parents, high, low)
        if old == high:
            break
        # Another thread was here first: what it hung `high` under is joined with `low` too.
        high = find(parents, old)


@kernel(vertex_t="targets")
def hook_first(lo, hi, indptr, targets, base, num_owned, parents):
    """Let every owned vertex hang under the first neighbour of its row, if that is smaller; all others are roots.

    Work items are all states. Rows are sorted by position, so in degree order the first neighbour is the
    greatest hub among them, and most of the graph hangs under few roots already.
    """
    for v in range(lo, hi):
        parents[v] = v
        row = v - base
        if row >= 0 and row < num_owned and indptr[row] < indptr[row + 1]:
            first = targets[indptr[row]]
            if first < v:
                parents[v] = first


@kernel(vertex_t="targets")
def link_sample(lo, hi, indptr, targets, base, parents):
    """Link a sample of the owned vertices to their second neighbour, and to the first where hook_first did not.

    A quarter of all runs of 32 rows is sampled (an eighth leaves too much outside of the giant of uni24, a half
    links longer), by a hash, so that the columns of a mesh are sampled alike.
    """
    for row in range(lo, hi):
        if ((row >> 5) * 0x9E3779B1) & 0xFFFFFFFF >= 1 << 30:
            continue
        begin, end = indptr[row], indptr[row + 1]
        if begin < end and targets[begin] > base + row:
            link(parents, base + row, targets[begin])
        if begin + 1 < end:
            link(parents, base + row, targets[begin + 1])


@kernel(vertex_t="parents")
def compress(lo, hi, parents):
    """Hang every state under its root. A thread writes its own entry alone, at each step, for others to skip along."""
    for v in range(lo, hi):
        parent = parents[v]
        above = parents[parent]
        while above != parent:
            parents[v] = above
            parent = above
            above = parents[parent]


@kernel(lanes=32, vertex_t="parents")
def vote_giant(lo, hi, base, num_owned, parents, giant):
    """Write the root that most of 32 owned vertices have, spread evenly, the smallest of equals; top if there is none.

    There is one work item.
    """
    for item in range(lo, hi):
        giant[item] = np.iinfo(parents.dtype).max
        most = 0
        for i in range(VOTERS if num_owned else 0):
            root, votes = parents[base + num_owned * i // VOTERS], 0
            for k in range(VOTERS):
                votes += parents[base + num_owned * k // VOTERS] == root
            if votes > most or (votes == most and root < giant[item]):
                most = votes
                giant[item] = root


@kernel(vertex_t="parents")
def list_outside(lo, hi, indptr, base, parents, giant, outside, lengths, counters):
    """List the rows that are not in the tree of giant[0], with their lengths; empty ones are left out.

    `counters` are: rows listed, their arcs.
    """
    nobody = giant[0] == np.iinfo(parents.dtype).max
    root = giant[0] if nobody else parents[giant[0]]
    rows, arcs = 0, 0
    for row in range(lo, hi):
        length = indptr[row + 1] - indptr[row]
        if length > 0 and parents[base + row] != root:
            rows += 1
            arcs += length
    slot = atomic_add(counters, 0, rows)
    atomic_add(counters, 1, arcs)
    for row in range(lo, hi):
        length = indptr[row + 1] - indptr[row]
        if length > 0 and parents[base + row] != root:
            outside[slot] = row
            lengths[slot] = length
            slot += 1


@kernel(vertex_t="targets")
def link_arcs(lo, hi, rows, num_rows, offsets, indptr, targets, base, parents):
    """Link both ends of every arc.

    Work items are arcs: entry k of `rows` (None: row k) has arcs offsets[k] .. offsets[k + 1].
    """
    k = row_of_arc(offsets, num_rows, lo)
    arc = lo
    while arc < hi:
        row = k if rows is None else rows[k]
        begin = indptr[row] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = targets[begin + i]
            if parents[v] != parents[base + row]:
                link(parents, base + row, v)
        arc = end
        k += 1


@kernel(vertex_t="parents")
def link_states(lo, hi, roots, parents):
    """Join every state with its root in another rank's forest."""
    for v in range(lo, hi):
        if roots[v] != v and roots[v] != parents[v]:
            link(parents, v, roots[v])


@kernel(vertex_t="roots", id_t="smallest")
def find_smallest(lo, hi, positions, first, num_positions, stride, multiplier, roots, smallest):
    """Lower smallest[root] to the smallest user id of a component, over a range of user ids from `first` on.

    A thread takes rising ids: of a run of one root the first is enough.
    """
    last = -1
    for i in range(lo, hi):
        if positions[i] < num_positions:
            root = roots[state_of(positions[i], stride, multiplier)]
            if root != last and smallest[root] > first + i:
                atomic_min(smallest, root, first + i)
            last = root


@kernel(vertex_t="roots", id_t="smallest")
def label_users(lo, hi, positions, first, num_positions, stride, multiplier, roots, smallest, labels):
    """Write the smallest user id of every user's component; a vertex without arcs is its own."""
    for i in range(lo, hi):
        labels[i] = first + i
        if positions[i] < num_positions:
            labels[i] = smallest[roots[state_of(positions[i], stride, multiplier)]]
