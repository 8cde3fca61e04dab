"""Test the sort of keys by their digits against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from mgraph.backends.radix_sort import sorted_keys


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 70_000])
@pytest.mark.parametrize(("low", "bits"), [(0, 1), (0, 10), (0, 11), (3, 20), (17, 36), (0, 63), (5, 0)])
def test_keys_are_sorted_by_some_bits_and_keep_their_order(count, low, bits):
    random = np.random.default_rng(count + bits)
    keys = random.integers(0, 1 << min(low + bits, 62) if bits else 1 << 30, count)
    by_bits = np.argsort((keys >> low) & ((1 << bits) - 1), kind="stable")
    np.testing.assert_array_equal(sorted_keys(keys.copy(), low, low + bits), keys[by_bits])


def test_equal_keys_are_sorted():
    np.testing.assert_array_equal(sorted_keys(np.full(5000, 7), 0, 30), np.full(5000, 7))
