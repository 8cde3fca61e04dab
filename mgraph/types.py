"""Types that every layer shares: dtypes of ids, weights and states, and their sentinels."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

# An array of the backend in use: numpy.ndarray or cupy.ndarray.
Array = Any

LEVEL = np.dtype(np.int32)
# Levels of a search while they fit bytes.
NARROW_LEVEL = np.dtype(np.uint8)
WEIGHT_DTYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "int32", "int64", "float32", "float64"))

# Vertex ids, positions and state indices are uint32 if they fit and int64 otherwise: never uint64,
# which NumPy and Numba convert to float64 when an int64 is added.
SMALL_VERTEX = np.dtype(np.uint32)
LARGE_VERTEX = np.dtype(np.int64)
# The sentinel "no vertex" of small ids.
_SMALL_NONE = int(np.iinfo(SMALL_VERTEX).max)


def vertex_dtype(count: int) -> np.dtype:
    """Return the smallest dtype of ids 0..count-1 and the sentinel `none_of`."""
    return SMALL_VERTEX if count < _SMALL_NONE else LARGE_VERTEX


@functools.cache
def none_of(dtype: np.dtype) -> int:
    """Return the sentinel "no vertex": the largest value, so that minima prefer any vertex."""
    return int(np.iinfo(dtype).max)


def smallest_of(dtype: np.dtype) -> float | int:
    """Return the smallest positive distance of this dtype."""
    return float(np.finfo(dtype).smallest_subnormal) if dtype.kind == "f" else 1


@functools.cache
def unreached_of(dtype: np.dtype) -> float | int:
    """Return the state of an unreached vertex: the largest value, which sweeps only lower."""
    dtype = np.dtype(dtype)
    if dtype == np.uint16:
        # GPUs compute minima of 16 bits as half-precision floats; these are the bits of infinity.
        return 0x7C00
    return float("inf") if dtype.kind == "f" else int(np.iinfo(dtype).max)


def saturating_sum(distance: Any, weight: float | int) -> np.generic:
    """Return a sum in the dtype of distances, at most that of unreached states."""
    if distance.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return distance + distance.dtype.type(weight)
    return distance.dtype.type(min(int(distance) + int(weight), unreached_of(distance.dtype)))


def signed(word: int) -> int:
    """Return the int64 with the bits of an unsigned 64-bit word, for a kernel's parameter."""
    return word - (1 << 64) if word >> 63 else word
