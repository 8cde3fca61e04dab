"""Many short strings in two arrays, as Arrow stores them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings of UTF-8 bytes: string i is data[offsets[i] : offsets[i + 1]].

    Attributes
    ----------
    offsets
        int64, one more than there are strings; the first need not be 0.
    data
        uint8.
    """

    offsets: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, part: slice) -> Strings:
        """Return a range of the strings, as a view."""
        lo, hi, step = part.indices(len(self))
        assert step == 1, "strings are sliced in runs"
        return Strings(self.offsets[lo : max(lo, hi) + 1], self.data)

    @property
    def lengths(self) -> np.ndarray:
        """The number of bytes of each string."""
        return np.diff(self.offsets)

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.data.nbytes

    @classmethod
    def of_lengths(cls, lengths: np.ndarray, data: np.ndarray) -> Strings:
        """Return strings of these lengths, with bytes that follow each other."""
        return cls(starts_of(lengths), data)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        """Return a few Python strings as `Strings`."""
        encoded = [text.encode() for text in texts]
        lengths = np.array([len(text) for text in encoded], np.int64)
        return cls.of_lengths(lengths, np.frombuffer(b"".join(encoded), np.uint8))

    def compact(self) -> Strings:
        """Return the strings without bytes before or after them: a view, with offsets from 0."""
        first = int(self.offsets[0])
        last = int(self.offsets[-1])
        offsets = self.offsets - first if first else self.offsets
        return Strings(offsets, self.data[first:last])

    def encoded(self) -> list[bytes]:
        """Return the bytes of each string."""
        raw = self.compact()
        text = raw.data.tobytes()
        return [text[lo:hi] for lo, hi in itertools.pairwise(raw.offsets.tolist())]

    def tolist(self) -> list[str]:
        """Return the strings as Python's."""
        return [text.decode() for text in self.encoded()]


def concatenate(parts: Sequence[Strings]) -> Strings:
    """Return the strings of all parts, one part after another."""
    if len(parts) == 1:
        return parts[0].compact()
    lengths = np.concatenate([part.lengths for part in parts])
    return Strings.of_lengths(lengths, np.concatenate([part.compact().data for part in parts]))


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Return where each of several parts of an array begins, and the end of the last."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
