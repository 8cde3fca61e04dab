"""Runs of equal values in sorted arrays: count their lengths, and deduplicate."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.shard.rows_kernels import lightest_of_runs
from mgraph.types import Array


def lengths_of_runs(xp: Any, ordered: Array, num_values: int) -> Array:
    """Return how often each of 0..num_values-1 occurs in a sorted array.

    CuPy's bincount allocates more than a gigabyte in addition to an input of any size.
    """
    if len(ordered) == 0 or num_values == 0:
        return xp.zeros(num_values, np.int64)
    ends = xp.searchsorted(ordered, xp.arange(num_values, dtype=ordered.dtype), side="right")
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths


def runs_of(backend: Backend, ordered: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a sorted array that is not empty, and how often each occurs."""
    starts = backend.xp.flatnonzero(_are_first(backend.xp, ordered))
    values = backend.to_host(ordered[starts]).astype(np.int64)
    return values, np.diff(backend.to_host(starts), append=len(ordered))


def drop_parallel(backend: Backend, columns: list[Array], key_bits: int = 63) -> tuple[Array, Array | None]:
    """Return the sorted distinct keys, below 2**key_bits, and the lightest weight of each.

    Empties `columns` (keys, any weights).
    """
    xp = backend.xp
    keys = columns.pop(0)
    weights = columns.pop() if columns else None
    if weights is None:
        keys.sort()
        return keys[_are_first(xp, keys)], None
    index_bits = max(len(keys) - 1, 1).bit_length()
    if key_bits + index_bits <= 63:
        # Keys with their indices, which are sorted together: a sort of words is faster than an argsort.
        keys <<= index_bits
        keys |= xp.arange(len(keys))
        keys.sort()
        order = keys & ((1 << index_bits) - 1)
        keys >>= index_bits
    else:
        order = xp.argsort(keys)
        keys = keys[order]
    is_first = _are_first(xp, keys)
    starts = xp.flatnonzero(is_first)
    num_keys = len(starts)
    starts = xp.append(starts, len(keys))
    lightest = xp.empty(num_keys, weights.dtype)
    lightest_of_runs[backend](0, num_keys, starts, order, weights, lightest)
    del order, starts
    return keys[is_first], lightest


def _are_first(xp: Any, ordered: Array) -> Array:
    """Return which elements differ from the one before them."""
    is_first = xp.empty(len(ordered), bool)
    is_first[:1] = True
    xp.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first
