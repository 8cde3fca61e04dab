"""Arguments for the kernels of labels/device_sort_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.labels.device_dictionary_kernels import LABELS, dictionary

SEEDS = np.array([3, 0x9E3779B97F4A7C15, 5, 0xBF58476D1CE4E5B9], np.uint64)


def records(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    """Draw some distinct labels: their number, places and words."""
    texts = draw(st.lists(LABELS, max_size=80, unique=True))
    found = dictionary(texts, SEEDS, 128)
    return len(texts), found["places"][: len(texts)], found["words"]


def permutation(draw: st.DrawFn, count: int) -> np.ndarray:
    """Draw an order."""
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(count)


def some_ties(draw: st.DrawFn, count: int) -> np.ndarray:
    """Draw the number of the tie of each label, in order."""
    return np.cumsum(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))).astype(np.int64)


def flip_signs(draw: st.DrawFn) -> Case:
    n, places, words = records(draw)
    return Case({"lo": 0, "hi": n, "places": places, "words": words})


def read_keys(draw: st.DrawFn) -> Case:
    n, places, words = records(draw)
    is_first = draw(st.booleans())
    args = {
        "lo": 0,
        "hi": n,
        "codes": None if is_first else permutation(draw, n),
        "ties": None if is_first else some_ties(draw, n),
        "places": places,
        "words": words,
        "depth": 0 if is_first else draw(st.integers(1, 4)),
        "keys": Unwritten(n, np.uint64),
        "sides": None if is_first else Unwritten(n, np.int64),
    }
    return Case(args)


def find_ties(draw: st.DrawFn) -> Case:
    n = draw(st.integers(0, 200))
    keys = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.uint64)
    sides = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    sides = draw(st.sampled_from([None, sides]))
    order = np.argsort(keys, kind="stable") if sides is None else np.lexsort([keys, sides])
    args = {
        "lo": 0,
        "hi": n,
        "count": n,
        "order": order,
        "keys": keys,
        "sides": sides,
        "begins": Unwritten(n, np.int64),
        "is_tied": Unwritten(n, np.uint8),
    }
    return Case(args)


def take_ties(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 200))
    is_first = draw(st.booleans())
    tied = np.flatnonzero(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    args = {
        "lo": 0,
        "hi": len(tied),
        "tied": tied,
        "order": permutation(draw, n),
        "codes": None if is_first else 10 + permutation(draw, n),
        "at": None if is_first else np.sort(permutation(draw, 2 * n)[:n]),
        "ties": some_ties(draw, n),
        "codes_of_tied": Unwritten(len(tied), np.int64),
        "at_of_tied": Unwritten(len(tied), np.int64),
        "ties_of_tied": Unwritten(len(tied), np.int64),
    }
    return Case(args)


def arrange(draw: st.DrawFn) -> Case:
    n = draw(st.integers(0, 200))
    args = {
        "lo": 0,
        "hi": n,
        "order": permutation(draw, n),
        "codes": 10 + permutation(draw, n),
        "at": np.sort(permutation(draw, 2 * n)[:n]),
        "sorted_codes": Unwritten(2 * n, np.int64),
    }
    return Case(args)


def number_labels(draw: st.DrawFn) -> Case:
    n, places, words = records(draw)
    args = {
        "lo": 0,
        "hi": n,
        "sorted_codes": permutation(draw, n),
        "places": places,
        "words": words,
        "ids": Unwritten(n, draw(st.sampled_from([np.uint32, np.int64]))),
        "lengths": Unwritten(n + 1, np.int64),
    }
    return Case(args)


def write_strings(draw: st.DrawFn) -> Case:
    n, places, words = records(draw)
    order = permutation(draw, n)
    lengths = (words[places[order]] >> np.uint64(32)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    args = {
        "lo": 0,
        "hi": n,
        "sorted_codes": order,
        "places": places,
        "words": words,
        "offsets": offsets,
        "text": np.zeros(int(offsets[-1]), np.uint8),
    }
    return Case(args)


def write_integers(draw: st.DrawFn) -> Case:
    n, places, words = records(draw)
    args = {
        "lo": 0,
        "hi": n,
        "sorted_codes": permutation(draw, n),
        "places": places,
        "words": words,
        "is_signed": draw(st.integers(0, 1)),
        "values": Unwritten(n, np.uint64),
    }
    return Case(args)
