"""Sort edges and arcs by one core: by counting, since vertices and rows are small integers."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

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
