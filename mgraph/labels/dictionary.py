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
from mgraph.labels.spread import Spread
from mgraph.labels.strings import Strings, starts_of
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
BATCH = 1 << 18
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
def hash_strings(offsets, base, limit, seeds, hashes, first):
    """Hash strings as `hash_words` does records; count the words of hashes and records of part p in first[p + 1]."""
    for i in range(len(hashes)):
        begin = base + np.uint64(offsets[i])
        length = offsets[i + 1] - offsets[i]
        hashed = seeds[0] ^ np.uint64(length)
        for d in range(0, length, 8):
            hashed = fold_product(hashed ^ bytes_as_word(begin + np.uint64(d), length - d, limit), seeds[1])
        hashed = fold_product(hashed ^ seeds[2], seeds[3])
        hashes[i] = hashed
        first[np.int64(hashed >> _PART_SHIFT) + 1] += 2 + words_of(length)


@inline
def group_strings(offsets, base, limit, hashes, ends, grouped):
    """Write hash and record of each string, with its number for a code, behind those of its part."""
    for i in range(len(hashes)):
        begin = base + np.uint64(offsets[i])
        length = offsets[i + 1] - offsets[i]
        part = np.int64(hashes[i] >> _PART_SHIFT)
        at = ends[part]
        grouped[at] = hashes[i]
        grouped[at + 1] = header_of(length, i)
        for d in range(words_of(length)):
            grouped[at + 2 + d] = bytes_as_word(begin + np.uint64(8 * d), length - 8 * d, limit)
        ends[part] = at + 2 + words_of(length)


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
def encode(part, grouped, slots, words, state, codes):
    """Find or insert the labels from grouped[state[NEXT]] on in a part, until all are coded or the part is full."""
    mask = np.uint64(len(slots) - 1)
    warm = _EMPTY
    at = state[NEXT]
    while at < len(grouped):
        # These loads do not depend on each other; those of the search below do.
        end = at
        for _ in range(GROUP):
            if end < len(grouped):
                warm ^= words[np.int64(slots[grouped[end] & mask] & _PLACE)]
                end += 2 + words_of(length_of(grouped[end + 1]))
        while at < end:
            hashed = grouped[at]
            header = grouped[at + 1]
            size = 1 + words_of(length_of(header))
            tag = (hashed << _TAG_SHIFT) & _TAG
            s = hashed & mask
            while True:
                slot = slots[s]
                if slot == _EMPTY:
                    if 3 * (state[COUNT] + 1) > 2 * len(slots) or state[USED] + size > len(words):
                        state[NEXT] = at
                        return warm
                    place = state[USED]
                    code = state[COUNT] * NUM_PARTS + part
                    words[place] = header_of(length_of(header), code)
                    for d in range(1, size):
                        words[place + d] = grouped[at + 1 + d]
                    slots[s] = tag | np.uint64(place)
                    state[COUNT] += 1
                    state[USED] += size
                    codes[code_of(header)] = code
                    break
                if slot & _TAG == tag and is_record(grouped, at + 1, words, np.int64(slot & _PLACE)):
                    codes[code_of(header)] = code_of(words[np.int64(slot & _PLACE)])
                    break
                s = (s + _ONE) & mask
            at += 1 + size
    state[NEXT] = at
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
def list_records(words, base, flip, first, addresses):
    """Write the address of each record of a part; add `first` to its code, and flip bits of its first word."""
    place = 1
    for i in range(len(addresses)):
        length = length_of(words[place])
        words[place] = header_of(length, first + code_of(words[place]))
        words[place + 1] ^= flip
        addresses[i] = base + np.uint64(8 * place)
        place += 1 + words_of(length)


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

    def encode(self, grouped: np.ndarray, seeds: np.ndarray, codes: np.ndarray) -> None:
        """Write the codes of labels that are grouped as hashes and records."""
        self.state[NEXT] = 0
        while True:
            encode(self.number, grouped, self.slots, self.words, self.state, codes)
            if self.state[NEXT] == len(grouped):
                return
            self._grow(length_of(grouped[self.state[NEXT] + 1]), seeds)

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
        for lo in range(0, len(values), BATCH):
            # As strings of 8 bytes, whose words are big-endian.
            octets = values[lo : lo + BATCH].astype(">u8").view(np.uint8)
            self._encode(Strings(np.arange(0, len(octets) + 8, 8), octets), codes[lo : lo + BATCH])
        return codes

    def encode_strings(self, strings: Strings, where: Callable[[int], str]) -> np.ndarray:
        """Return the codes of strings; refuse an empty one."""
        check_lengths(strings, where)
        codes = np.empty(len(strings), np.uint32)
        contiguous = Strings(strings.offsets, np.ascontiguousarray(strings.data))
        for lo in range(0, len(strings), BATCH):
            self._encode(contiguous[lo : lo + BATCH], codes[lo : lo + BATCH])
        return codes

    def _encode(self, strings: Strings, codes: np.ndarray) -> None:
        base = address_of(strings.data)
        given = strings.offsets, base, base + np.uint64(len(strings.data))
        hashes = np.empty(len(strings), np.uint64)
        first = np.zeros(NUM_PARTS + 1, np.int64)
        hash_strings(*given, self._seeds, hashes, first)
        first = np.cumsum(first)
        grouped = np.empty(int(first[-1]), np.uint64)
        group_strings(*given, hashes, first[:-1].copy(), grouped)
        del hashes
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
                    part.encode(grouped[first[p] : first[p + 1]], self._seeds, codes)
                finally:
                    part.lock.release()
            left = busy

    def records(self, flip: np.uint64, first: int, spread: Spread) -> tuple[np.ndarray, int, list[np.ndarray]]:
        """Return the addresses of all records, the end of their codes, and the arrays with them; drop the slots.

        The bits of `flip` are inverted in the first word of every label, and codes begin with `first`.
        """
        counts = [int(part.state[COUNT]) for part in self._parts]
        starts = starts_of(np.array(counts))
        addresses = np.empty(int(starts[-1]), np.uint64)

        def list_parts(begin: int, end: int) -> None:
            for p in range(begin, end):
                part = self._parts[p]
                part.slots = np.zeros(FIRST_SLOTS, np.uint64)
                list_records(part.words, address_of(part.words), flip, first, addresses[starts[p] : starts[p + 1]])

        spread(list_parts, NUM_PARTS)
        return addresses, first + max(counts) * NUM_PARTS, [part.words for part in self._parts]
