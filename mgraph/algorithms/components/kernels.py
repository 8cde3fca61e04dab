"""Connected components: union-find whose roots are the smallest members, by hooking with minima.

`parents` holds a position for every position: itself for a root, else a smaller one of the same component.
Positions, and not state indices, because in order of degree small ones are hubs, whoever owns them. It only
says more: a tree hangs under another, never comes apart. Any thread may hook and shorten at any time, because

- a hook is an atomic minimum. If the entry was no longer a root's, the smaller of the two parents stays
  and the thread goes on to join both, so that no connection is lost, whoever came first;
- a shortened path skips to an ancestor, and whatever an entry has ever held is joined by entries below it.
  So it does no harm either to read an older value, as CUDA threads do that look into the nearest cache.

So after a launch the trees are the components of all arcs seen, and their roots do not depend on the
order of threads; what else an entry holds does.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import has_bit, position_of, row_of_arc, state_of, test_bit, top_of

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
def hook_first(lo, hi, num_positions, indptr, targets, base, num_owned, stride, multiplier, parents):
    """Let every owned vertex hang under the first neighbour of its row, if that is smaller; all others are roots.

    Work items are runs of `multiplier` positions, of which one is owned, or none; so threads side by side have rows
    side by side. Rows are sorted by position, so in degree order the first neighbour is the greatest hub among them,
    and most of the graph hangs under few roots already.
    """
    first_row, offset = (base, 0) if multiplier == 1 else (0, base // stride)
    for item in range(lo, hi):
        for v in range(item * multiplier, min((item + 1) * multiplier, num_positions)):
            parents[v] = v
        v, row = item * multiplier + offset, item - first_row
        if row >= 0 and row < num_owned and indptr[row] < indptr[row + 1]:
            first = position_of(np.int64(targets[indptr[row]]), stride, multiplier)
            if first < v:
                parents[v] = first


@kernel(vertex_t="targets")
def link_sample(lo, hi, indptr, targets, base, stride, multiplier, parents):
    """Link a sample of the owned vertices to their second neighbour, and to the first where hook_first did not.

    A quarter of all runs of 32 rows is sampled (an eighth leaves too much outside of the giant of uni24, a half
    links longer), by a hash, so that the columns of a mesh are sampled alike.
    """
    for row in range(lo, hi):
        if ((row >> 5) * 0x9E3779B1) & 0xFFFFFFFF >= 1 << 30:
            continue
        v = position_of(np.int64(base + row), stride, multiplier)
        for arc in range(indptr[row], min(indptr[row] + 2, indptr[row + 1])):
            target = position_of(np.int64(targets[arc]), stride, multiplier)
            if target > v or arc > indptr[row]:
                link(parents, v, target)


@inline
def fold(parents, v):
    """Hang v right under its root, which is returned; an entry is written at each hop, for others to skip along."""
    parent = parents[v]
    above = parents[parent]
    while above != parent:
        parents[v] = above
        parent = above
        above = parents[parent]
    return parent


@kernel(vertex_t="parents")
def compress(lo, hi, first, step, parents):
    """Hang positions `first`, `first + step`, ... right under their roots. A thread writes its own entries alone."""
    for i in range(lo, hi):
        fold(parents, first + i * step)


@kernel(lanes=32, vertex_t="parents")
def vote_giant(lo, hi, first, step, num_owned, parents, giant):
    """Write the root that most of 32 owned vertices have, spread evenly, the smallest of equals; top if there is none.

    There is one work item.
    """
    for item in range(lo, hi):
        giant[item] = np.iinfo(parents.dtype).max
        most = 0
        for i in range(VOTERS if num_owned else 0):
            root, votes = find(parents, first + num_owned * i // VOTERS * step), 0
            for k in range(VOTERS):
                votes += find(parents, first + num_owned * k // VOTERS * step) == root
            if votes > most or (votes == most and root < giant[item]):
                most = votes
                giant[item] = root


@inline
def root_of(parents, vertices):
    """Return the root of the first of some vertices, top if that is top: nobody."""
    top = np.iinfo(parents.dtype).max
    return top if vertices[0] == top else find(parents, vertices[0])


@kernel(vertex_t="parents")
def list_outside(lo, hi, indptr, first, step, giant, parents, outside, lengths, counters):
    """Fold all rows, and list those that are not in the tree of giant[0], with their lengths; empty ones are left out.

    `counters` are: rows listed, their arcs.
    """
    root = root_of(parents, giant)
    rows, arcs = 0, 0
    for row in range(lo, hi):
        length = indptr[row + 1] - indptr[row]
        if fold(parents, first + row * step) != root and length > 0:
            rows += 1
            arcs += length
    slot = atomic_add(counters, 0, rows)
    atomic_add(counters, 1, arcs)
    for row in range(lo, hi):
        length = indptr[row + 1] - indptr[row]
        if parents[first + row * step] != root and length > 0:
            outside[slot] = row
            lengths[slot] = length
            slot += 1


@kernel(vertex_t="targets")
def link_arcs(lo, hi, rows, num_rows, offsets, indptr, targets, base, stride, multiplier, bits, giant, parents):
    """Link both ends of every arc; where there are bits, giant[0] stands for a target whose state has its bit.

    Work items are arcs: entry k of `rows` (None: row k) has arcs offsets[k] .. offsets[k + 1].
    """
    k = row_of_arc(offsets, num_rows, lo)
    arc = lo
    while arc < hi:
        row = k if rows is None else rows[k]
        u = position_of(np.int64(base + row), stride, multiplier)
        begin = indptr[row] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = position_of(np.int64(targets[begin + i]), stride, multiplier)
            if has_bit(bits, targets[begin + i]):
                v = np.int64(giant[0])
            if parents[v] != parents[u]:
                link(parents, u, v)
        arc = end
        k += 1


@kernel(lanes=32, dist_t="levels", vertex_t="giant")
def mark_reached(lo, hi, base, num_owned, stride, multiplier, levels, giant, bits):
    """Write a bitmap of the owned states that a search has reached; lower giant[0] to their smallest position.

    Work items are words of bits.
    """
    for word in range(lo, hi):
        bits[word] = 0
        for i in range(32):
            row = 32 * word + i
            if row < num_owned and levels[row] != top_of(levels):
                if bits[word] == 0:
                    atomic_min(giant, 0, position_of(np.int64(base + row), stride, multiplier))
                bits[word] |= np.uint32(1) << np.uint32(i)


@kernel(lanes=32, vertex_t="targets")
def list_edges(
    lo, hi, num_owned, indptr, targets, base, stride, multiplier, room, bits, giant, counters, ends, others
):  # fmt: skip
    """List both ends of the edges of owned states without a bit: giant[0] stands for a target that has one.

    Work items are words of bits from state `base` on. Of an edge between two of them that with the larger start is
    listed. No more than `room` are written; counters[0] counts all arcs that are looked at, more if there are more.
    """
    for row in range(32 * lo, min(32 * hi, num_owned)):
        if test_bit(bits, base + row):
            continue
        u = position_of(np.int64(base + row), stride, multiplier)
        begin, end = indptr[row], indptr[row + 1]
        slot = atomic_add(counters, 0, end - begin)
        for arc in range(begin, end if slot + end - begin <= room else begin):
            v = position_of(np.int64(targets[arc]), stride, multiplier)
            if test_bit(bits, targets[arc]):
                v = np.int64(giant[0])
            # What is listed at the other end is left out here: a vertex and itself.
            ends[slot] = u
            others[slot] = v if v < u or v == giant[0] else u
            slot += 1


@kernel(lanes=32, vertex_t="parents")
def mark_giant(lo, hi, base, num_positions, stride, multiplier, giant, parents, root_of_giant, bits):
    """Fold the states from `base` on, and write a bitmap of those in the tree of giant[0], and its root.

    Work items are words of bits.
    """
    root = root_of(parents, giant)
    if lo == 0:
        root_of_giant[0] = root
    for word in range(lo, hi):
        bits[word] = 0
        for i in range(32):
            v = position_of(np.int64(base + 32 * word + i), stride, multiplier)
            if v < num_positions and fold(parents, v) == root:
                bits[word] |= np.uint32(1) << np.uint32(i)


@kernel(vertex_t="parents")
def join_giant(lo, hi, stride, multiplier, bits, giant, parents):
    """Join with giant[0] every position whose state has its bit set.

    All that is joined in this launch becomes one tree: so a root may be hung under what was the tree's root by a
    plain store. One that is lost, to whoever joined that root at the same time, said no more than that.
    """
    root = root_of(parents, giant)
    for v in range(lo, hi):
        if not test_bit(bits, state_of(v, stride, multiplier)) or parents[v] == root:
            continue
        if parents[v] == v and root < v:
            parents[v] = root
        else:
            link(parents, v, root)


@kernel(lanes=32, vertex_t="parents")
def list_untold(
    lo, hi, num_owned, indptr, base, stride, multiplier, bits, root_of_giant, parents, outside, lengths, counters
):
    """Do as list_outside for the rows without a bit, once those are joined with the giant whose root has one.

    Work items are words of the bits from state `base` on; `root_of_giant` is from before anything is joined here. What
    is joined are the giant and trees whose roots have bits: so of any other tree the root stays what it is.
    """
    rows, arcs, slot = 0, 0, 0
    for listing in (False, True):
        if listing:
            slot = atomic_add(counters, 0, rows)
            atomic_add(counters, 1, arcs)
        for row in range(32 * lo, min(32 * hi, num_owned)):
            if test_bit(bits, base + row):
                continue
            root = fold(parents, position_of(np.int64(base + row), stride, multiplier))
            length = indptr[row + 1] - indptr[row]
            if test_bit(bits, state_of(np.int64(root), stride, multiplier)):
                link(parents, root, root_of_giant[0])
            elif root != root_of_giant[0] and length > 0:
                if listing:
                    outside[slot] = row
                    lengths[slot] = length
                    slot += 1
                else:
                    rows += 1
                    arcs += length


@kernel(lanes=32, vertex_t="parents")
def settle(lo, hi, num_positions, stride, multiplier, bits, giant, parents):
    """Hang the positions whose state has no bit, and giant[0], right under their roots; work items are words of bits.

    A thread writes its own entries alone.
    """
    for word in range(lo, hi):
        for i in range(32):
            v = position_of(np.int64(32 * word + i), stride, multiplier)
            if v < num_positions and (v == giant[0] or not test_bit(bits, 32 * word + i)):
                fold(parents, v)


@kernel(lanes=32, vertex_t="parents")
def list_others(lo, hi, room, num_positions, stride, multiplier, bits, giant, parents, counters, others, roots):
    """List positions that are not roots, with their roots: giant[0], and those whose state has no bit in `bits`.

    Work items are words of bits. No more than `room` are written, but all are counted, in counters[0].
    """
    for word in range(lo, hi):
        for i in range(32):
            v = position_of(np.int64(32 * word + i), stride, multiplier)
            if v >= num_positions or (test_bit(bits, 32 * word + i) and v != giant[0]):
                continue
            root = find(parents, v)
            if root != v:
                slot = atomic_add(counters, 0, 1)
                if slot < room:
                    others[slot] = v
                    roots[slot] = root


@kernel(vertex_t="parents")
def link_roots(lo, hi, vertices, roots, parents):
    """Join vertices with their roots in another rank's forest; without `vertices`, root i is that of position i."""
    for i in range(lo, hi):
        v = i if vertices is None else vertices[i]
        if roots[i] != v and roots[i] != parents[v]:
            link(parents, v, roots[i])


