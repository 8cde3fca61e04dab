"""A hash table of labels in device memory: find or insert a batch of labels by one thread each.

A slot is empty (0), or has 23 bits of the hash and names a record: one of the dictionary by its place, or, while a
batch is inserted, one of the batch by its number. Both are written before the launch that compares with them, so that a
thread that finds a slot can read its label, no matter which thread has claimed the slot.

    pack:    write the labels of the batch as records (words.py)
    insert:  a label finds its record, or claims a slot, or finds the slot that an equal label has claimed
    append:  labels that have claimed slots are copied to the dictionary, and their slots name the copies
    resolve: labels that have found or claimed such slots get the codes
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_compare_and_swap
from mgraph.labels.dictionary import hash_words, is_record
from mgraph.labels.words import code_of, header_of, length_of, words_of

# Sizes of new labels are summed in words, with their number in the upper bits.
LABEL_SHIFT = 40
WORDS_MASK = (1 << LABEL_SHIFT) - 1
# A code with this bit is the number of a slot that a label of the batch has claimed.
CLAIMED = 1 << 31

_EMPTY = np.uint64(0)
_ONE = np.uint64(1)
_OF_BATCH = np.uint64(1 << 63)
_TAG = np.uint64(((1 << 23) - 1) << 40)
_PLACE = np.uint64((1 << 40) - 1)
_SLOT = np.uint32(CLAIMED - 1)
_CLAIMED = np.uint32(CLAIMED)


@kernel()
def pack_strings(lo, hi, text, offsets, first, packed, starts):
    """Write string i, bytes offsets[i] - first .. of the text, as a record at starts[i].

    A record has at most 2 + length // 8 words, and so begins after as many for the strings before.
    """
    for i in range(lo, hi):
        begin = offsets[i] - first
        length = offsets[i + 1] - offsets[i]
        start = 2 * i + (begin >> 3)
        starts[i] = start
        packed[start] = header_of(length, 0)
        for d in range(words_of(length)):
            word = np.uint64(0)
            for k in range(8 * d, 8 * d + 8):
                byte = text[begin + k] if k < length else np.uint8(0)
                word = word << np.uint64(8) | np.uint64(byte)
            packed[start + 1 + d] = word


@kernel()
def pack_integers(lo, hi, values, packed, starts):
    """Write integer i as a record at starts[i]."""
    for i in range(lo, hi):
        starts[i] = 2 * i
        packed[2 * i] = header_of(8, 0)
        packed[2 * i + 1] = values[i]


@kernel()
def insert_labels(lo, hi, packed, starts, seeds, words, num_slots, slots, sizes, codes):
    """Find the code of label i, or claim a slot for it; sizes[i] is that of its record if this thread has claimed one.

    There is an empty slot for every label.
    """
    mask = np.uint64(num_slots - 1)
    for i in range(lo, hi):
        begin = starts[i]
        length = length_of(packed[begin])
        hashed = hash_words(packed, begin + 1, length, seeds)
        at = hashed & mask
        tag = (hashed >> _ONE) & _TAG
        sizes[i] = 0
        while True:
            slot = slots[at]
            if slot == _EMPTY:
                slot = atomic_compare_and_swap(slots, at, _EMPTY, _OF_BATCH | tag | np.uint64(i))
                if slot == _EMPTY:
                    sizes[i] = (1 << LABEL_SHIFT) + 1 + words_of(length)
                    codes[i] = _CLAIMED | np.uint32(at)
                    break
            if slot & _TAG == tag:
                place = np.int64(slot & _PLACE)
                if slot & _OF_BATCH != _EMPTY:
                    if is_record(packed, begin, packed, starts[place]):
                        codes[i] = _CLAIMED | np.uint32(at)
                        break
                elif is_record(packed, begin, words, place):
                    codes[i] = code_of(words[place])
                    break
            at = (at + _ONE) & mask


@kernel()
def append_labels(lo, hi, packed, starts, ends, codes, used, count, words, places, slots):
    """Copy new labels after `used` words and `count` labels; `ends` are the sums of their sizes."""
    for i in range(lo, hi):
        before = np.int64(0)
        if i > 0:
            before = ends[i - 1]
        if ends[i] == before:
            continue
        begin = starts[i]
        length = length_of(packed[begin])
        place = used + (before & WORDS_MASK)
        code = count + (before >> LABEL_SHIFT)
        words[place] = header_of(length, code)
        for d in range(1, words_of(length) + 1):
            words[place + d] = packed[begin + d]
        places[code] = place
        at = codes[i] & _SLOT
        slots[at] = (slots[at] & _TAG) | np.uint64(place)


@kernel()
def resolve_codes(lo, hi, slots, words, codes):
    """Replace the numbers of slots by the codes of their labels."""
    for i in range(lo, hi):
        if codes[i] & _CLAIMED != 0:
            codes[i] = code_of(words[np.int64(slots[codes[i] & _SLOT] & _PLACE)])


@kernel()
def insert_records(lo, hi, places, words, seeds, num_slots, slots):
    """Insert the dictionary's records, which are distinct, into empty slots."""
    mask = np.uint64(num_slots - 1)
    for code in range(lo, hi):
        place = places[code]
        hashed = hash_words(words, place + 1, length_of(words[place]), seeds)
        at = hashed & mask
        slot = ((hashed >> _ONE) & _TAG) | np.uint64(place)
        while atomic_compare_and_swap(slots, at, _EMPTY, slot) != _EMPTY:
            at = (at + _ONE) & mask
