"""Sort records of labels on one rank: a sample sort with buckets sorted side by side, each in the cores' caches.

A bucket is sorted by a quicksort of words (Bentley and Sedgewick): by the first word of each label, then those with the
same first word by the second, and so on.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.labels.spread import Spread
from mgraph.labels.strings import Strings
from mgraph.labels.words import (
    address_of,
    compare_records,
    length_of,
    load_word,
    word_of_record,
    words_of,
    write_big_endian,
)
from mgraph.types import vertex_dtype

BUCKET_LABELS = 1 << 15
MAX_BUCKETS = 1 << 12
# Sample of a bucket: with 16 labels for each, no bucket is likely to have twice its share.
OVERSAMPLING = 16
SMALL_RUN = 16
# Ranges of labels that are divided among buckets, each by one thread.
RANGE_LABELS = 1 << 18
# Three sides of a partition are left in order of size: the stack holds at most two for each halving of a run.
STACK = 160

_NONE = np.uint64(0)


@inline
def put_ended_first(order, addresses, lo, hi, depth):
    """Put labels that ended before word `depth` first, shorter ones before; return where the others begin.

    All words before `depth` agree in lo..hi, so each of the few has another number of zeros at its end.
    """
    begin = lo
    for i in range(lo, hi):
        length = length_of(load_word(addresses[order[i]]))
        if length <= 8 * depth:
            ended = order[i]
            order[i] = order[begin]
            at = begin
            while at > lo and length_of(load_word(addresses[order[at - 1]])) > length:
                order[at] = order[at - 1]
                at -= 1
            order[at] = ended
            begin += 1
    return begin


@inline
def sort_small(order, keys, addresses, lo, hi, depth):
    """Sort a short run by insertion; keys[i] is word `depth` of label order[lo + i], and all words before agree."""
    for i in range(lo + 1, hi):
        key = keys[i]
        label = order[i]
        at = i
        while at > lo and (
            key < keys[at - 1]
            or (key == keys[at - 1] and compare_records(addresses[label], addresses[order[at - 1]], depth) < 0)
        ):
            keys[at] = keys[at - 1]
            order[at] = order[at - 1]
            at -= 1
        keys[at] = key
        order[at] = label


@inline
def partition_run(order, keys, lo, hi, pivot):
    """Divide lo..hi into keys below, equal to and above the pivot; return the ends of the first two."""
    below = lo
    above = hi
    i = lo
    while i < above:
        key = keys[i]
        if key < pivot:
            keys[i], keys[below] = keys[below], key
            order[i], order[below] = order[below], order[i]
            below += 1
            i += 1
        elif key > pivot:
            above -= 1
            keys[i], keys[above] = keys[above], key
            order[i], order[above] = order[above], order[i]
        else:
            i += 1
    return below, above


@inline
def middle_of(keys, lo, hi, draw):
    """Return the median of three keys at places drawn at random."""
    a = keys[lo + np.int64(draw % np.uint64(hi - lo))]
    b = keys[lo + np.int64((draw >> np.uint64(20)) % np.uint64(hi - lo))]
    c = keys[lo + np.int64((draw >> np.uint64(40)) % np.uint64(hi - lo))]
    return max(min(a, b), min(max(a, b), c))


@inline
def sort_run(order, addresses):
    """Sort labels order[:] by the records at addresses[label]."""
    keys = np.empty(len(order), np.uint64)
    # Runs to sort: begin, end, depth, and whether their keys must be loaded.
    stack = np.empty((STACK, 4), np.int64)
    stack[0] = (0, len(order), 0, 1)
    sides = np.empty((3, 4), np.int64)
    draw = np.uint64(0x9E3779B97F4A7C15)
    top = 1
    while top > 0:
        top -= 1
        lo, hi, depth, fresh = stack[top]
        if fresh:
            if depth > 0:
                lo = put_ended_first(order, addresses, lo, hi, depth)
            for i in range(lo, hi):
                keys[i] = word_of_record(addresses[order[i]], depth)
        if hi - lo <= SMALL_RUN:
            sort_small(order, keys, addresses, lo, hi, depth)
            continue
        draw ^= draw << np.uint64(13)
        draw ^= draw >> np.uint64(7)
        draw ^= draw << np.uint64(17)
        below, above = partition_run(order, keys, lo, hi, middle_of(keys, lo, hi, draw))
        sides[0] = (lo, below, depth, 0)
        sides[1] = (below, above, depth + 1, 1)
        sides[2] = (above, hi, depth, 0)
        # The smallest is sorted next, which bounds the stack.
        for i in range(2):
            for k in range(2 - i):
                if sides[k, 1] - sides[k, 0] < sides[k + 1, 1] - sides[k + 1, 0]:
                    for c in range(4):
                        sides[k, c], sides[k + 1, c] = sides[k + 1, c], sides[k, c]
        for k in range(3):
            if sides[k, 1] - sides[k, 0] > 1:
                stack[top] = sides[k]
                top += 1


@inline
def bucket_of(address, splitters, keys):
    """Return the number of splitters that are not above a label; keys are the splitters' first words."""
    key = word_of_record(address, 0)
    lo = 0
    hi = len(splitters)
    while lo < hi:
        middle = (lo + hi) >> 1
        below = keys[middle] < key or (keys[middle] == key and compare_records(splitters[middle], address, 0) <= 0)
        if below:
            lo = middle + 1
        else:
            hi = middle
    return lo


