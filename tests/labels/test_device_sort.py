"""Labels that differ late, only in length, or only in zero bytes are sorted on a GPU as on the host."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulator.backend import EmulatedBackend

from mgraph.labels.device_dictionary import DeviceDictionary
from mgraph.labels.strings import Strings

LABELS = {
    "each a prefix of the next": ["a" * k for k in range(1, 60)],
    "differ after a growing prefix": ["a" * k + "b" for k in range(60)],
    "differ in zero bytes at the end": ["a" + "\0" * k for k in range(60)],
    "zero bytes alone": ["\0" * k for k in range(1, 60)],
    "zero bytes, then more": [a + "\0" * k + b for k in range(30) for a, b in (("", "x"), ("ab", ""), ("ab", "z"))],
    "several ties of different depths": [f"{'x' * 9 * (k % 4)}{k // 7:03}{'y' * (k % 7)}" for k in range(150)],
    "one": ["only"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_hard_strings_are_sorted(kind):
    given = list(LABELS[kind])
    random.Random(1).shuffle(given)
    backend = EmulatedBackend(seed=4)
    dictionary = DeviceDictionary(backend)
    codes = backend.to_host(dictionary.encode_strings(Strings.of(given), str))
    dictionary.close(signed=False)
    ids, labels = dictionary.sort_strings()
    in_order = sorted(set(given))
    assert labels.tolist() == in_order
    assert [in_order[i] for i in backend.to_host(ids)[codes]] == given


@pytest.mark.parametrize("signed", [False, True])
def test_integers_are_sorted_by_value(signed):
    dtype = np.int64 if signed else np.uint64
    given = np.random.default_rng(2).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 200, dtype)
    backend = EmulatedBackend(seed=5)
    dictionary = DeviceDictionary(backend)
    codes = backend.to_host(dictionary.encode_integers(given))
    dictionary.close(signed=signed)
    ids, labels = dictionary.sort_integers(signed=signed)
    np.testing.assert_array_equal(labels, np.unique(given), strict=True)
    np.testing.assert_array_equal(labels[backend.to_host(ids)[codes]], given)
