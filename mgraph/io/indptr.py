"""Offsets of a CSR: their checks, and the sources of its arcs."""

from __future__ import annotations

import numpy as np

from mgraph.errors import InputError


def sources_of_arcs(indptr: np.ndarray, lo: int, hi: int) -> np.ndarray:
    """Return the sources of the arcs lo..hi of a CSR."""
    if lo == hi:
        return np.empty(0, np.int64)
    # Search in the dtype of the offsets: any other would convert a copy of all of them.
    first = int(np.searchsorted(indptr, indptr.dtype.type(lo), "right")) - 1
    last = int(np.searchsorted(indptr, indptr.dtype.type(hi), "left"))
    lengths = np.diff(np.clip(indptr[first : last + 1], lo, hi).astype(np.int64))
    return np.repeat(np.arange(first, last), lengths)


def check_indptr(indptr: np.ndarray, num_arcs: int, what: str) -> None:
    """Refuse offsets that do not rise from 0 to the number of arcs."""
    if len(indptr) == 0:
        raise InputError(f"{what} is empty: a CSR of n vertices has n + 1 offsets")
    check_ends_of_indptr(int(indptr[0]), int(indptr[-1]), num_arcs, what)
    check_rising(indptr, what)


def check_ends_of_indptr(begin: int, end: int, num_arcs: int, what: str) -> None:
    """Refuse offsets that do not begin at 0 and end at the number of arcs."""
    if begin != 0 or end != num_arcs:
        raise InputError(f"{what} goes from {begin} to {end}, not from 0 to the number of arcs, {num_arcs}")


def check_rising(indptr: np.ndarray, what: str, first: int = 0) -> None:
    """Refuse offsets that fall; `first` is the index of indptr[0] in the whole array."""
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        i = int(np.argmax(falls))
        raise InputError(
            f"{what}[{first + i + 1}] = {indptr[i + 1]} is below {what}[{first + i}] = {indptr[i]}: offsets must rise"
        )
