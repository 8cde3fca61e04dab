"""What the host asks of a fused search and is told by it, in host memory that the kernel reads and writes.

First come the orders, those that are a search's own before those that all searches of a shard from as many sources
share; then what the kernel reports, the rows of its trace, and the sources where it reads a list of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial

import numpy as np

from mgraph.algorithms.traversal import Trace
from mgraph.comm.base import Communicator
from mgraph.comm.peers import require_done, wait_for_ranks
from mgraph.kernels.backend import FusingBackend

WORD = 8


def word_of(value: float | int, dtype: np.dtype) -> int:
    """Return the word that begins with the bytes of a value of this dtype."""
    word = np.zeros(1, np.int64)
    word.view(dtype)[0] = value
    return int(word[0])


class Orders:
    """The words of searches that have most of their orders in common; `words` is what the kernel takes.

    Bytes are packed and copied in half the time of words.
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
        self._sources = asked + len(reports) + num_rows * row
        self.run, self.row_words, self._lists_sources = run, row, num_sources > 0
        self.words, self._on_host = run.host_words(self._sources + num_sources)
        self._memory = self._on_host.data.cast("B")
        self._own, self._reports = struct.Struct(f"{num_own}q"), struct.Struct(f"{len(reports)}q")
        self._shared = struct.pack(f"{len(shared)}q", *shared) + self._reports.pack(*reports)
        self._told, self._rows, self._row = WORD * asked, WORD * (asked + len(reports)), WORD * row

    def give(self, own: Sequence[int], sources: Sequence[int]) -> None:
        """Write down what a search is asked for, and that it has told nothing."""
        self._own.pack_into(self._memory, 0, *own)
        self._memory[self._own.size : self._rows] = self._shared
        if self._lists_sources:
            self._on_host[self._sources :][: len(sources)] = sources

    def report(self) -> tuple[int, ...]:
        """Return what the kernel reports."""
        return self._reports.unpack_from(self._memory, self._told)

    def rows(self, count: int) -> bytes:
        """Return a copy of the first rows of the trace."""
        return bytes(self._memory[self._rows : self._rows + count * self._row])


def wait_for_search(comm: Communicator, orders: Orders, trace: Trace, methods: Sequence[str]) -> list[int]:
    """Wait for a search through windows, note its supersteps, and return what it reports beside them."""
    wait_for_ranks(comm, orders.run)
    done, num_rows, *told = orders.report()
    require_done(comm, done)
    trace.end_phase()
    rows = np.frombuffer(orders.rows(num_rows), np.int64).reshape(-1, orders.row_words)
    comm.bytes_sent += int(rows[:, -1].sum())
    trace.fused(partial(_steps_of, methods, rows), "windows")
    return told


def _steps_of(methods: Sequence[str], rows: np.ndarray) -> list[dict]:
    """Return what the rows of the trace of a search through windows say of its supersteps."""
    return [
        {"method": methods[m], "frontier": frontier, "arcs": arcs, "microseconds": ns / 1000, "bytes": sent}
        for m, frontier, arcs, ns, sent in rows.tolist()
    ]
