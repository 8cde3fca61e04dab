"""Translate between user ids and positions: sources of a search, and results by user id.

`positions` has the position of each user id of a rank's range (None in natural order, where the i-th user id
of the range is the owner's i-th position); positions from `num_positions` on are isolated and have no state.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_helpers import ones_before, ones_of, set_bit, state_of, top_of

# merge_trees writes this many neighboring columns' values at once, 4 for each lane of a warp.
GROUP = 128


@kernel(vertex_t="positions")
def find_positions(lo, hi, positions, first, num_users, words):
    """Replace user ids in `words` by positions, -1 for one outside of first .. first + num_users."""
    for i in range(lo, hi):
        user = words[i] - first
        words[i] = positions[user] if 0 <= user < num_users else -1


@inline
def bit_of_user(user, user_stride, stride):
    """Return the bit of a user id where each rank's range of `user_stride` ids has `stride` bits."""
    return user // user_stride * stride + user % user_stride


@kernel(id_t="users")
def mark_users(lo, hi, users, user_stride, stride, bits):
    """Mark the user id of every owned vertex in the bitmap of the rank that serves it."""
    for i in range(lo, hi):
        set_bit(bits, bit_of_user(np.int64(users[i]), user_stride, stride))


@kernel(vertex_t="counts")
def count_ones(lo, hi, bits, counts):
    """Count the set bits of every word."""
    for i in range(lo, hi):
        counts[i] = ones_of(bits[i])


@kernel(id_t="users", vertex_t="order")
def order_by_user(lo, hi, users, user_stride, stride, bits, before, order):
    """Write every owned vertex to its place in the order of user ids, by a bitmap of these with prefix counts."""
    for i in range(lo, hi):
        order[ones_before(bits, before, bit_of_user(np.int64(users[i]), user_stride, stride))] = i


@kernel(vertex_t="order", dist_t="values", parent_t="parents", id_t="user_of_state")
def pack_tree(
    lo, hi, order, values, parents, user_of_state, stride, multiplier, out_values, out_parents
):  # fmt: skip
    """Write the distances of vertices in an order, and their predecessors as user ids; outputs may be None."""
    for i in range(lo, hi):
        v = np.int64(order[i])
        if out_values is not None:
            out_values[i] = values[v]
        if out_parents is not None:
            out_parents[i] = np.iinfo(out_parents.dtype).max
            if parents[v] != np.iinfo(parents.dtype).max:
                out_parents[i] = user_of_state[state_of(np.int64(parents[v]), stride, multiplier)]


@kernel(lanes=32, vertex_t="before", dist_t="values", id_t="parents", out_t="out_distances")
def merge_trees(lo, hi, num_users, bits, before, stride, num_ranks, values, parents, out_distances, out_parents):
    """Write the distances and predecessors received from all ranks in order of user ids; outputs may be None.

    A work item is GROUP user ids. Every rank has `stride` bits, in whole groups, of a bitmap with prefix counts, where
    those of its vertices are set. A vertex without a bit has no arcs: as for an unreached one -1 (inf for float
    distances) is written.
    """
    for group in range(lo, hi):
        first = group * GROUP
        last = min(first + GROUP, num_users)
        if out_parents is not None:
            out_parents[first:last] = -1
        if out_distances is not None:
            out_distances[first:last] = np.inf if values.dtype.kind == "f" else -1
        for r in range(num_ranks):
            for i in range(first, last):
                bit = r * stride + i
                if bits[bit >> 5] >> (bit & 31) & 1:
                    place = ones_before(bits, before, bit)
                    if out_parents is not None and parents[place] != np.iinfo(parents.dtype).max:
                        out_parents[i] = parents[place]
                    if out_distances is not None and values[place] != top_of(values):
                        out_distances[i] = values[place]


@inline
def translate_values(values, top, none, out):
    """Write values, `none` for `top`."""
    for i in range(len(out)):
        # Not in one expression: if `none` is a float it would be one, and round integers beyond 2^53.
        if values[i] != top:
            out[i] = values[i]
        else:
            out[i] = none


@kernel(vertex_t="positions", dist_t="values", parent_t="parents", id_t="users", out_t="out_distances")
def translate_levels(lo, hi, positions, num_positions, values, parents, users, out_distances, out_parents):
    """Write levels and predecessors in order of user ids, -1 for an unreached vertex, on a single rank.

    A level is that of the predecessor plus one; a source, which is its own predecessor, has level 0.
    """
    for i in range(lo, hi):
        position = np.int64(positions[i])
        out_distances[i] = -1
        out_parents[i] = -1
        if position < num_positions and parents[position] != np.iinfo(parents.dtype).max:
            parent = np.int64(parents[position])
            out_distances[i] = np.int64(values[parent]) + (parent != position)
            out_parents[i] = users[parent]


