"""Between positions and user ids: where sources stand; answers by user id, from all states or from what was dealt.

`positions` holds the position of each user id of the range (None in natural order, where the i-th user id
of a range has the i-th position of its owner); positions from `num_positions` up have no arcs and no state.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import ones_before, ones_of, set_bit, state_of, top_of


@kernel(vertex_t="positions")
def find_positions(lo, hi, positions, first, num_users, words):
    """Put the positions of user ids in their stead, -1 for one that is not among those from `first` on."""
    for i in range(lo, hi):
        user = words[i] - first
        words[i] = positions[user] if 0 <= user < num_users else -1


@kernel(id_t="users")
def mark_homes(lo, hi, users, user_stride, stride, bits):
    """Mark owned vertices in the bitmap, `stride` bits long, of the rank whose range their user id is in."""
    for i in range(lo, hi):
        set_bit(bits, np.int64(users[i]) // user_stride * stride + i)


@kernel(vertex_t="counts")
def count_ones(lo, hi, bits, counts):
    """Count the bits of every word."""
    for i in range(lo, hi):
        counts[i] = ones_of(bits[i])


@kernel(vertex_t="before", dist_t="values", parent_t="parents", id_t="users")
def deal_tree(
    lo, hi, users, user_stride, bits, before, values, parents, user_of_state, stride, multiplier, step, out_values,
    out_parents,
):  # fmt: skip
    """Write distances and predecessors, these as user ids, one behind the other for every home, in order of vertices.

    `bits` and `before` tell the places, `step` values apart, as mark_homes() left them. Of both only those are written
    that have an output.
    """
    for i in range(lo, hi):
        place = ones_before(bits, before, np.int64(users[i]) // user_stride * stride + i) * step
        if out_values is not None:
            out_values[place] = values[i]
        if out_parents is not None:
            out_parents[place] = np.iinfo(out_parents.dtype).max
            if parents[i] != np.iinfo(parents.dtype).max:
                out_parents[place] = user_of_state[state_of(np.int64(parents[i]), stride, multiplier)]


@kernel(vertex_t="positions", dist_t="values", parent_t="parents", id_t="users", out_t="out_distances")
def translate_levels(lo, hi, positions, num_positions, values, parents, users, out_distances, out_parents):
    """Write levels and predecessors in order of user ids, -1 where there is none, on a rank that is alone.

    A level is that of the predecessor, and one more; a source is its own.
    """
    for i in range(lo, hi):
        position = np.int64(positions[i])
        out_distances[i], out_parents[i] = -1, -1
        if position < num_positions and parents[position] != np.iinfo(parents.dtype).max:
            parent = np.int64(parents[position])
            out_distances[i] = np.int64(values[parent]) + (parent != position)
            out_parents[i] = users[parent]


@kernel(vertex_t="positions", dist_t="values", parent_t="parents", id_t="users", out_t="out_distances")
def translate_tree(
    lo, hi, positions, num_positions, stride, multiplier, bits, before, step, values, parents, users, out_distances,
    out_parents,
):  # fmt: skip
    """Write distances and predecessors in order of user ids, those of both that have an output; -1 where there is none.

    `values` and `parents` are by state, or with `bits` one behind the other for each state that has one, `step` apart.
    `users` holds the user id of every state index, and is None where predecessors are user ids.
    """
    for i in range(lo, hi):
        position = i if positions is None else np.int64(positions[i])
        has = position < num_positions
        place = state_of(position, stride, multiplier) if has else 0
        if has and bits is not None:
            place = ones_before(bits, before, place) * step
        if out_parents is not None:
            parent = parents[place] if has else np.iinfo(parents.dtype).max
            if parent == np.iinfo(parents.dtype).max:
                out_parents[i] = -1
            else:
                out_parents[i] = parent if users is None else users[state_of(np.int64(parent), stride, multiplier)]
        if out_distances is not None:
            out_distances[i] = np.inf if values.dtype.kind == "f" else -1
            if has and values[place] != top_of(values):
                out_distances[i] = values[place]
