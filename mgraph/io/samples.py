"""Estimate sizes of an input from some places in it, for the memory plan."""

from __future__ import annotations

from mgraph.labels.strings import Strings
from mgraph.types import Array

PLACES = 5
# Rows that are read at a place.
ROWS = 4096


def places(last: int) -> list[int]:
    """Return at most PLACES numbers of 0 .. last, evenly spread, with the first and the last."""
    return sorted({last * k // (PLACES - 1) for k in range(PLACES)})


def bytes_of(ends: list[Array | Strings]) -> int | None:
    """Return the bytes of all strings; None if the ends are numbers."""
    lengths = [int(end.offsets[-1] - end.offsets[0]) for end in ends if isinstance(end, Strings)]
    return sum(lengths) if lengths else None


def largest_of(ends: list[Array | Strings]) -> int:
    """Return the largest id, -1 if there is none or if the ends are strings."""
    return max((int(end.max()) for end in ends if len(end) and not isinstance(end, Strings)), default=-1)