@inline
def root_at(position, stride, multiplier, bits, giant, roots):
    """Return the root of a position: that of giant[0] where its state has its bit."""
    told = has_bit(bits, state_of(np.int64(position), stride, multiplier))
    return roots[giant[0]] if told else roots[position]


@inline
def lower(smallest, root, user):
    """Lower smallest[root]; most do not."""
    if smallest[root] > user:
        atomic_min(smallest, root, user)


@kernel(vertex_t="roots", id_t="users")
def find_smallest(lo, hi, users, base, stride, multiplier, bits, giant, roots, smallest):
    """Lower smallest[root] to the smallest user id of a component, over the owned states from `base` on.

    `users` holds their user ids. Of a run of one root the smallest alone is told.
    """
    last, user = np.int64(-1), users[lo] if lo < hi else 0
    for i in range(lo, hi):
        told = has_bit(bits, base + i)
        root = np.int64(roots[giant[0]] if told else roots[position_of(np.int64(base + i), stride, multiplier)])
        if root != last:
            if last >= 0:
                lower(smallest, last, user)
            last, user = root, users[i]
        user = min(user, users[i])
    if last >= 0:
        lower(smallest, last, user)


@kernel(lanes=32, vertex_t="roots")
def list_roots(lo, hi, num_owned, base, stride, multiplier, room, bits, giant, roots, counters, found):
    """List the owned positions that are roots, no more than `room`, but all of them are counted, in counters[0].

    Work items are words of the states from `base` on. Where there are bits, of the states that have one the root of
    giant[0] alone is one.
    """
    for row in range(32 * lo, min(32 * hi, num_owned)):
        v = position_of(np.int64(base + row), stride, multiplier)
        if roots[v] == v and (not has_bit(bits, base + row) or v == roots[giant[0]]):
            slot = atomic_add(counters, 0, 1)
            if slot < room:
                found[slot] = v


@kernel(vertex_t="roots", id_t="smallest")
def label_users(lo, hi, positions, first, num_positions, stride, multiplier, bits, giant, roots, smallest, labels):
    """Write the smallest user id of every user's component; a vertex without arcs is its own.

    Where there are no `positions`, user ids are positions, and the root is the smallest.
    """
    for i in range(lo, hi):
        labels[i] = first + i
        position = np.int64(first + i if positions is None else positions[i])
        if position < num_positions:
            root = root_at(position, stride, multiplier, bits, giant, roots)
            labels[i] = root if smallest is None else smallest[root]
