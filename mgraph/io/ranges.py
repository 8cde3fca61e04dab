"""Read ranges of files into arrays. A file truncated meanwhile is an error here; a memory map of it would SIGBUS."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mgraph.errors import InputError
from mgraph.io.input_file import InputFile

# Bytes checked at a time.
PIECE_BYTES = 16 << 20

# (name of the array, first value, the one after the last) -> values.
ReadValues = Callable[[str, int, int], np.ndarray]


class StoredArrays(Protocol):
    """Arrays in a file, of which ranges are read by name."""

    @property
    def file(self) -> InputFile:
        """The file, as errors name it."""

    def opened(self) -> contextlib.AbstractContextManager[ReadValues]:
        """Open the file."""


@dataclass(frozen=True)
class ColumnPlace:
    """Values of one dtype in a file: value i is at byte `at + i * step`."""

    at: int
    dtype: str
    step: int = 0  # 0: one value directly follows another


@dataclass(frozen=True)
class PlainArrays:
    """Arrays at known places of a file."""

    file: InputFile
    columns: Mapping[str, ColumnPlace]

    @contextlib.contextmanager
    def opened(self) -> Iterator[ReadValues]:
        with opened(self.file) as raw:

            def read(name: str, lo: int, hi: int) -> np.ndarray:
                column = self.columns[name]
                itemsize = np.dtype(column.dtype).itemsize
                step = column.step or itemsize
                if step == itemsize:
                    return read_range(self.file, raw, column.dtype, column.at + lo * step, hi - lo)
                padded = np.dtype({"names": ["value"], "formats": [column.dtype], "itemsize": step})
                # The last value may be followed by less than a whole step.
                begin = column.at + lo * step
                values = np.empty(hi - lo, padded)
                num_bytes = max(0, (hi - lo - 1) * step + itemsize) if hi > lo else 0
                values.view(np.uint8)[:num_bytes] = read_range(self.file, raw, np.uint8, begin, num_bytes)
                return np.ascontiguousarray(values["value"])

            yield read


@contextlib.contextmanager
def opened(file: InputFile) -> Iterator[Any]:
    """Open a file unbuffered; a failure raises InputError with its name."""
    try:
        raw = file.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    with raw:
        yield raw


def num_bytes_of(raw: Any) -> int:
    """Return the size of an open file."""
    return raw.seek(0, os.SEEK_END)


def read_range(file: InputFile, raw: Any, dtype: Any, at: int, count: int) -> np.ndarray:
    """Return the `count` values that begin at byte `at`."""
    values = np.empty(count, dtype)
    view = values.view(np.uint8).data
    filled = 0
    raw.seek(at)
    while filled < len(view):
        try:
            num_bytes = raw.readinto(view[filled:])
        except OSError as error:
            raise InputError(f"{file} cannot be read at byte {at + filled}: {error.strerror or error}") from error
        if not num_bytes:
            raise changed(file, f"it ends at byte {at + filled}")
        filled += num_bytes
    return values


def changed(file: InputFile, how: str) -> InputError:
    """Return the error for a file that differs from the one that was checked."""
    return InputError(f"{file} has changed while being read ({how}): read it again when it is whole")
