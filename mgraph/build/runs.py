"""Counting in sorted arrays: CuPy's bincount takes more than a gigabyte beside its input, whatever its size."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.types import Array


def lengths_of_runs(xp: Any, ordered: Array, num_values: int) -> Array:
    """Return how often each of 0..num_values-1 occurs in an array that is in order."""
    if len(ordered) == 0 or num_values == 0:
        return xp.zeros(num_values, np.int64)
    ends = xp.searchsorted(ordered, xp.arange(num_values, dtype=ordered.dtype), side="right")
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths
