"""Sums of whole arrays, read on the host; xp.sum on a GPU would first compile for seconds."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.types import Array


@kernel(id_t="values")
def add_up(lo, hi, values, total):
    """Add all values to total[0]."""
    mine = np.int64(0)
    for i in range(lo, hi):
        mine += np.int64(values[i])
    atomic_add(total, 0, mine)


@kernel(id_t="values")
def count_between(lo, hi, values, above, below, count):
    """Add to count[0] the number of values v with above < v < below."""
    mine = np.int64(0)
    for i in range(lo, hi):
        mine += above < np.int64(values[i]) < below
    atomic_add(count, 0, mine)


def total(backend: Backend, values: Array) -> int:
    """Return the sum of integers, or the number of true elements."""
    result = backend.xp.zeros(1, np.int64)
    add_up[backend](0, len(values), values.view(np.uint8) if values.dtype == bool else values, result)
    return int(result[0])
