"""Sum an array without rounding: the result does not depend on the order of the values or on the number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.types import Array

# Every float64 is a multiple of 2^-1074, the smallest positive one.
UNIT_BITS = 1074
_MANTISSA_BITS = 53
_HALF_BITS = 27
# Sums of up to 2^31 floats below 2^1024, in words of 32 bits.
_NUM_WORDS = (UNIT_BITS + 1024 + 31) // 32 + 1


def exact_sum(xp: Any, values: Array) -> int:
    """Return the sum of integers, or of floats in units of 2^-1074.

    Sums of parts may be added.
    """
    if values.dtype.kind != "f":
        if values.dtype.itemsize < 8:
            return int(values.sum(dtype=np.int64))
        # Upper and lower halves separately: each sum fits 64 bits for up to 2^31 values.
        wide = values.astype(np.int64, copy=False)
        return (int((wide >> 32).sum()) << 32) + int((wide & 0xFFFFFFFF).sum())
    mantissas, exponents = xp.frexp(values.astype(np.float64))
    mantissas = xp.ldexp(mantissas, _MANTISSA_BITS).astype(np.int64)
    total = 0
    for exponent in xp.unique(exponents).tolist():
        group = mantissas[exponents == exponent]
        whole = (int((group >> _HALF_BITS).sum()) << _HALF_BITS) + int((group & (1 << _HALF_BITS) - 1).sum())
        # Every value is a multiple of 2^-1074: a right shift drops only zeros.
        shift = exponent - _MANTISSA_BITS + UNIT_BITS
        total += whole << shift if shift >= 0 else whole >> -shift
    return total


def sum_of_ranks(comm: Communicator, units: int) -> int:
    """Return the sum over all ranks of sums by `exact_sum` that are not negative."""
    words = np.frombuffer(units.to_bytes(4 * _NUM_WORDS, "little"), np.uint32).astype(np.int64)
    return sum(word << 32 * k for k, word in enumerate(comm.allreduce(words, "sum").tolist()))


def as_float(units: int) -> float:
    """Return a sum of floats by `exact_sum` as a float, rounded once."""
    try:
        return units / (1 << UNIT_BITS)
    except OverflowError:
        return float("inf") if units > 0 else float("-inf")