@inline
def classify(begin, end, addresses, splitters, keys, buckets, counts):
    """Find the bucket of each label of ranges begin..end, and count them; skip codes of no label."""
    num = len(addresses)
    for r in range(begin, end):
        for i in range(num * r // len(counts), num * (r + 1) // len(counts)):
            if addresses[i] != _NONE:
                buckets[i] = bucket_of(addresses[i], splitters, keys)
                counts[r, buckets[i]] += 1


@inline
def scatter(begin, end, addresses, buckets, starts, order):
    """Write the labels of ranges begin..end into their buckets."""
    num = len(addresses)
    for r in range(begin, end):
        for i in range(num * r // len(starts), num * (r + 1) // len(starts)):
            if addresses[i] != _NONE:
                at = starts[r, buckets[i]]
                order[at] = i
                starts[r, buckets[i]] = at + 1


@inline
def sort_buckets(begin, end, addresses, bounds, order, distinct, num_bytes):
    """Sort buckets begin..end; mark repeated labels by ~label; count the distinct ones and their bytes."""
    for b in range(begin, end):
        run = order[bounds[b] : bounds[b + 1]]
        sort_run(run, addresses)
        before = _NONE
        for i in range(len(run)):
            address = addresses[run[i]]
            if before != _NONE and compare_records(before, address, 0) == 0:
                run[i] = ~run[i]
            else:
                distinct[b] += 1
                num_bytes[b] += length_of(load_word(address))
                before = address


def divide(addresses: np.ndarray, splitters: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
    """Return all labels ordered by bucket, and the bounds of the buckets.

    Parameters
    ----------
    addresses
        The address of each label's record, 0 for numbers that are no label's.
    splitters
        Addresses of records in order: bucket b has the labels from splitter b - 1 to below splitter b.
    """
    num_ranges = max(-(-len(addresses) // RANGE_LABELS), 1)
    keys = first_words(splitters)
    buckets = np.empty(len(addresses), np.uint16)
    counts = np.zeros((num_ranges, len(splitters) + 1), np.int64)
    spread(classify, num_ranges, addresses, splitters, keys, buckets, counts)
    ends = np.cumsum(counts.T.reshape(-1)).reshape(counts.shape[::-1]).T
    order = np.empty(int(ends[-1, -1]), np.int64)
    spread(scatter, num_ranges, addresses, buckets, np.ascontiguousarray(ends - counts), order)
    return order, np.concatenate([[0], ends[-1]])


@inline
def first_words(addresses):
    """Return the first word of each record."""
    words = np.empty(len(addresses), np.uint64)
    for i in range(len(addresses)):
        words[i] = word_of_record(addresses[i], 0)
    return words


def choose_splitters(addresses: np.ndarray, num_buckets: int) -> np.ndarray:
    """Return addresses of records that divide the labels into buckets of about the same size."""
    there = addresses[:: max(len(addresses) // (4 * OVERSAMPLING * num_buckets), 1)]
    there = there[there != _NONE]
    order = np.arange(len(there))
    sort_run(order, there)
    picks = np.arange(1, num_buckets) * len(there) // num_buckets
    return there[order[picks]] if len(there) else there


@inline
def number_buckets(begin, end, addresses, bounds, order, first, first_byte, ids, offsets, base):
    """Give the labels of buckets begin..end their ids, and write the distinct ones as strings."""
    for b in range(begin, end):
        next_id = first[b]
        at = first_byte[b]
        for i in range(bounds[b], bounds[b + 1]):
            label = order[i]
            if label < 0:
                ids[~label] = next_id - 1
                continue
            ids[label] = next_id
            next_id += 1
            length = length_of(load_word(addresses[label]))
            for d in range(words_of(length)):
                word = word_of_record(addresses[label], d)
                write_big_endian(base + np.uint64(at + 8 * d), word, length - 8 * d)
            at += length
            offsets[next_id] = at


def sort_labels(addresses: np.ndarray, spread: Spread) -> tuple[np.ndarray, Strings]:
    """Return the rank of each label among the distinct ones, and these in order."""
    num_buckets = min(max(len(addresses) // BUCKET_LABELS, 1), MAX_BUCKETS)
    order, bounds = divide(addresses, choose_splitters(addresses, num_buckets), spread)
    num_buckets = len(bounds) - 1
    distinct = np.zeros(num_buckets + 1, np.int64)
    num_bytes = np.zeros(num_buckets + 1, np.int64)
    spread(sort_buckets, num_buckets, addresses, bounds, order, distinct[1:], num_bytes[1:])
    first = np.cumsum(distinct)
    first_byte = np.cumsum(num_bytes)
    ids = np.empty(len(addresses), vertex_dtype(len(addresses)))
    offsets = np.zeros(int(first[-1]) + 1, np.int64)
    data = np.empty(int(first_byte[-1]), np.uint8)
    spread(number_buckets, num_buckets, addresses, bounds, order, first, first_byte, ids, offsets, address_of(data))
    return ids, Strings(offsets, data)
