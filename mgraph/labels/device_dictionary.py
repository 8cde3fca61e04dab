"""One rank's dictionary of labels in the memory of its GPU, as long as that has room.

The words of records (words.py), the place of each code's record, and the slots of a hash table. Codes are 0, 1, 2, ...;
several threads may add labels: they upload and pack at the same time, and insert one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np

from mgraph.backends.base import Backend
from mgraph.labels.device_dictionary_kernels import (
    CLAIMED,
    LABEL_SHIFT,
    WORDS_MASK,
    append_labels,
    insert_labels,
    insert_records,
    pack_integers,
    pack_strings,
    resolve_codes,
)
from mgraph.labels.device_sort import sort_integers, sort_strings
from mgraph.labels.device_sort_kernels import flip_signs
from mgraph.labels.dictionary import check_lengths, random_seeds
from mgraph.labels.strings import Strings
from mgraph.labels.words import address_of
from mgraph.types import Array

# The share of the free memory that a dictionary may take: sorting its labels takes as much again.
ROOM_SHARE = 4
# Labels and bytes of strings that are inserted at a time.
BATCH = 1 << 22
BATCH_BYTES = 1 << 26
# Longer strings are left to the host: one thread reads each.
MAX_LENGTH = 1 << 16
FIRST_SLOTS = 64
WORD = 8


class _Appended:
    """An array in device memory that grows at its end."""

    def __init__(self, backend: Backend, dtype: type) -> None:
        self._backend = backend
        self.array = backend.xp.zeros(1, dtype)
        self.used = 0

    def growth(self, more: int) -> int:
        """Return the length that the array needs for more elements, 0 if it is long enough."""
        return 0 if self.used + more <= len(self.array) else self.used + max(more, self.used // 2)

    def grow(self, length: int) -> None:
        """Make the array so long, unless it is 0."""
        if length:
            array = self._backend.xp.empty(length, self.array.dtype)
            array[: self.used] = self.array[: self.used]
            self.array = array


class DeviceDictionary:
    """Distinct labels of one rank, with a code for each.

    Attributes
    ----------
    is_full
        Whether it takes no further labels, so that the number of its codes is final.
    """

    def __init__(self, backend: Backend) -> None:
        backend.enter_thread()
        self._backend = backend
        self._room = backend.free_bytes() // ROOM_SHARE
        self._lock = threading.Lock()
        self._seeds = backend.to_device(random_seeds())
        self._slots = backend.xp.zeros(FIRST_SLOTS, np.uint64)
        self._words = _Appended(backend, np.uint64)
        self._words.used = 1  # place 0 is no record's
        self._places = _Appended(backend, np.int64)
        self.is_full = False

    def __len__(self) -> int:
        return self._places.used

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._words.array.nbytes + self._places.array.nbytes

    def encode_strings(self, strings: Strings, where: Callable[[int], str]) -> Array | None:
        """Return the codes of strings, None if there is no room for them; refuse an empty one."""
        fits = check_lengths(strings, where) <= MAX_LENGTH
        return self._encode_all(strings, _batches(strings.offsets), fits=fits)

    def encode_integers(self, values: Array) -> Array | None:
        """Return the codes of integers of 64 bits, None if there is no room for them."""
        return self._encode_all(values, ((lo, min(lo + BATCH, len(values))) for lo in range(0, len(values), BATCH)))

    def _end(self) -> None:
        with self._lock:
            self.is_full = True

    def _encode_all(
        self, labels: Array | Strings, batches: Iterator[tuple[int, int]], *, fits: bool = True
    ) -> Array | None:
        # Threads that read are not those of the backend.
        self._backend.enter_thread()
        try:
            codes = self._backend.xp.empty(len(labels), np.uint32)
            if fits and all(self._encode(*_packed(self._backend, labels[lo:hi]), codes[lo:hi]) for lo, hi in batches):
                return codes
        except MemoryError:  # CuPy's is one
            pass
        self._end()
        return None

    def _encode(self, packed: Array, starts: Array, codes: Array) -> bool:
        """Write the codes of packed labels; return whether there was room for the new ones."""
        with self._lock:
            try:
                self.is_full = self.is_full or not self._insert(packed, starts, codes)
            except MemoryError:
                # Slots may name labels of this batch: no further label may be searched.
                self.is_full = True
            return not self.is_full

    def _insert(self, packed: Array, starts: Array, codes: Array) -> bool:
        backend = self._backend
        num = len(starts)
        if not self._reserve_slots(num):
            return False
        slots = self._slots
        words = self._words
        places = self._places
        sizes = backend.xp.empty(num, np.int64)
        insert_labels[backend](0, num, packed, starts, self._seeds, words.array, len(slots), slots, sizes, codes)
        ends = backend.xp.cumsum(sizes)
        new = int(ends[-1])
        if not new:
            return True
        if not self._reserve_records(new >> LABEL_SHIFT, new & WORDS_MASK):
            return False
        ends_of = words.used, places.used
        append_labels[backend](0, num, packed, starts, ends, codes, *ends_of, words.array, places.array, slots)
        resolve_codes[backend](0, num, slots, words.array, codes)
        places.used += new >> LABEL_SHIFT
        words.used += new & WORDS_MASK
        return True

    def _reserve_slots(self, num: int) -> bool:
        """Make the table large enough for this many more labels; return whether there was room."""
        num_slots = len(self._slots)
        while 3 * (len(self) + num) > 2 * num_slots:
            num_slots *= 2
        if num_slots == len(self._slots):
            return True
        if num_slots > CLAIMED or self.nbytes + WORD * num_slots > self._room:
            return False
        slots = self._backend.xp.zeros(num_slots, np.uint64)
        words = self._words.array
        insert_records[self._backend](0, len(self), self._places.array, words, self._seeds, num_slots, slots)
        self._slots = slots
        return True

    def _reserve_records(self, labels: int, words: int) -> bool:
        """Make space for more records; return whether there was room."""
        num_words = self._words.growth(words)
        num_places = self._places.growth(labels)
        if (num_words or num_places) and self.nbytes + WORD * (num_words + num_places) > self._room:
            return False
        self._words.grow(num_words)
        self._places.grow(num_places)
        return True

    def close(self, *, signed: bool) -> None:
        """End the adding of labels; invert the first bits of signed integers, which are then in order."""
        self._backend.enter_thread()
        self._end()
        self._slots = self._slots[:0].copy()
        if signed:
            flip_signs[self._backend](0, len(self), self._places.array, self._words.array)

    def sort_strings(self) -> tuple[Array, Strings]:
        """Return the id of each code, on the device, and the strings in order, in host memory."""
        return sort_strings(self._backend, self._places.array[: len(self)], self._words.array)

    def sort_integers(self, *, signed: bool) -> tuple[Array, np.ndarray]:
        """Return the id of each code, on the device, and the integers in order, in host memory."""
        return sort_integers(self._backend, self._places.array[: len(self)], self._words.array, signed=signed)

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the address of each code's record, and the array in host memory that has them."""
        words = self._backend.to_host(self._words.array[: self._words.used])
        places = self._backend.to_host(self._places.array[: len(self)])
        return address_of(words) + np.uint64(WORD) * places.view(np.uint64), words


def _packed(backend: Backend, labels: Array | Strings) -> tuple[Array, Array]:
    """Return labels as records in device memory, and where they begin."""
    num = len(labels)
    starts = backend.xp.empty(num, np.int64)
    if isinstance(labels, Strings):
        first = int(labels.offsets[0])
        last = int(labels.offsets[-1])
        text = backend.to_device(labels.data[first:last])
        packed = backend.xp.empty(2 * num + len(text) // WORD, np.uint64)
        pack_strings[backend](0, num, text, backend.to_device(labels.offsets), first, packed, starts)
    else:
        packed = backend.xp.empty(2 * num, np.uint64)
        pack_integers[backend](0, num, backend.to_device(labels).view(np.uint64), packed, starts)
    return packed, starts


def _batches(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of strings that one launch takes, by number and bytes; at least one string in each."""
    lo = 0
    num = len(offsets) - 1
    while lo < num:
        hi = int(np.searchsorted(offsets, offsets[lo] + BATCH_BYTES, "right")) - 1
        hi = min(max(hi, lo + 1), lo + BATCH, num)
        yield lo, hi
        lo = hi
