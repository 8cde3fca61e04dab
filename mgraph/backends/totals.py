"""Sums of whole arrays, for the host: what xp.sum would first compile seconds for on a GPU."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.types import Array


@kernel(id_t="values")
def add_up(lo, hi, values, total):
    """Add the values to the total."""
    mine = np.int64(0)
    for i in range(lo, hi):
        mine += np.int64(values[i])
    atomic_add(total, 0, mine)


@kernel(id_t="values")
def count_between(lo, hi, values, above, below, count):
    """Count the values that are more than `above` and less than `below`."""
    mine = np.int64(0)
    for i in range(lo, hi):
        mine += above < np.int64(values[i]) < below
    atomic_add(count, 0, mine)


def total(run: Backend, values: Array) -> int:
    """Return the sum of integers, or how many of truths are true."""
    found = run.xp.zeros(1, np.int64)
    add_up[run](0, len(values), values.view(np.uint8) if values.dtype == bool else values, found)
    return int(found[0])
