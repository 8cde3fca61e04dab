"""Find what a sweep may do with each segment of states: from which it may lower others, and to what."""

from __future__ import annotations

from mgraph.backends.kernel import kernel


@kernel(lanes=32, dist_t="states")
def find_extremes(lo, hi, segment_bits, states, before, lowest, highest):
    """Lower `lowest` of every segment to the least state that differs from `before`; find the greatest of all states.

    Work items are segments.
    """
    for segment in range(lo, hi):
        first = segment << segment_bits
        last = first + (1 << segment_bits)
        most = states[first]
        for i in range(first, last):
            most = max(most, states[i])
        least = lowest[segment]
        for i in range(first, last):
            if states[i] != before[i]:
                least = min(least, states[i])
        lowest[segment] = least
        highest[segment] = most
