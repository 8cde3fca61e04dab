"""What the host asks of a fused search and is told by it, in host memory that the kernel reads and writes.

First come the orders, those that are a search's own before those that all searches of a shard from as many sources
share; then what the kernel reports, the rows of its trace, and the sources where it reads a list of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from mgraph.backends.base import FusingBackend

WORD = 8


def word_of(value: float | int, dtype: np.dtype) -> int:
    """Return the word that begins with the bytes of a value of this dtype."""
    word = np.zeros(1, np.int64)
    word.view(dtype)[0] = value
    return int(word[0])


class Orders:
    """The words of searches that have most of their orders in common: `words` is what the kernel takes.

    `on_host` are the same, and from `sources_at` on they are the list of sources where the kernel reads one. Bytes are
    packed and copied in half the time of words.
    """

    def __init__(
        self,
        run: FusingBackend,
        num_own: int,
        shared: Sequence[int],
        reports: Sequence[int],
        trace: tuple[int, int],
        num_sources: int,
    ) -> None:
        asked, (num_rows, row) = num_own + len(shared), trace
        self.sources_at = asked + len(reports) + num_rows * row
        self.run, self._lists_sources = run, num_sources > 0
        self.words, self.on_host = run.host_words(self.sources_at + num_sources)
        self._memory = self.on_host.data.cast("B")
        self._own, self._reports = struct.Struct(f"{num_own}q"), struct.Struct(f"{len(reports)}q")
        self._shared = struct.pack(f"{len(shared)}q", *shared) + self._reports.pack(*reports)
        self._told, self._rows, self._row = WORD * asked, WORD * (asked + len(reports)), WORD * row

    def give(self, own: Sequence[int], sources: Sequence[int]) -> None:
        """Write down what a search is asked for, and that it has told nothing."""
        self._own.pack_into(self._memory, 0, *own)
        self._memory[self._own.size : self._rows] = self._shared
        if self._lists_sources:
            self.on_host[self.sources_at :][: len(sources)] = sources

    def report(self) -> tuple[int, ...]:
        """Return what the kernel reports."""
        return self._reports.unpack_from(self._memory, self._told)

    def rows(self, count: int) -> bytes:
        """Return a copy of the first rows of the trace."""
        return bytes(self._memory[self._rows : self._rows + count * self._row])
