"""Sort edges and arcs: by one core by counting, since vertices and rows are small integers; on a device by one word."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel

ONE = np.uint64(1)


@inline
def sort_arcs(indptr, bits, arcs, rows):
    """Sort distinct arcs, and find their rows; `bits` are a zero for each arc of all rows, in words of 64."""
    for i in range(len(arcs)):
        arc = np.uint64(arcs[i])
        bits[arc >> np.uint64(6)] |= ONE << (arc & np.uint64(63))
    num = np.uint64(0)
    row = np.uint64(0)
    for word in range(np.uint64(len(bits))):
        left = bits[word]
        arc = word << np.uint64(6)
        while left:
            # The place of the lowest bit.
            place = arc + np.uint64(count_ones((left & (~left + ONE)) - ONE))
            left &= left - ONE
            while np.uint64(indptr[row + ONE]) <= place:
                row += ONE
            arcs[num] = place
            rows[num] = row
            num += ONE


@inline
def count_ones(word):
    """Return the number of set bits of a 64-bit word."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@inline
def is_sorted(sources, targets):
    """Return whether edges are in order of source, then target."""
    for i in range(1, len(sources)):
        if sources[i] < sources[i - 1] or (sources[i] == sources[i - 1] and targets[i] < targets[i - 1]):
            return False
    return True


@inline
def count_order(values, first, before, starts, order):
    """Sort entries stably by a value: `before` is their order until now, `first` the least value.

    `starts` are zeros, two more than there are values.
    """
    for i in range(len(values)):
        starts[np.uint64(values[i] - first) + np.uint64(2)] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for i in range(len(values)):
        entry = np.uint64(i if before is None else before[i])
        value = np.uint64(values[entry] - first) + ONE
        order[starts[value]] = entry
        starts[value] += 1


@kernel(vertex_t="targets", id_t="users")
def users_of_arcs(lo, hi, arcs, rows, base, targets, users, lower, higher):
    """Find the user ids of the ends of arcs, the lower first.

    Row r is of state base + r. `users` has the user id of every state, and is None if it is the state.
    """
    for i in range(lo, hi):
        near = base + rows[i]
        far = np.int64(targets[arcs[i]])
        if users is not None:
            near = np.int64(users[near])
            far = np.int64(users[far])
        lower[i] = min(near, far)
        higher[i] = max(near, far)


@kernel(weight_t="weights")
def pack_edges(lo, hi, sources, targets, weights, vertex_bits, weight_bits, words):
    """Write each edge as one word: source, target, and weight, if there is one."""
    for i in range(lo, hi):
        word = np.uint64(sources[i]) << np.uint64(vertex_bits) | np.uint64(targets[i])
        if weights is not None:
            word = word << np.uint64(weight_bits) | np.uint64(weights[i])
        words[i] = word


@kernel(weight_t="weights")
def unpack_edges(lo, hi, words, vertex_bits, weight_bits, sources, targets, weights):
    """Read each edge from its word, as pack_edges wrote it."""
    for i in range(lo, hi):
        word = words[i]
        if weights is not None:
            weights[i] = word & ((ONE << np.uint64(weight_bits)) - ONE)
            word >>= np.uint64(weight_bits)
        sources[i] = word >> np.uint64(vertex_bits)
        targets[i] = word & ((ONE << np.uint64(vertex_bits)) - ONE)
