"""Sort records of labels in device memory by their words, the steps between the sorts of 64-bit keys.

Labels that agree in all words so far are a tie; each level reads the next word of those alone.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.labels.words import length_of, words_of

_SIGN = np.uint64(1 << 63)


@kernel()
def flip_signs(lo, hi, places, words):
    """Invert the first bit of every label, so that signed integers order as unsigned ones do."""
    for code in range(lo, hi):
        words[places[code] + 1] ^= _SIGN


@kernel()
def read_keys(lo, hi, codes, ties, places, words, depth, keys, sides):
    """Read word `depth` of each label as its key, or the length of one that has ended before.

    Labels of a tie are divided by sides[i] = 2 * tie, + 1 if the label goes on: those that have ended are before the
    others, shorter ones first. Without `codes`, which are then all in order, there is one tie.
    """
    for i in range(lo, hi):
        code = i
        if codes is not None:
            code = codes[i]
        place = places[code]
        length = length_of(words[place])
        goes_on = length > 8 * depth
        keys[i] = words[place + 1 + depth] if goes_on else np.uint64(length)
        if sides is not None:
            sides[i] = 2 * ties[i] + goes_on


@kernel()
def find_ties(lo, hi, count, order, keys, sides, begins, is_tied):
    """Mark labels that do not differ from the one before or the next; begins[i] is 0 if not from the one before."""
    for i in range(lo, hi):
        is_tied[i] = 0
        for k in range(max(i, 1), min(i + 2, count)):
            a = order[k - 1]
            b = order[k]
            same = keys[a] == keys[b]
            if sides is not None:
                same = same and sides[a] == sides[b] and sides[a] & 1 == 1
            is_tied[i] |= same
            if k == i:
                begins[i] = not same
        if i == 0:
            begins[i] = 1


@kernel()
def take_ties(lo, hi, tied, order, codes, at, ties, codes_of_tied, at_of_tied, ties_of_tied):
    """List the labels that are tied: their codes, their places among all labels, and their ties."""
    for i in range(lo, hi):
        k = tied[i]
        code = order[k]
        place = k
        if codes is not None:
            code = codes[order[k]]
            place = at[k]
        codes_of_tied[i] = code
        at_of_tied[i] = place
        ties_of_tied[i] = ties[k]


@kernel()
def arrange(lo, hi, order, codes, at, sorted_codes):
    """Write labels, which were tied, in their order."""
    for i in range(lo, hi):
        sorted_codes[at[i]] = codes[order[i]]


@kernel(id_t="ids")
def number_labels(lo, hi, sorted_codes, places, words, ids, lengths):
    """Give labels their ids, and write their lengths, each after its id."""
    for i in range(lo, hi):
        code = sorted_codes[i]
        ids[code] = i
        lengths[i + 1] = length_of(words[places[code]])


@kernel()
def write_strings(lo, hi, sorted_codes, places, words, offsets, text):
    """Write labels as strings."""
    for i in range(lo, hi):
        place = places[sorted_codes[i]]
        length = length_of(words[place])
        for d in range(words_of(length)):
            word = words[place + 1 + d]
            for k in range(8 * d, min(8 * d + 8, length)):
                text[offsets[i] + k] = word >> np.uint64(56 - 8 * (k & 7))


@kernel()
def write_integers(lo, hi, sorted_codes, places, words, is_signed, values):
    """Write labels as integers."""
    for i in range(lo, hi):
        word = words[places[sorted_codes[i]] + 1]
        if is_signed != 0:
            word ^= _SIGN
        values[i] = word
