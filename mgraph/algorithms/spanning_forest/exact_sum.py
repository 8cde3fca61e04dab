"""The sum of an array's values without rounding, so that it does not depend on their order or on who holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.types import Array

# Any float64 is a whole number of these: 2^-1074 is the least above zero.
UNIT_BITS = 1074
_MANTISSA_BITS = 53
_HALF_BITS = 27


def exact_sum(xp: Any, values: Array) -> int:
    """Return the sum of integers, or that of floats in units of 2^-1074: sums of parts may be added."""
    if values.dtype.kind != "f":
        # By halves, each of whose sums fits 64 bits for up to 2^31 values.
        wide = values.astype(np.int64)
        return (int((wide >> 32).sum()) << 32) + int((wide & 0xFFFFFFFF).sum())
    mantissas, exponents = xp.frexp(values.astype(np.float64))
    mantissas = xp.ldexp(mantissas, _MANTISSA_BITS).astype(np.int64)
    total = 0
    for exponent in xp.unique(exponents).tolist():
        of_one = mantissas[exponents == exponent]
        whole = (int((of_one >> _HALF_BITS).sum()) << _HALF_BITS) + int((of_one & (1 << _HALF_BITS) - 1).sum())
        # Below 2^-1074 there is nothing: what this shifts out are zeros.
        shift = exponent - _MANTISSA_BITS + UNIT_BITS
        total += whole << shift if shift >= 0 else whole >> -shift
    return total


def as_float(units: int) -> float:
    """Return what `exact_sum` found of floats, rounded once."""
    try:
        return units / (1 << UNIT_BITS)
    except OverflowError:
        return float("inf") if units > 0 else float("-inf")
