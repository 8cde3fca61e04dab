"""The words every layer shares: id and weight dtypes, sentinels, and one chunk of edges."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

# An array of the backend at hand: numpy.ndarray or cupy.ndarray.
Array = Any

LEVEL = np.dtype(np.int32)
# Of levels as long as bytes hold them.
NARROW_LEVEL = np.dtype(np.uint8)
WEIGHT_DTYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "int32", "int64", "float32", "float64"))

# Vertex ids, positions and state indices are uint32 while they fit and int64 beyond: never uint64,
# which both NumPy and Numba turn into float64 when an int64 is added.
SMALL_VERTEX = np.dtype(np.uint32)
LARGE_VERTEX = np.dtype(np.int64)
# The id that means no vertex, where ids are small.
_SMALL_NONE = int(np.iinfo(SMALL_VERTEX).max)


def vertex_dtype(count: int) -> np.dtype:
    """Return the dtype of ids 0..count-1 that leaves room for the sentinel `none_of`."""
    return SMALL_VERTEX if count < _SMALL_NONE else LARGE_VERTEX


@functools.cache
def none_of(dtype: np.dtype) -> int:
    """Return the id that means no vertex: the largest value, so that any vertex is smaller."""
    return int(np.iinfo(dtype).max)


def smallest_of(dtype: np.dtype) -> float | int:
    """Return the smallest distance of this dtype beyond 0."""
    return float(np.finfo(dtype).smallest_subnormal) if dtype.kind == "f" else 1


@functools.cache
def unreached_of(dtype: np.dtype) -> float | int:
    """Return the state of a vertex not reached: the top of the order that every sweep lowers."""
    dtype = np.dtype(dtype)
    if dtype == np.uint16:
        # GPUs find minima of 16 bits as of floats, and these are the bits of infinity.
        return 0x7C00
    return float("inf") if dtype.kind == "f" else int(np.iinfo(dtype).max)


def signed(word: int) -> int:
    """Return the int64 with the bits of a 64-bit word, as kernels take it."""
    return word - (1 << 64) if word >> 63 else word
