"""Codes are equal for equal labels alone, even if all hashes collide."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mgraph.labels.dictionary import NUM_PARTS, Dictionary
from mgraph.labels.spread import serially
from mgraph.labels.strings import Strings


@pytest.fixture
def colliding():
    """Return a dictionary in which the hash of every label is 0."""
    dictionary = Dictionary()
    dictionary._seeds = np.zeros(4, np.uint64)
    return dictionary


def test_labels_of_one_hash_stay_apart(colliding):
    labels = [text + "\0" * k for text in ("a", "b" * 8, "b" * 9, "é") for k in range(60)]
    codes = colliding.encode_strings(Strings.of(labels * 3), str).reshape(3, -1)
    assert len(colliding) == len(set(codes[0].tolist())) == len(labels)
    assert (codes == codes[0]).all()


def test_integers_of_one_hash_stay_apart(colliding):
    values = np.array([0, -1, 1, 1 << 62, -(1 << 62), *range(100, 300)])
    codes = colliding.encode_integers(np.tile(values, 3)).reshape(3, -1)
    assert len(colliding) == len(set(codes[0].tolist())) == len(values)
    assert (codes == codes[0]).all()


def test_threads_agree_on_codes():
    dictionary = Dictionary()
    pieces = [np.random.default_rng(k).integers(0, 5000, 20_000) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        codes = np.concatenate(list(pool.map(dictionary.encode_integers, pieces)))
    values = np.concatenate(pieces)
    code_of_value = np.zeros(5000, np.uint32)
    code_of_value[values] = codes
    np.testing.assert_array_equal(code_of_value[values], codes)
    assert len(dictionary) == len(np.unique(codes)) == len(np.unique(values))


def test_memory_of_a_label_is_bounded():
    dictionary = Dictionary()
    dictionary.encode_integers(np.arange(400_000) * 1_000_003)
    assert dictionary.nbytes / len(dictionary) < 80
    addresses, num_codes, _ = dictionary.records(np.uint64(0), 0, serially)
    assert len(addresses) == 400_000
    assert num_codes < 1.2 * 400_000 + NUM_PARTS