@inline
def scatter_few(reached, values, users, are_vertices, out):
    """Write the values of reached vertices by user id, -1 (inf for floats) for all others, on one CPU rank.

    `users` has the user id of every state, None in natural order; values may be vertices too.
    """
    out[:] = np.inf if out.dtype.kind == "f" else -1
    for i in range(len(reached)):
        state = np.int64(reached[i])
        if users is None:
            out[state] = values[state]
        elif are_vertices:
            out[users[state]] = users[np.int64(values[state])]
        else:
            out[users[state]] = values[state]


@kernel(light=64, vertex_t="parents", id_t="users")
def translate_parents(lo, hi, parents, stride, multiplier, users, out_parents):
    """Write the predecessors of owned vertices as user ids, in the order of the vertices, -1 for none.

    `users` has the user id of every state index, and is None in natural order.
    """
    for i in range(lo, hi):
        parent = parents[i]
        if parent == np.iinfo(parents.dtype).max:
            out_parents[i] = -1
        else:
            out_parents[i] = parent if users is None else users[state_of(np.int64(parent), stride, multiplier)]


@kernel(light=64, vertex_t="positions", dist_t="values", parent_t="parents", id_t="users", out_t="out_distances")
def translate_tree(lo, hi, positions, num_positions, values, parents, users, out_distances, out_parents):
    """Write distances and predecessors in order of user ids, -1 (inf for floats) if unreached, on their owner.

    `positions` is None where user id i of the range is the i-th vertex, and then `users` is None too: predecessors are
    user ids already. Outputs may be None.
    """
    if positions is None:
        # Loops over slices, which compilers make instructions for several values at once of.
        last = max(lo, min(hi, num_positions))
        if out_parents is not None:
            translate_values(parents[lo:last], np.iinfo(parents.dtype).max, -1, out_parents[lo:last])
            out_parents[last:hi] = -1
        if out_distances is not None:
            none = np.inf if values.dtype.kind == "f" else -1
            translate_values(values[lo:last], top_of(values), none, out_distances[lo:last])
            out_distances[last:hi] = none
        return
    for i in range(lo, hi):
        position = np.int64(positions[i])
        has = position < num_positions
        if out_parents is not None:
            out_parents[i] = -1
            if has and parents[position] != np.iinfo(parents.dtype).max:
                out_parents[i] = users[parents[position]]
        if out_distances is not None:
            out_distances[i] = np.inf if values.dtype.kind == "f" else -1
            if has and values[position] != top_of(values):
                out_distances[i] = values[position]


@inline
def split_levels(words, out):
    """Write the levels of vertices in natural order from words `level << 32 | parent`, -1 if unreached.

    Vertices from the end of `words` on are isolated. A loop of few instructions, which compilers make instructions for
    several values at once of.
    """
    for i in range(len(words)):
        out[i] = words[i] >> 32 if words[i] != np.iinfo(np.int64).max else -1
    out[len(words) :] = -1


@inline
def split_parents(words, out):
    """Write the parents of vertices, as `split_levels` does the levels."""
    for i in range(len(words)):
        out[i] = words[i] & 0xFFFFFFFF if words[i] != np.iinfo(np.int64).max else -1
    out[len(words) :] = -1


@inline
def gather_levels(lo, hi, positions, words, out):
    """Write the levels of user ids lo..hi in degree order, as `split_levels` does.

    The last word is that of no vertex: isolated ones, with positions beyond all others, get it. Nothing branches, as
    cores cannot predict which vertices are isolated.
    """
    none = np.uint64(len(words)) - np.uint64(1)
    for i in range(np.uint64(lo), np.uint64(hi)):
        word = words[min(np.uint64(positions[i]), none)]
        out[i] = word >> 32 if word != np.iinfo(np.int64).max else -1


@inline
def gather_parents(lo, hi, positions, words, users, out):
    """Write the parents of user ids lo..hi in degree order, as `gather_levels` does the levels."""
    none = np.uint64(len(words)) - np.uint64(1)
    for i in range(np.uint64(lo), np.uint64(hi)):
        word = words[min(np.uint64(positions[i]), none)]
        is_reached = word != np.iinfo(np.int64).max
        # Any user, where there is no parent.
        user = np.int64(users[np.uint64(word & 0xFFFFFFFF) if is_reached else np.uint64(0)])
        out[i] = user if is_reached else -1
