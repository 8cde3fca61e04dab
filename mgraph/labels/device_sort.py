"""Sort the labels of a dictionary in device memory: by their first words, and ties by the next words, as far as needed.

order = argsort(first words)
while some labels tie:
    order of the tied = argsort(tie, whether the label goes on, its next word or its length)
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.labels.device_sort_kernels import (
    arrange,
    find_ties,
    number_labels,
    read_keys,
    take_ties,
    write_integers,
    write_strings,
)
from mgraph.labels.strings import Strings
from mgraph.types import Array, vertex_dtype


def sort_strings(backend: Backend, places: Array, words: Array) -> tuple[Array, Strings]:
    """Return the id of each code, on the device, and the distinct strings in order, in host memory."""
    codes = sort_codes(backend, places, words)
    ids, lengths = _numbered(backend, codes, places, words)
    offsets = backend.xp.cumsum(lengths)
    text = backend.xp.empty(int(offsets[-1]), np.uint8)
    write_strings[backend](0, len(codes), codes, places, words, offsets, text)
    return ids, Strings(backend.to_host(offsets), backend.to_host(text))


def sort_integers(backend: Backend, places: Array, words: Array, *, signed: bool) -> tuple[Array, np.ndarray]:
    """Return the id of each code, on the device, and the distinct integers in order, in host memory."""
    codes = sort_codes(backend, places, words)
    ids, _ = _numbered(backend, codes, places, words)
    values = backend.xp.empty(len(codes), np.uint64)
    write_integers[backend](0, len(codes), codes, places, words, int(signed), values)
    return ids, backend.to_host(values).view(np.int64 if signed else np.uint64)


def sort_codes(backend: Backend, places: Array, words: Array) -> Array:
    """Return the codes of distinct labels in the labels' order, that of `compare_records`."""
    xp = backend.xp
    num = len(places)
    keys = xp.empty(num, np.uint64)
    sides = codes = at = None
    depth = 0
    read_keys[backend](0, num, None, None, places, words, depth, keys, None)
    order = sorted_codes = xp.argsort(keys, kind="stable")
    while True:
        tied, ties = _ties(backend, order, keys, sides)
        num = len(tied)
        if not num:
            return sorted_codes
        longer = [xp.empty(num, np.int64) for _ in range(3)]
        take_ties[backend](0, num, tied, order, codes, at, ties, *longer)
        codes, at, ties = longer
        depth += 1
        keys = xp.empty(num, np.uint64)
        sides = xp.empty(num, np.int64)
        read_keys[backend](0, num, codes, ties, places, words, depth, keys, sides)
        order = xp.argsort(keys, kind="stable")
        order = order[xp.argsort(sides[order], kind="stable")]
        arrange[backend](0, num, order, codes, at, sorted_codes)


def _ties(backend: Backend, order: Array, keys: Array, sides: Array | None) -> tuple[Array, Array]:
    """Return the places in the order with labels that tie with a neighbor, and the number of every place's tie."""
    num = len(order)
    begins = backend.xp.empty(num, np.int64)
    is_tied = backend.xp.empty(num, np.uint8)
    find_ties[backend](0, num, num, order, keys, sides, begins, is_tied)
    return backend.xp.flatnonzero(is_tied), backend.xp.cumsum(begins)


def _numbered(backend: Backend, codes: Array, places: Array, words: Array) -> tuple[Array, Array]:
    """Return the id of each code, and the length of each label after its id."""
    ids = backend.xp.empty(len(codes), vertex_dtype(len(codes)))
    lengths = backend.xp.zeros(len(codes) + 1, np.int64)
    number_labels[backend](0, len(codes), codes, places, words, ids, lengths)
    return ids, lengths
