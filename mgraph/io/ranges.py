"""Read ranges of files into arrays. A file truncated meanwhile is an error here; a memory map of it would SIGBUS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mgraph.errors import InputError
from mgraph.io.spool import InputPath, Unpacked

# Bytes checked at a time.
PIECE_BYTES = 16 << 20

InputFile = InputPath | Unpacked


@contextlib.contextmanager
def opened(file: InputFile) -> Iterator[Any]:
    """Open a file unbuffered; a failure raises InputError with its name."""
    try:
        raw = file.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    with raw:
        yield raw


def read_range(file: InputFile, raw: Any, dtype: np.dtype | str, at: int, count: int) -> np.ndarray:
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
