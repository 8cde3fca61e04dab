"""Arrays in an unnamed temporary file: what does not fit the memory that it may take."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import IO

import numpy as np

from mgraph.errors import InputError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.temporary import CHOICE, FULL, require_space, spool_folder, unnamed_file


@dataclass(frozen=True)
class StoredArray:
    """A one-dimensional array in a file; a slice of it is read into memory."""

    spool: ArraySpool
    at: int
    count: int
    dtype: np.dtype

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, part: slice) -> np.ndarray:
        lo, hi, _ = part.indices(self.count)
        values = np.empty(max(hi - lo, 0), self.dtype)
        self.spool.read(self.at + lo * self.dtype.itemsize, values)
        return values


class ArraySpool:
    """An unnamed file, open as long as this object is referenced; several threads may use it."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = threading.Lock()

    def store(self, array: np.ndarray) -> StoredArray:
        """Append an array while the disk has space for it."""
        with self._lock:
            file = self._file = self._file or unnamed_file(self, self._origin)
            require_space(array.nbytes, self._end, file, f"the input of {self._origin}, which memory does not hold,")
            at = self._end
            self._end += array.nbytes
        view = np.ascontiguousarray(array).view(np.uint8).data
        written = 0
        try:
            while written < len(view):
                written += os.pwrite(file.fileno(), view[written:], at + written)
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise WouldNotFit(
                f"the input of {self._origin} is kept in a temporary file in {spool_folder(self._origin)} beyond "
                f"{readable_bytes(at + written)}, and that is full ({error.strerror}): {CHOICE} chooses another folder"
            ) from None
        return StoredArray(self, at, len(array), array.dtype)

    def read(self, at: int, values: np.ndarray) -> None:
        """Fill an array with the bytes at an offset."""
        assert self._file is not None
        view = values.view(np.uint8).data
        filled = 0
        while filled < len(view):
            count = os.preadv(self._file.fileno(), [view[filled:]], at + filled)
            if not count:
                raise InputError(f"the temporary copy of {self._origin} ended at byte {at + filled}")
            filled += count
