"""Pass the scores of vertices along their arcs, and make new scores of what arrives.

Scores are in units of 2^-62. Without weights, `given` has what a vertex passes along each of its arcs: an integer. With
weights it has a float64, which times the weight of an arc is what goes along it, rounded down. Floats are only
multiplied and divided, each time rounded as IEEE 754 says, and all sums are sums of integers: so twins, threads and
ranks give equal bits in any order.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.pagerank.fixed_point import scaled
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import row_of_arc

# Sums of weights out of a vertex, beyond which numbers of scores and weights would leave the range of floats.
MIN_TOTAL = 2.0**-900
MAX_TOTAL = 2.0**1000


@kernel(lanes=32, weight_t="weights")
def total_weights(lo, hi, indptr, weights, totals, counters):
    """Sum the weights of each row, as shares of the greatest in units of 2^-62.

    Equal for any order of the row. counters[0] counts totals out of range that are not 0.
    """
    for row in range(lo, hi):
        greatest = 0.0
        for arc in range(indptr[row], indptr[row + 1]):
            greatest = max(greatest, np.float64(weights[arc]))
        high = np.int64(0)
        low = np.int64(0)
        if greatest > 0:
            for arc in range(indptr[row], indptr[row + 1]):
                # The product and the difference are exact.
                share = np.float64(weights[arc]) / greatest * 2.0**30
                whole = np.int64(share)
                high += whole
                low += np.int64((share - np.float64(whole)) * 2.0**32)
        total = greatest * (np.float64(high) * 2.0**-30 + np.float64(low) * 2.0**-62)
        totals[row] = total
        if total > 0 and not (MIN_TOTAL < total < MAX_TOTAL):
            atomic_add(counters, 0, 1)


@kernel(vertex_t="targets", weight_t="weights", dist_t="given")
def pull_scores(lo, hi, indptr, num_rows, targets, weights, given, received, counters):
    """Add to received[row] what the arcs of each in-row bring; work items are arcs.

    `given` is by state index. counters[0] is what all arcs bring, modulo 2^64.
    """
    row = row_of_arc(indptr, num_rows, lo)
    arc = lo
    passed = np.int64(0)
    while arc < hi:
        end = min(indptr[row + 1], hi)
        part = np.int64(0)
        for k in range(arc, end):
            # An unsigned index is not tested for a negative one: half the time.
            i = np.uint64(k)
            source = np.uint64(targets[i])
            if weights is None:
                part += np.int64(given[source])
            else:
                part += np.int64(given[source] * np.float64(weights[i]))
        if indptr[row] >= lo and indptr[row + 1] <= hi:
            received[row] += part
        else:
            # Race: another thread may have the other arcs of the row.
            atomic_add(received, row, part)
        passed += part
        arc = end
        row += 1
    atomic_add(counters, 0, passed)


@kernel(id_t="degrees", dist_t="given")
def settle_scores(lo, hi, received, degrees, totals, teleport, rest, damping, scores, given, counters):
    """Make the new score of each vertex of what it has received and its share of the rest; find what it gives next.

    The share is teleport[i] of `rest`, or without `teleport` the number `rest` itself. A vertex gives by its total of
    weights, or without `totals` by its degree. `counters` are how much scores rise, and how much they fall.
    """
    rises = np.int64(0)
    falls = np.int64(0)
    for i in range(lo, hi):
        share = rest if teleport is None else scaled(teleport[i], rest)
        score = received[i] + share
        change = score - scores[i]
        rises += max(change, 0)
        falls += max(-change, 0)
        scores[i] = score
        passed = scaled(damping, score)
        if totals is None:
            given[i] = passed // np.int64(degrees[i]) if degrees[i] > 0 else 0
        else:
            given[i] = np.float64(passed) / totals[i] if totals[i] > 0 else 0.0
    atomic_add(counters, 0, rises)
    atomic_add(counters, 1, falls)


@kernel()
def finish_scores(lo, hi, units, share, scores):
    """Return units of 2^-62 as floats, `share` where there are none: the vertices without arcs."""
    for i in range(lo, hi):
        scores[i] = np.float64(share if units[i] < 0 else units[i]) * 2.0**-62
