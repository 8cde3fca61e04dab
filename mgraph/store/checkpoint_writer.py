"""The thread of a rank that writes its parts of states while the call goes on."""

from __future__ import annotations

import contextlib
import pathlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from mgraph.errors import InputError
from mgraph.partition import Partition
from mgraph.store import checkpoint as files


class PartWriter:
    """Writes one part after another.

    Attributes
    ----------
    token
        Of the state that was begun last, or of the one in the folder before.
    written
        Of the part in flight: the seconds that the thread computed, or its error; None if no part is.
    """

    def __init__(self, folder: pathlib.Path, rank: int, partition: Partition, about: dict[str, Any]) -> None:
        self._folder = folder
        self._rank = rank
        self._partition = partition
        self._about = about
        self._thread = ThreadPoolExecutor(1, "mgraph-checkpoint")
        self._is_stopped = threading.Event()
        self.token = 0
        self.written: Future[float] | None = None

    def begin(self, token: int, parts: dict[str, np.ndarray], bound: float | int, waited_s: float) -> None:
        """Begin to write a part, for which the call has waited so long; the state before is whole."""
        whole = self.token
        self.token = token
        self.written = self._thread.submit(self._write, whole, token, parts, bound, waited_s)

    def finish(self) -> float:
        """Wait until the part in flight is written; return the seconds computed, or raise the thread's error."""
        assert self.written is not None, "a part is in flight"
        computed_s = self.written.result()
        self.written = None
        return computed_s

    def end(self) -> None:
        """End the thread, and delete this rank's part of a state that is not whole."""
        self._is_stopped.set()
        self._thread.shutdown()
        with contextlib.suppress(OSError, InputError):
            if files.newest_token(self._folder) != self.token:
                files.discard_part(self._folder, self.token, self._rank)

    def _write(
        self, whole: int, token: int, parts: dict[str, np.ndarray], bound: float | int, waited_s: float
    ) -> float:
        began = time.thread_time()
        files.discard_all_but(self._folder, {whole, token}, self._rank, self._partition.num_ranks)
        checksums = {
            name: [files.write_part(self._folder, name, token, self._rank, part, self._is_stopped.is_set)]
            for name, part in parts.items()
        }
        dtype = parts[files.VALUES].dtype.name
        cost_s = waited_s + time.thread_time() - began
        part = files.Checkpoint(self._about, token, self._partition, dtype, bound, checksums, cost_s)
        files.put_manifest(self._folder, self._rank, part)
        return time.thread_time() - began
