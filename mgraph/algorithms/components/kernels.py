"""Find connected components by union-find; tree roots are the smallest members, by hooks with minima.

`parents` holds a position for every position: itself for a root, else a smaller one of the same component. Positions,
and not state indices, because in degree order small ones are hubs, on any owner. Trees are only ever joined. Any thread
may hook and compress at any time, because

- a hook is an atomic minimum. If the entry was no longer a root's, the smaller of the two parents stays and the thread
  continues to join both, so that no connection is lost, whichever thread was first;
- a compressed path skips to an ancestor, and every value that an entry has held is joined by entries below it. So a
  stale value does no harm either, as CUDA threads read it from the nearest cache.

So after a launch the trees are the components of all arcs seen, and their roots do not depend on the order of threads;
other entries do.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import has_bit, position_of, row_of_arc, state_of, test_bit, top_of

# Labels in the vote for the giant, one per lane of a warp.
VOTERS = 32


@inline
def find(parents, v):
    """Return the root of v's tree; entries on the path skip to their grandparents."""
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
    """Join the trees of u and v: the larger root becomes a child of the smaller."""
    high = find(parents, u)
    low = find(parents, v)
    while high != low:
        if high < low:
            high, low = low, high
        old = atomic_min(parents, high, low)
        if old == high:
            break
        # Another thread linked `high` first: join the tree that it became part of with `low` too.
        high = find(parents, old)


