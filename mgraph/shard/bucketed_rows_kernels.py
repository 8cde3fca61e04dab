"""Put arcs into row buckets, and sort the arcs of one bucket; for threads of a CPU, each with a range of its own.

An arc has its target and a tag, the number of its row in the bucket. A sort key is row, target and, if there are
weights, the arc's index in the bucket, from the top.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import state_of


@inline
def gather_ends(lo, hi, sources, targets, weights, table, drop_loops, ends, kept_weights):
    """Write both ends of edges lo..hi, one after the other, and the weights; return how many edges are kept.

    `table` has the position of every user id, None if they are equal.
    """
    num = 0
    for i in range(lo, hi):
        u = sources[i]
        v = targets[i]
        ends[2 * num] = u if table is None else table[u]
        ends[2 * num + 1] = v if table is None else table[v]
        if weights is not None:
            kept_weights[num] = weights[i]
        num += not (drop_loops and u == v)
    return num


@inline
def deal_arcs(
    num, step, ends, kept_weights, whole, shift, bucket_of, first_rows, buckets, cursors, targets, tags, weights
):  # fmt: skip
    """Write arcs from ends[i] to ends[i ^ 1], for every `step`-th i, into their buckets.

    Row r has granule r below `whole`, else whole + ((r - whole) >> shift); `bucket_of` has the bucket of a granule.
    """
    counts = np.zeros(len(cursors), np.int64)
    for i in range(0, 2 * num, step):
        row = np.int64(ends[i])
        granule = row if row < whole else whole + ((row - whole) >> shift)
        bucket = bucket_of[granule]
        buckets[i] = bucket
        counts[bucket] += 1
    # Counted first, a range takes its part of a bucket by one atomic.
    for bucket in range(len(cursors)):
        if counts[bucket]:
            counts[bucket] = atomic_add(cursors, bucket, counts[bucket])
    for i in range(0, 2 * num, step):
        bucket = np.int64(buckets[i])
        slot = counts[bucket]
        counts[bucket] = slot + 1
        targets[slot] = ends[i ^ 1]
        tags[slot] = np.int64(ends[i]) - first_rows[bucket]
        if weights is not None:
            weights[slot] = kept_weights[i >> 1]


@inline
def pack_bucket(targets, tags, shift, index_bits, keys):
    """Pack row, target and, with `index_bits`, the index of each arc of a bucket into its sort key."""
    if index_bits:
        for i in range(len(keys)):
            keys[i] = ((np.int64(tags[i]) << shift | np.int64(targets[i])) << index_bits) | i
    else:
        for i in range(len(keys)):
            keys[i] = np.int64(tags[i]) << shift | np.int64(targets[i])


@inline
def drop_equal_keys(keys, index_bits, weights, lightest):
    """Keep the first of equal sorted keys, without indices, and the lightest weight; return how many there are."""
    num = 0
    before = np.int64(-1)
    if weights is None:
        for i in range(len(keys)):
            key = keys[i]
            keys[num] = key
            num += key != before
            before = key
        return num
    mask = (np.int64(1) << index_bits) - 1
    for i in range(len(keys)):
        key = keys[i] >> index_bits
        weight = weights[keys[i] & mask]
        if key != before:
            before = key
            keys[num] = key
            lightest[num] = weight
            num += 1
        elif weight < lightest[num - 1]:
            lightest[num - 1] = weight
    return num


@inline
def write_bucket(keys, lightest, shift, stride, multiplier, at, lengths, targets, weights):
    """Write the arcs of sorted keys from index `at` on, and count those of each row."""
    mask = (np.int64(1) << shift) - 1
    for i in range(len(keys)):
        key = keys[i]
        lengths[key >> shift] += 1
        targets[at + i] = state_of(key & mask, stride, multiplier)
    if weights is not None:
        for i in range(len(keys)):
            weights[at + i] = lightest[i]
