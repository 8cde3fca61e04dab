"""One rank's dictionary of labels: an open-addressing hash table in parts, to which several threads add at a time.

The upper bits of a label's hash choose its part. Each part has a lock, slots and records (words.py), so that threads
rarely meet and a part that grows is small. A slot has 24 bits of the hash and the place of a record; labels are equal
only if all their bytes are. The hash is seeded at random, so that no input can make many labels collide on purpose.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.errors import InputError, WouldNotFit
from mgraph.labels.strings import Strings
from mgraph.labels.words import (
    address_of,
    bytes_as_word,
    code_of,
    fold_product,
    header_of,
    length_of,
    words_of,
)

PART_BITS = 8
NUM_PARTS = 1 << PART_BITS
# Labels packed at a time: their words stay near the cores, and a call for each part costs about 1 ns a label.
BATCH = 1 << 20
MAX_LENGTH = 1 << 30
# Labels with slots that are read ahead, so that their cache misses overlap.
GROUP = 32
FIRST_SLOTS = 64
FIRST_WORDS = 64

_PART_SHIFT = np.uint64(64 - PART_BITS)
_PLACE_BITS = np.uint64(40)
_PLACE = np.uint64((1 << 40) - 1)
_TAG = np.uint64(((1 << 24) - 1) << 40)
_TAG_SHIFT = np.uint64(8)
_ONE = np.uint64(1)
_EMPTY = np.uint64(0)

# Where `encode` stopped: indices of its state.
COUNT, USED, NEXT = range(3)


@inline
def hash_words(packed, begin, length, seeds):
    """Return the hash of the label with words from packed[begin] on."""
    hashed = seeds[0] ^ np.uint64(length)
    for i in range(begin, begin + words_of(length)):
        hashed = fold_product(hashed ^ packed[i], seeds[1])
    return fold_product(hashed ^ seeds[2], seeds[3])


@inline
def pack_strings(offsets, base, limit, lo, packed, starts):
    """Pack strings lo.. as records."""
    end = 0
    for i in range(len(starts)):
        begin = base + np.uint64(offsets[lo + i])
        length = offsets[lo + i + 1] - offsets[lo + i]
        starts[i] = end
        packed[end] = header_of(length, 0)
        for d in range(words_of(length)):
            packed[end + 1 + d] = bytes_as_word(begin + np.uint64(8 * d), length - 8 * d, limit)
        end += 1 + words_of(length)


@inline
def pack_integers(values, packed, starts):
    """Pack integers as records of one word."""
    for i in range(len(starts)):
        starts[i] = 2 * i
        packed[2 * i] = header_of(8, 0)
        packed[2 * i + 1] = values[i]


@inline
def group_by_part(packed, starts, seeds, hashes, order, first):
    """Hash the labels; order them by part: part p has order[first[p] : first[p + 1]]."""
    first[:] = 0
    for i in range(len(starts)):
        hashed = hash_words(packed, starts[i] + 1, length_of(packed[starts[i]]), seeds)
        hashes[i] = hashed
        first[np.int64(hashed >> _PART_SHIFT) + 1] += 1
    for p in range(NUM_PARTS):
        first[p + 1] += first[p]
    # Shifted by one place while it counts, as in a counting sort.
    for i in range(len(starts) - 1, -1, -1):
        part = np.int64(hashes[i] >> _PART_SHIFT)
        first[part + 1] -= 1
        order[first[part + 1]] = i
    for p in range(NUM_PARTS):
        first[p] = first[p + 1]
    first[NUM_PARTS] = len(starts)


@inline
def is_record(packed, begin, words, place):
    """Return whether a packed label equals the record at `place`, headers compared by their lengths."""
    length = length_of(packed[begin])
    if length != length_of(words[place]):
        return False
    for d in range(1, words_of(length) + 1):  # noqa: SIM110  Numba compiles no generator expression
        if packed[begin + d] != words[place + d]:
            return False
    return True


@inline
def encode(part, packed, starts, hashes, order, slots, words, state, codes):
    """Find or insert labels order[state[NEXT]:] in a part, until all are coded or the part is full."""
    mask = np.uint64(len(slots) - 1)
    warm = _EMPTY
    for group in range(state[NEXT], len(order), GROUP):
        last = min(group + GROUP, len(order))
        # These loads do not depend on each other; those of the search below do.
        for k in range(group, last):
            slot = slots[hashes[order[k]] & mask]
            warm ^= words[np.int64(slot & _PLACE)]
        for k in range(group, last):
            i = order[k]
            begin = starts[i]
            at = hashes[i] & mask
            tag = (hashes[i] << _TAG_SHIFT) & _TAG
            length = length_of(packed[begin])
            while True:
                slot = slots[at]
                if slot == _EMPTY:
                    size = 1 + words_of(length)
                    if 3 * (state[COUNT] + 1) > 2 * len(slots) or state[USED] + size > len(words):
                        state[NEXT] = k
                        return warm
                    place = state[USED]
                    code = state[COUNT] * NUM_PARTS + part
                    words[place] = header_of(length, code)
                    for d in range(1, size):
                        words[place + d] = packed[begin + d]
                    slots[at] = tag | np.uint64(place)
                    state[COUNT] += 1
                    state[USED] += size
                    codes[i] = code
                    break
                if slot & _TAG == tag and is_record(packed, begin, words, np.int64(slot & _PLACE)):
                    codes[i] = code_of(words[np.int64(slot & _PLACE)])
                    break
                at = (at + _ONE) & mask
    state[NEXT] = len(order)
    return warm


@inline
def insert_all(words, used, seeds, slots):
    """Insert the records of a part into empty slots."""
    mask = np.uint64(len(slots) - 1)
    place = 1
    while place < used:
        length = length_of(words[place])
        hashed = hash_words(words, place + 1, length, seeds)
        at = hashed & mask
        while slots[at] != _EMPTY:
            at = (at + _ONE) & mask
        slots[at] = ((hashed << _TAG_SHIFT) & _TAG) | np.uint64(place)
        place += 1 + words_of(length)


@inline
def list_records(words, used, base, flip, addresses):
    """Write the address of each record of a part at its code; flip bits of the first words of integers."""
    place = 1
    while place < used:
        words[place + 1] ^= flip
        addresses[code_of(words[place])] = base + np.uint64(8 * place)
        place += 1 + words_of(length_of(words[place]))


@inline
def measure_lengths(offsets):
    """Return the first string that is empty or too long, -1 if there is none, and the length of the longest."""
    longest = 0
    for i in range(len(offsets) - 1):
        length = offsets[i + 1] - offsets[i]
        if length <= 0 or length >= MAX_LENGTH:
            return i, length
        longest = max(longest, length)
    return -1, longest


def check_lengths(strings: Strings, where: Callable[[int], str]) -> int:
    """Return the length of the longest string; refuse one that is empty or too long."""
    wrong, longest = measure_lengths(strings.offsets)
    if wrong >= 0:
        raise InputError(
            f"{where(wrong)}: an id is missing: an empty text names no vertex"
            if longest <= 0
            else f"{where(wrong)}: an id is longer than {MAX_LENGTH:,} bytes"
        )
    return int(longest)


def random_seeds() -> np.ndarray:
    """Return seeds of the hash, which no input can foresee."""
    return np.frombuffer(os.urandom(32), np.uint64) | np.uint64(1)


class _Part:
    """The labels of one value of the upper hash bits."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.slots = np.zeros(FIRST_SLOTS, np.uint64)
        # Place 0 is no record: a slot of 0 is empty.
        self.words = np.zeros(FIRST_WORDS, np.uint64)
        self.state = np.array([0, 1, 0], np.int64)

    def encode(self, packed: np.ndarray, starts: np.ndarray, hashes: np.ndarray, order: np.ndarray, seeds: np.ndarray,
               codes: np.ndarray) -> None:  # fmt: skip
        """Write the codes of the labels in `order`."""
        self.state[NEXT] = 0
        while True:
            encode(self.number, packed, starts, hashes, order, self.slots, self.words, self.state, codes)
            if self.state[NEXT] == len(order):
                return
            self._grow(length_of(packed[starts[order[self.state[NEXT]]]]), seeds)

    def _grow(self, length: int, seeds: np.ndarray) -> None:
        count, used, _ = self.state.tolist()
        if used + 1 + words_of(length) > len(self.words):
            words = np.empty(used + max(used // 2, 1 + words_of(length), FIRST_WORDS), np.uint64)
            words[:used] = self.words[:used]
            self.words = words
        if 3 * (count + 1) > 2 * len(self.slots):
            if count >= 1 << (32 - PART_BITS) - 1:
                raise WouldNotFit("one rank has more than 2 billion distinct ids: use more ranks")
            self.slots = np.zeros(2 * len(self.slots), np.uint64)
            insert_all(self.words, used, seeds, self.slots)


class Dictionary:
    """Distinct labels of one rank, with a code for each in no particular order."""

    def __init__(self) -> None:
        self._seeds = random_seeds()
        self._parts = [_Part(p) for p in range(NUM_PARTS)]
        self._turns = itertools.count()

    @property
    def nbytes(self) -> int:
        return sum(part.slots.nbytes + part.words.nbytes for part in self._parts)

    def __len__(self) -> int:
        return sum(int(part.state[COUNT]) for part in self._parts)

    def encode_integers(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of integers of 64 bits."""
        codes = np.empty(len(values), np.uint32)
        words = np.ascontiguousarray(values).view(np.uint64)
        for lo in range(0, len(values), BATCH):
            batch = words[lo : lo + BATCH]
            packed = np.empty(2 * len(batch), np.uint64)
            starts = np.empty(len(batch), np.int64)
            pack_integers(batch, packed, starts)
            self._encode(packed, starts, codes[lo : lo + BATCH])
        return codes

    def encode_strings(self, strings: Strings, where: Callable[[int], str]) -> np.ndarray:
        """Return the codes of strings; refuse an empty one."""
        check_lengths(strings, where)
        codes = np.empty(len(strings), np.uint32)
        data = np.ascontiguousarray(strings.data)
        base = address_of(data)
        for lo in range(0, len(strings), BATCH):
            num = min(BATCH, len(strings) - lo)
            num_bytes = int(strings.offsets[lo + num] - strings.offsets[lo])
            packed = np.empty(2 * num + num_bytes // 8, np.uint64)
            starts = np.empty(num, np.int64)
            pack_strings(strings.offsets, base, base + np.uint64(len(data)), lo, packed, starts)
            self._encode(packed, starts, codes[lo : lo + num])
        return codes

    def _encode(self, packed: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        num = len(starts)
        hashes = np.empty(num, np.uint64)
        order = np.empty(num, np.uint32)
        first = np.empty(NUM_PARTS + 1, np.int64)
        group_by_part(packed, starts, self._seeds, hashes, order, first)
        # Threads begin at different parts, and leave those that another one holds for later.
        begin = next(self._turns) * 97 % NUM_PARTS
        left = [p for p in (*range(begin, NUM_PARTS), *range(begin)) if first[p] < first[p + 1]]
        while left:
            busy = []
            for k, p in enumerate(left):
                part = self._parts[p]
                # The first one of a round is waited for: so a round always ends with fewer parts.
                if not part.lock.acquire(blocking=k == 0):
                    busy.append(p)
                    continue
                try:
                    part.encode(packed, starts, hashes, order[first[p] : first[p + 1]], self._seeds, codes)
                finally:
                    part.lock.release()
            left = busy

    def records(self, flip: np.uint64) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the address of each code's record (0 for none), and the arrays that have them; drop the slots.

        The bits of `flip` are inverted in the first word of every label.
        """
        num_codes = max(int(part.state[COUNT]) for part in self._parts) * NUM_PARTS
        addresses = np.zeros(num_codes, np.uint64)
        arrays = []
        for part in self._parts:
            part.slots = np.zeros(FIRST_SLOTS, np.uint64)
            list_records(part.words, int(part.state[USED]), address_of(part.words), flip, addresses)
            arrays.append(part.words)
        return addresses, arrays
