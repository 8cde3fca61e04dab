"""The control block of a persistent search, in host memory that the kernel reads and writes.

Its words (ControlLayout): the launch parameters, those of one search before those that all searches of a shard share;
the kernel's report; the records of its trace; sources and targets, where the kernel reads a list of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

import numpy as np

from mgraph.backends.base import PersistentBackend
from mgraph.backends.shared_names import ControlLayout

WORD = 8


def word_of(value: float | int, dtype: np.dtype) -> int:
    """Return the word that begins with the bytes of a value of this dtype."""
    word = np.zeros(1, np.int64)
    word.view(dtype)[0] = value
    return int(word[0])


class ControlBlock:
    """The control block of searches that share most launch parameters.

    Parameters
    ----------
    shared
        By name, the parameters that all these searches share.
    report
        By name, the report of a search that launches nothing.
    num_records, num_listed
        Capacities of the trace, and of the list of sources and targets.

    Attributes
    ----------
    words
        The block, as the kernel's argument.
    on_host
        The same words as a NumPy array.
    sources_at
        The first word of the sources.
    """

    def __init__(
        self,
        backend: PersistentBackend,
        layout: ControlLayout,
        shared: Mapping[str, int],
        report: Mapping[str, int],
        num_records: int,
        num_listed: int,
    ) -> None:
        if shared.keys() != set(layout.shared) or report.keys() != set(layout.report):
            unmatched = shared.keys() ^ set(layout.shared) | report.keys() ^ set(layout.report)
            raise TypeError(f"a control block: {sorted(unmatched)} are missing or unknown")
        self.sources_at = layout.sources_at(num_records)
        self.backend = backend
        self._has_list = num_listed > 0
        self.words, self.on_host = backend.host_words(self.sources_at + num_listed)
        # Bytes are packed and copied in half the time of words.
        self._memory = self.on_host.data.cast("B")
        self._own_of: Callable[[Mapping[str, int]], tuple[int, ...]] = itemgetter(*layout.own)
        self._own = struct.Struct(f"{len(layout.own)}q")
        self._reports = struct.Struct(f"{len(layout.report)}q")
        in_order = [*(shared[name] for name in layout.shared), *(report[name] for name in layout.report)]
        self._behind_own = struct.pack(f"{len(in_order)}q", *in_order)
        self._report_at = WORD * layout.report_at
        self._records_at = WORD * layout.records_at
        self._record_bytes = WORD * len(layout.record)

    def give(self, listed: Sequence[int], **own: int) -> None:
        """Write the parameters of one search, by name, an empty report, and the list where there is one."""
        self._own.pack_into(self._memory, 0, *self._own_of(own))
        self._memory[self._own.size : self._records_at] = self._behind_own
        if self._has_list:
            self.on_host[self.sources_at :][: len(listed)] = listed

    def report(self) -> tuple[int, ...]:
        """Return what the kernel reports."""
        return self._reports.unpack_from(self._memory, self._report_at)

    def records(self, count: int) -> bytes:
        """Return a copy of the first records of the trace."""
        return bytes(self._memory[self._records_at : self._records_at + count * self._record_bytes])