@kernel(vertex_t="targets")
def hook_first(lo, hi, num_positions, indptr, targets, base, num_owned, stride, multiplier, parents):
    """Make every owned vertex a child of the first neighbor of its row, if that is smaller.

    All others are roots. Work items are runs of `multiplier` positions, of which at most one is owned; so adjacent
    threads have adjacent rows. Rows are sorted by position, so in degree order the first neighbor is the greatest hub
    among them, and most of the graph is in few trees already.
    """
    first_row, offset = (base, 0) if multiplier == 1 else (0, base // stride)
    for item in range(lo, hi):
        for v in range(item * multiplier, min((item + 1) * multiplier, num_positions)):
            parents[v] = v
        v = item * multiplier + offset
        row = item - first_row
        if row >= 0 and row < num_owned and indptr[row] < indptr[row + 1]:
            first = position_of(np.int64(targets[indptr[row]]), stride, multiplier)
            if first < v:
                parents[v] = first


@kernel(vertex_t="targets")
def link_sample(lo, hi, indptr, targets, base, stride, multiplier, parents):
    """Link a sample of the owned vertices to their second neighbor, and to the first where hook_first did not.

    A quarter of all runs of 32 rows is sampled (an eighth leaves too much outside of the giant of uni24, a half takes
    longer), by a hash, so that all columns of a mesh are sampled equally.
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
def compress_path(parents, v):
    """Compress v's path and return its root; the entry is written at each hop, so that other threads skip along."""
    parent = parents[v]
    above = parents[parent]
    while above != parent:
        parents[v] = above
        parent = above
        above = parents[parent]
    return parent


@kernel(vertex_t="parents")
def compress(lo, hi, first, step, parents):
    """Compress the paths of positions `first`, `first + step`, ...; a thread writes its own entries alone."""
    for i in range(lo, hi):
        compress_path(parents, first + i * step)


@kernel(lanes=32, vertex_t="parents")
def vote_giant(lo, hi, first, step, num_owned, parents, giant):
    """Write the most frequent root of 32 owned vertices, spread evenly.

    The smallest of equals wins; top if no vertex is owned. There is one work item.
    """
    for item in range(lo, hi):
        giant[item] = np.iinfo(parents.dtype).max
        most = 0
        for i in range(VOTERS if num_owned else 0):
            root = find(parents, first + num_owned * i // VOTERS * step)
            votes = 0
            for k in range(VOTERS):
                votes += find(parents, first + num_owned * k // VOTERS * step) == root
            if votes > most or (votes == most and root < giant[item]):
                most = votes
                giant[item] = root


@inline
def root_of(parents, vertices):
    """Return the root of vertices[0]; top if that is top, no vertex."""
    top = np.iinfo(parents.dtype).max
    return top if vertices[0] == top else find(parents, vertices[0])


@kernel(vertex_t="parents")
def list_outside(lo, hi, indptr, first, step, giant, parents, outside, lengths, counters):
    """Compress all rows' paths; list rows outside the tree of giant[0], with their lengths.

    Empty rows are left out. `counters` are: rows listed, their arcs.
    """
    root = root_of(parents, giant)
    rows = 0
    arcs = 0
    for row in range(lo, hi):
        length = indptr[row + 1] - indptr[row]
        if compress_path(parents, first + row * step) != root and length > 0:
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


@kernel(lanes=1024, block=1024)
def add_up_lengths(lo, hi, count, lengths, offsets):
    """Make offsets of the lengths of rows: their prefix sums, with the number of arcs at the end.

    The only work item is the whole array, for one block.
    """
    for _ in range(lo, hi):
        arcs = 0
        for k in range(count):
            offsets[k] = arcs
            arcs += lengths[k]
        offsets[count] = arcs


@kernel(vertex_t="targets")
def link_arcs(lo, hi, rows, num_rows, offsets, indptr, targets, base, stride, multiplier, bits, giant, parents):
    """Link both ends of every arc; giant[0] replaces a marked target.

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
    """Mark the owned states that a search has reached; lower giant[0] to their smallest position.

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
    lo, hi, num_owned, indptr, targets, base, stride, multiplier, capacity, bits, giant, counters, ends, others
):  # fmt: skip
    """List both ends of the edges of unmarked owned states: giant[0] replaces a marked target.

    Work items are words of bits from state `base` on. An edge between two of them is listed at its larger end. No more
    than `capacity` are written; counters[0] counts all arcs scanned, even beyond.
    """
    for row in range(32 * lo, min(32 * hi, num_owned)):
        if test_bit(bits, base + row):
            continue
        u = position_of(np.int64(base + row), stride, multiplier)
        begin = indptr[row]
        end = indptr[row + 1]
        slot = atomic_add(counters, 0, end - begin)
        for arc in range(begin, end if slot + end - begin <= capacity else begin):
            v = position_of(np.int64(targets[arc]), stride, multiplier)
            if test_bit(bits, targets[arc]):
                v = np.int64(giant[0])
            # An edge listed at the other end becomes a loop here.
            ends[slot] = u
            others[slot] = v if v < u or v == giant[0] else u
            slot += 1


@kernel(lanes=32, vertex_t="parents")
def mark_giant(lo, hi, base, num_positions, stride, multiplier, giant, parents, root_of_giant, bits):
    """Compress the paths of the states from `base` on; mark those in the tree of giant[0], and write its root.

    Work items are words of bits.
    """
    root = root_of(parents, giant)
    if lo == 0:
        root_of_giant[0] = root
    for word in range(lo, hi):
        bits[word] = 0
        for i in range(32):
            v = position_of(np.int64(base + 32 * word + i), stride, multiplier)
            if v < num_positions and compress_path(parents, v) == root:
                bits[word] |= np.uint32(1) << np.uint32(i)


@kernel(vertex_t="parents")
def join_giant(lo, hi, stride, multiplier, bits, giant, parents):
    """Join every marked position with giant[0].

    All that is joined in this launch becomes one tree: so a root may become a child of the giant's former root by a
    plain store. A store that is lost, to a thread that joined that root at the same time, has no other effect.
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
    """List the unmarked rows outside the giant, after joining those of marked trees with it.

    Work items are words of the bits from state `base` on; `root_of_giant` is from before any join here. The launch
    joins the giant and trees with marked roots alone: the root of any other tree remains.
    """
    rows = 0
    arcs = 0
    slot = 0
    for listing in (False, True):
        if listing:
            slot = atomic_add(counters, 0, rows)
            atomic_add(counters, 1, arcs)
        for row in range(32 * lo, min(32 * hi, num_owned)):
            if test_bit(bits, base + row):
                continue
            root = compress_path(parents, position_of(np.int64(base + row), stride, multiplier))
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
    """Compress the paths of unmarked positions and of giant[0]; work items are words of bits.

    A thread writes its own entries alone.
    """
    for word in range(lo, hi):
        for i in range(32):
            v = position_of(np.int64(32 * word + i), stride, multiplier)
            if v < num_positions and (v == giant[0] or not test_bit(bits, 32 * word + i)):
                compress_path(parents, v)


@kernel(lanes=32, vertex_t="parents")
def list_others(lo, hi, capacity, num_positions, stride, multiplier, bits, giant, parents, counters, others, roots):
    """List unmarked positions, and giant[0], that are not roots, with their roots.

    Work items are words of bits. No more than `capacity` are written, but all are counted, in counters[0].
    """
    for word in range(lo, hi):
        for i in range(32):
            v = position_of(np.int64(32 * word + i), stride, multiplier)
            if v >= num_positions or (test_bit(bits, 32 * word + i) and v != giant[0]):
                continue
            root = find(parents, v)
            if root != v:
                slot = atomic_add(counters, 0, 1)
                if slot < capacity:
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
    """Return the root of a position: that of giant[0] where its state is marked."""
    marked = has_bit(bits, state_of(np.int64(position), stride, multiplier))
    return roots[giant[0]] if marked else roots[position]


@inline
def lower(smallest, root, user):
    """Lower smallest[root]; most calls change nothing."""
    if smallest[root] > user:
        atomic_min(smallest, root, user)


@kernel(vertex_t="roots", id_t="users")
def find_smallest(lo, hi, users, base, stride, multiplier, bits, giant, roots, smallest):
    """Lower smallest[root] to the smallest user id of a component, over the owned states from `base` on.

    `users` holds their user ids. A run of vertices with one root needs one atomic.
    """
    last = np.int64(-1)
    user = users[lo] if lo < hi else 0
    for i in range(lo, hi):
        marked = has_bit(bits, base + i)
        root = np.int64(roots[giant[0]] if marked else roots[position_of(np.int64(base + i), stride, multiplier)])
        if root != last:
            if last >= 0:
                lower(smallest, last, user)
            last = root
            user = users[i]
        user = min(user, users[i])
    if last >= 0:
        lower(smallest, last, user)


@kernel(lanes=32, vertex_t="roots")
def list_roots(lo, hi, num_owned, base, stride, multiplier, capacity, bits, giant, roots, counters, found):
    """List the owned positions that are roots.

    No more than `capacity` are written, but all are counted, in counters[0]. Work items are words of the states from
    `base` on. Where there are bits, the root of giant[0] is the only marked root.
    """
    for row in range(32 * lo, min(32 * hi, num_owned)):
        v = position_of(np.int64(base + row), stride, multiplier)
        if roots[v] == v and (not has_bit(bits, base + row) or v == roots[giant[0]]):
            slot = atomic_add(counters, 0, 1)
            if slot < capacity:
                found[slot] = v


@kernel(light=64, vertex_t="roots", id_t="smallest")
def label_users(lo, hi, positions, first, num_positions, stride, multiplier, bits, giant, roots, smallest, labels):
    """Write the smallest user id of every user's component; an isolated vertex is its own.

    Where there are no `positions`, user ids are positions, and the root is the smallest.
    """
    if positions is None and bits is None and smallest is None:
        # A loop without branches, which compilers copy several values at once in.
        last = max(lo, min(hi, num_positions - first))
        for i in range(lo, last):
            labels[i] = roots[first + i]
        for i in range(last, hi):
            labels[i] = first + i
        return
    for i in range(lo, hi):
        labels[i] = first + i
        position = np.int64(first + i if positions is None else positions[i])
        if position < num_positions:
            root = root_at(position, stride, multiplier, bits, giant, roots)
            labels[i] = root if smallest is None else smallest[root]
