"""Sort records of labels on one rank: a sample sort with buckets sorted side by side, each in the cores' caches.

Records are named by their addresses, and a label's number is the code in its record.

A bucket is sorted by a quicksort of words (Bentley and Sedgewick): by the first word of each label, then those with the
same first word by the second, and so on.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.labels.spread import Spread
from mgraph.labels.strings import Strings, starts_of
from mgraph.labels.words import (
    address_of,
    code_of,
    compare_records,
    copy_bytes,
    length_of,
    load_word,
    word_of_record,
    words_of,
    write_big_endian,
)
from mgraph.types import vertex_dtype

BUCKET_LABELS = 1 << 14
MAX_BUCKETS = 1 << 12
# Sample of a bucket: with 16 labels for each, no bucket is likely to have twice its share.
OVERSAMPLING = 16
SMALL_RUN = 16
# Ranges of labels that are divided among buckets, each by one thread.
RANGE_LABELS = 1 << 18
# Labels with records and ids that are read ahead, so that their cache misses overlap.
GROUP = 32
# Three sides of a partition are left in order of size: the stack holds at most two for each halving of a run.
STACK = 160

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


@inline
def put_ended_first(addresses, lo, hi, depth):
    """Put labels that ended before word `depth` first, shorter ones before; return where the others begin.

    All words before `depth` agree in lo..hi, so each of the few has another number of zeros at its end.
    """
    begin = lo
    for i in range(lo, hi):
        ended = addresses[i]
        length = length_of(load_word(ended))
        if length <= 8 * depth:
            addresses[i] = addresses[begin]
            at = begin
            while at > lo and length_of(load_word(addresses[at - 1])) > length:
                addresses[at] = addresses[at - 1]
                at -= 1
            addresses[at] = ended
            begin += 1
    return begin


@inline
def sort_small(addresses, keys, lo, hi, depth):
    """Sort a short run by insertion; keys[i] is word `depth` of the label at addresses[i]: all words before agree."""
    for i in range(lo + 1, hi):
        key = keys[i]
        address = addresses[i]
        at = i
        while at > lo and (
            key < keys[at - 1] or (key == keys[at - 1] and compare_records(address, addresses[at - 1], depth) < 0)
        ):
            keys[at] = keys[at - 1]
            addresses[at] = addresses[at - 1]
            at -= 1
        keys[at] = key
        addresses[at] = address


@inline
def move_below(addresses, keys, lo, hi, pivot):
    """Move keys of lo..hi below the pivot before the others, without a branch; return where the others begin."""
    end = lo
    for i in range(lo, hi):
        key = keys[i]
        address = addresses[i]
        keys[i] = keys[end]
        addresses[i] = addresses[end]
        keys[end] = key
        addresses[end] = address
        end += np.int64(key < pivot)
    return end


@inline
def partition_run(addresses, keys, lo, hi, pivot):
    """Divide lo..hi into keys below, equal to and above the pivot; return the ends of the first two."""
    below = move_below(addresses, keys, lo, hi, pivot)
    return below, hi if pivot == _LAST else move_below(addresses, keys, below, hi, pivot + _ONE)


@inline
def middle_of(keys, lo, hi, draw):
    """Return the median of three keys at places drawn at random."""
    a = keys[lo + np.int64(draw % np.uint64(hi - lo))]
    b = keys[lo + np.int64((draw >> np.uint64(20)) % np.uint64(hi - lo))]
    c = keys[lo + np.int64((draw >> np.uint64(40)) % np.uint64(hi - lo))]
    return max(min(a, b), min(max(a, b), c))


@inline
def sort_run(addresses):
    """Sort addresses by the labels of their records."""
    keys = np.empty(len(addresses), np.uint64)
    # Runs to sort: begin, end, depth, and whether their keys must be loaded.
    stack = np.empty((STACK, 4), np.int64)
    stack[0] = (0, len(addresses), 0, 1)
    sides = np.empty((3, 4), np.int64)
    draw = np.uint64(0x9E3779B97F4A7C15)
    top = 1
    while top > 0:
        top -= 1
        lo, hi, depth, fresh = stack[top]
        if fresh:
            if depth > 0:
                lo = put_ended_first(addresses, lo, hi, depth)
            for i in range(lo, hi):
                keys[i] = word_of_record(addresses[i], depth)
        if hi - lo <= SMALL_RUN:
            sort_small(addresses, keys, lo, hi, depth)
            continue
        draw ^= draw << np.uint64(13)
        draw ^= draw >> np.uint64(7)
        draw ^= draw << np.uint64(17)
        below, above = partition_run(addresses, keys, lo, hi, middle_of(keys, lo, hi, draw))
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
def classify(begin, end, addresses, splitters, keys, buckets, counts, num_bytes):
    """Find the bucket of each label of ranges begin..end; count labels and their bytes."""
    num = len(addresses)
    for r in range(begin, end):
        for i in range(num * r // len(counts), num * (r + 1) // len(counts)):
            buckets[i] = bucket_of(addresses[i], splitters, keys)
            counts[r, buckets[i]] += 1
            num_bytes[r, buckets[i]] += length_of(load_word(addresses[i]))


@inline
def scatter(begin, end, addresses, buckets, starts, ordered):
    """Write the addresses of ranges begin..end into their buckets."""
    num = len(addresses)
    for r in range(begin, end):
        for i in range(num * r // len(starts), num * (r + 1) // len(starts)):
            at = starts[r, buckets[i]]
            ordered[at] = addresses[i]
            starts[r, buckets[i]] = at + 1


@inline
def sort_buckets(begin, end, ordered, bounds, first_bytes, ids, offsets, base, distinct, num_bytes):
    """Sort buckets begin..end; number their labels from bounds[b] on, and write strings from first_bytes[b] on.

    Equal labels leave a gap at the end of their bucket: count the distinct ones and their bytes.
    """
    warm = _NONE
    for b in range(begin, end):
        run = ordered[bounds[b] : bounds[b + 1]]
        sort_run(run)
        before = _NONE
        next_id = bounds[b]
        at = first_bytes[b]
        for group in range(0, len(run), GROUP):
            # These loads do not depend on each other.
            for i in range(group, min(group + GROUP, len(run))):
                warm ^= np.uint64(ids[code_of(load_word(run[i]))])
            for i in range(group, min(group + GROUP, len(run))):
                address = run[i]
                if before == _NONE or compare_records(before, address, 0) != 0:
                    length = length_of(load_word(address))
                    for d in range(words_of(length)):
                        word = word_of_record(address, d)
                        write_big_endian(base + np.uint64(at + 8 * d), word, length - 8 * d)
                    at += length
                    next_id += 1
                    offsets[next_id] = at
                    before = address
                ids[code_of(load_word(address))] = next_id - 1
        distinct[b] = next_id - bounds[b]
        num_bytes[b] = at - first_bytes[b]
    return warm


@inline
def close_gaps(begin, end, ordered, bounds, first_bytes, firsts, at_bytes, given, source, ids, offsets, target):
    """Subtract from ids and offsets of buckets begin..end the gaps before them, and copy their strings."""
    for b in range(begin, end):
        gap = bounds[b] - firsts[b]
        for i in range(bounds[b], bounds[b + 1]):
            code = code_of(load_word(ordered[i]))
            ids[code] -= gap
        for i in range(firsts[b] + 1, firsts[b + 1] + 1):
            offsets[i] = given[i + gap] - first_bytes[b] + at_bytes[b]
        copy_bytes(source + np.uint64(first_bytes[b]), target + np.uint64(at_bytes[b]), at_bytes[b + 1] - at_bytes[b])


def divide(addresses: np.ndarray, splitters: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the addresses ordered by bucket, the bounds of the buckets, and where their bytes begin.

    Parameters
    ----------
    addresses
        The address of each label's record.
    splitters
        Addresses of records in order: bucket b has the labels from splitter b - 1 to below splitter b.
    """
    num_ranges = max(-(-len(addresses) // RANGE_LABELS), 1)
    keys = first_words(splitters)
    buckets = np.empty(len(addresses), np.uint16)
    counts = np.zeros((num_ranges, len(splitters) + 1), np.int64)
    num_bytes = np.zeros_like(counts)
    spread(classify, num_ranges, addresses, splitters, keys, buckets, counts, num_bytes)
    ends = np.cumsum(counts.T.reshape(-1)).reshape(counts.shape[::-1]).T
    ordered = np.empty(len(addresses), np.uint64)
    spread(scatter, num_ranges, addresses, buckets, np.ascontiguousarray(ends - counts), ordered)
    return ordered, starts_of(counts.sum(axis=0)), starts_of(num_bytes.sum(axis=0))


@inline
def first_words(addresses):
    """Return the first word of each record."""
    words = np.empty(len(addresses), np.uint64)
    for i in range(len(addresses)):
        words[i] = word_of_record(addresses[i], 0)
    return words


def choose_splitters(addresses: np.ndarray, num_buckets: int) -> np.ndarray:
    """Return addresses of records that divide the labels into buckets of about the same size."""
    sample = addresses[:: max(len(addresses) // (OVERSAMPLING * num_buckets), 1)].copy()
    sort_run(sample)
    return sample[np.arange(1, num_buckets) * len(sample) // num_buckets] if len(sample) else sample


def sort_labels(addresses: np.ndarray, num_codes: int, spread: Spread) -> tuple[np.ndarray, Strings]:
    """Return for each code the place of its label among the distinct ones, and these in order.

    Codes of no record have any place.
    """
    num_buckets = min(max(len(addresses) // BUCKET_LABELS, 1), MAX_BUCKETS)
    ordered, bounds, first_bytes = divide(addresses, choose_splitters(addresses, num_buckets), spread)
    num_buckets = len(bounds) - 1
    ids = np.empty(num_codes, vertex_dtype(num_codes))
    offsets = np.zeros(len(ordered) + 1, np.int64)
    data = np.empty(int(first_bytes[-1]), np.uint8)
    distinct = np.zeros(num_buckets, np.int64)
    num_bytes = np.zeros(num_buckets, np.int64)
    numbered = ids, offsets, address_of(data), distinct, num_bytes
    spread(sort_buckets, num_buckets, ordered, bounds, first_bytes, *numbered)
    if distinct.sum() == len(ordered):
        return ids, Strings(offsets, data)
    firsts = starts_of(distinct)
    at_bytes = starts_of(num_bytes)
    closed = Strings(np.zeros(int(firsts[-1]) + 1, np.int64), np.empty(int(at_bytes[-1]), np.uint8))
    gaps = ordered, bounds, first_bytes, firsts, at_bytes
    spread(close_gaps, num_buckets, *gaps, offsets, address_of(data), ids, closed.offsets, address_of(closed.data))
    return ids, closed
