"""Ranges of files, read into arrays: a file that is cut short meanwhile is an error, where a map of it is a SIGBUS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mgraph.errors import InputError
from mgraph.io.spool import InputPath, Unpacked

# Bytes that are checked at a time.
PIECE_BYTES = 16 << 20

InputFile = InputPath | Unpacked


@contextlib.contextmanager
def opened(file: InputFile) -> Iterator[Any]:
    """Open a file to read ranges of it; one that cannot be read is named."""
    try:
        raw = file.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    with raw:
        yield raw


def read_range(file: InputFile, raw: Any, dtype: np.dtype | str, at: int, count: int) -> np.ndarray:
    """Return the `count` values that begin at byte `at`."""
    values = np.empty(count, dtype)
    view, filled = values.view(np.uint8).data, 0
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
    """Return the error of a file that is not any more what was checked."""
    return InputError(f"{file} has changed while being read ({how}): read it again when it is whole")
