"""Between positions and user ids: where sources stand; the answers of a range of ids, gathered from replicated arrays.

`positions` holds the position of each user id of the range (None in natural order, where user id
`first + i` is its own position); positions from `num_positions` up have no arcs and no state.
"""

from __future__ import annotations

import numpy as np

from mgraph.kernels.common import state_of, top_of
from mgraph.kernels.pair import kernel


@kernel(vertex_t="positions")
def find_positions(lo, hi, positions, first, num_users, words):
    """Put the positions of user ids in their stead, -1 for one that is not among those from `first` on."""
    for i in range(lo, hi):
        user = words[i] - first
        words[i] = positions[user] if 0 <= user < num_users else -1


@kernel(vertex_t="positions", dist_t="values", out_t="out")
def translate_distances(lo, hi, positions, first, num_positions, stride, multiplier, values, out):
    """Write distances in order of user ids; an integer state that is not reached becomes -1."""
    top = top_of(values)
    unreached = np.inf if values.dtype.kind == "f" else -1
    for i in range(lo, hi):
        position = first + i if positions is None else np.int64(positions[i])
        out[i] = unreached
        if position < num_positions:
            value = values[state_of(position, stride, multiplier)]
            if value != top:
                out[i] = value


@kernel(vertex_t="parents", dist_t="values", id_t="users", out_t="out_distances")
def translate_tree(
    lo, hi, positions, first, num_positions, stride, multiplier, values, parents, users, out_distances, out_parents
):
    """Write predecessors as user ids in order of user ids, -1 where there is none, and distances if there are any.

    `users` holds the user id of every state index (None in natural order). Where `out_distances` is None, no distances
    are written.
    """
    none = np.iinfo(parents.dtype).max
    for i in range(lo, hi):
        position = first + i if positions is None else np.int64(positions[i])
        state = state_of(position, stride, multiplier) if position < num_positions else -1
        parent = parents[state] if state >= 0 else none
        if parent == none:
            out_parents[i] = -1
        else:
            out_parents[i] = parent if users is None else users[state_of(np.int64(parent), stride, multiplier)]
        if out_distances is not None:
            out_distances[i] = np.inf if values.dtype.kind == "f" else -1
            if state >= 0 and values[state] != top_of(values):
                out_distances[i] = values[state]
