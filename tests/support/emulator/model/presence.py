"""A kernel pair that tells whether an optional array was passed."""

from __future__ import annotations

from mgraph.backends.kernel import kernel


@kernel()
def tell_presence(lo, hi, array, found):
    """Write whether there is an array."""
    for i in range(lo, hi):
        found[i] = 0 if array is None else 1
