"""The labels of a graph on its ranks, and lookups between labels and ids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.labels.spread import Spread, serially
from mgraph.labels.strings import Strings
from mgraph.labels.words import address_of, bytes_as_word, copy_bytes, load_byte

LabelKind = Literal["integer", "string"]
# Labels that a thread copies at a time.
TAKEN_AT_ONCE = 1 << 16
# Labels that are read ahead, so that their cache misses overlap.
GROUP = 32


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Hold this rank's part of the labels: those of its range of user ids, in order.

    Attributes
    ----------
    part
        int64 or uint64 integers, or `Strings`, in host memory: labels of ids [r * s, (r + 1) * s), s = ceil(n / ranks).
    missing
        The integer that means no vertex: -1 if no label is negative, else the smallest or largest of the dtype.
    """

    num_vertices: int
    kind: LabelKind
    part: np.ndarray | Strings
    missing: int = -1
    spread: Spread = field(default=serially, repr=False)

    @property
    def nbytes(self) -> int:
        return self.part.nbytes

    def ids_of(self, comm: Communicator, labels: Sequence[int] | Sequence[str]) -> list[int]:
        """Return the ids of a few labels, -1 for those of no vertex; collective, with the same labels on every rank."""
        found = np.full(len(labels), -1, np.int64)
        if len(labels):
            first = stride_of(self.num_vertices, comm.size) * comm.rank
            local = self._find(labels)
            found[local >= 0] = local[local >= 0] + first
        return comm.allreduce(found, "max").tolist()

    def _find(self, labels: Sequence[int] | Sequence[str]) -> np.ndarray:
        """Return the place of each label in this rank's part, -1 if it is not there."""
        if isinstance(self.part, Strings):
            wanted = Strings.of(labels)  # type: ignore[arg-type]
            places = np.empty(len(wanted), np.int64)
            find_strings(*_described(wanted), *_described(self.part), places)
            return places
        bounds = np.iinfo(self.part.dtype)
        fits = np.array([bounds.min <= label <= bounds.max for label in labels])  # type: ignore[operator]
        integers = np.array([label if ok else 0 for label, ok in zip(labels, fits, strict=True)], self.part.dtype)
        places = np.searchsorted(self.part, integers)
        there = places < len(self.part)
        there[there] = self.part[places[there]] == integers[there]
        return np.where(there & fits, places, -1)

    def labels_of(self, comm: Communicator, ids: np.ndarray) -> np.ndarray | Strings:
        """Return the labels of many ids; collective, each rank with ids of its own.

        A negative id is no vertex: its label is empty, or `missing`.
        """
        if comm.size == 1:
            return self._take(ids)
        stride = stride_of(self.num_vertices, comm.size)
        owners = np.where(ids < 0, comm.rank, ids // stride)
        order = np.argsort(owners, kind="stable")
        ends = np.searchsorted(owners[order], np.arange(comm.size + 1))
        wanted = ids[order].astype(np.int64)
        parts = [wanted[lo:hi] for lo, hi in itertools.pairwise(ends)]
        first = stride * comm.rank
        taken = [self._take(np.where(asked < 0, -1, asked - first)) for asked in comm.alltoallv(parts)]
        back = np.empty(len(ids), np.int64)
        back[order] = np.arange(len(ids))
        received = exchange_labels(comm, taken)
        return self._take(back, received)

    def _take(self, places: np.ndarray, source: np.ndarray | Strings | None = None) -> np.ndarray | Strings:
        """Return labels at places in this rank's part, or in `source`."""
        labels = self.part if source is None else source
        if isinstance(labels, Strings):
            return take_strings(labels, places, self.spread)
        there = places >= 0
        taken = np.full(len(places), self.missing, labels.dtype)
        taken[there] = labels[places[there]]
        return taken


def stride_of(num_vertices: int, num_ranks: int) -> int:
    """Return the number of labels on each rank but the last ones."""
    return max(-(-num_vertices // num_ranks), 1)


def exchange_labels(comm: Communicator, parts: Sequence[np.ndarray | Strings]) -> np.ndarray | Strings:
    """Send parts[r] to rank r; return the labels received, in order of ranks."""
    if isinstance(parts[0], Strings):
        strings = [part.compact() for part in parts]  # type: ignore[union-attr]
        lengths = comm.alltoallv([part.lengths for part in strings])
        received = comm.alltoallv([np.ascontiguousarray(part.data) for part in strings])
        return Strings.of_lengths(np.concatenate(lengths), np.concatenate(received))
    # As int64, which every communicator sends.
    integers = comm.alltoallv([np.ascontiguousarray(part).view(np.int64) for part in parts])  # type: ignore[arg-type]
    return np.concatenate(integers).view(parts[0].dtype)


def take_strings(strings: Strings, places: np.ndarray, spread: Spread = serially) -> Strings:
    """Return strings at places; a negative place is an empty string."""
    num_ranges = -(-len(places) // TAKEN_AT_ONCE)
    lengths = np.zeros(num_ranges + 1, np.int64)
    spread(measure_strings, num_ranges, strings.offsets, places, lengths)
    starts = np.cumsum(lengths)
    offsets = np.empty(len(places) + 1, np.int64)
    offsets[0] = 0
    data = np.empty(int(starts[-1]), np.uint8)
    source = np.ascontiguousarray(strings.data)
    spread(copy_strings, num_ranges, strings.offsets, address_of(source), places, starts, offsets, address_of(data))
    return Strings(offsets, data)


@inline
def measure_strings(begin, end, offsets, places, lengths):
    """Write the length of all strings of range r of the places to lengths[r + 1]."""
    for r in range(begin, end):
        length = 0
        for i in range(r * TAKEN_AT_ONCE, min((r + 1) * TAKEN_AT_ONCE, len(places))):
            if places[i] >= 0:
                length += offsets[places[i] + 1] - offsets[places[i]]
        lengths[r + 1] = length


@inline
def copy_strings(begin, end, offsets, source, places, starts, ends, target):
    """Copy the strings of range r of the places from starts[r] on, and write their ends."""
    warm = np.uint64(0)
    for r in range(begin, end):
        at = starts[r]
        last = min((r + 1) * TAKEN_AT_ONCE, len(places))
        for group in range(r * TAKEN_AT_ONCE, last, GROUP):
            # These loads do not depend on each other; those of the copies come one after another.
            for i in range(group, min(group + GROUP, last)):
                if places[i] >= 0 and offsets[places[i]] < offsets[places[i] + 1]:
                    warm ^= load_byte(source + np.uint64(offsets[places[i]]))
            for i in range(group, min(group + GROUP, last)):
                if places[i] >= 0:
                    first = offsets[places[i]]
                    length = offsets[places[i] + 1] - first
                    copy_bytes(source + np.uint64(first), target + np.uint64(at), length)
                    at += length
                ends[i + 1] = at
    return warm


def _described(strings: Strings) -> tuple[np.ndarray, np.ndarray]:
    return strings.offsets, np.ascontiguousarray(strings.data)


@inline
def compare_bytes(a, length_a, limit_a, b, length_b, limit_b):
    """Return whether bytes at address a are below (-1), equal to or above (1) those at b."""
    for i in range(0, min(length_a, length_b), 8):
        word_a = bytes_as_word(a + np.uint64(i), length_a - i, limit_a)
        word_b = bytes_as_word(b + np.uint64(i), length_b - i, limit_b)
        if word_a != word_b:
            return -1 if word_a < word_b else 1
    if length_a == length_b:
        return 0
    return -1 if length_a < length_b else 1


@inline
def find_strings(wanted, text, offsets, data, places):
    """Write the place of each wanted string among sorted ones, -1 if it is not there."""
    text_base = np.uint64(text.ctypes.data)
    base = np.uint64(data.ctypes.data)
    for i in range(len(wanted) - 1):
        lo = 0
        hi = len(offsets) - 1
        places[i] = -1
        while lo < hi:
            middle = (lo + hi) >> 1
            order = compare_bytes(
                base + np.uint64(offsets[middle]), offsets[middle + 1] - offsets[middle], base + np.uint64(len(data)),
                text_base + np.uint64(wanted[i]), wanted[i + 1] - wanted[i], text_base + np.uint64(len(text)),
            )  # fmt: skip
            if order == 0:
                places[i] = middle
                break
            if order < 0:
                lo = middle + 1
            else:
                hi = middle
