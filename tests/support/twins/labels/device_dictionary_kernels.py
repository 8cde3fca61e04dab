"""Arguments for the kernels of labels/device_dictionary_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten

from mgraph.labels import device_dictionary_kernels as kernels
from mgraph.labels.strings import Strings

# Few letters, so that labels are equal, or prefixes of each other, to the ends of words and beyond.
LETTERS = st.sampled_from(["a", "b", "\0", "é", "aaaaaaa", "bbbbbbbbbbbbbbbb"])
LABELS = st.lists(LETTERS, min_size=1, max_size=4).map("".join)
PLACE = np.uint64((1 << 40) - 1)


def seeds(draw: st.DrawFn) -> np.ndarray:
    """Draw seeds of the hash; with zeros all labels collide."""
    random = np.array([3, 0x9E3779B97F4A7C15, 5, 0xBF58476D1CE4E5B9], np.uint64)
    return draw(st.sampled_from([random, np.zeros(4, np.uint64)]))


def packed_strings(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return labels as records, and where they begin."""
    strings = Strings.of(texts)
    packed = np.zeros(2 * len(texts) + len(strings.data) // 8, np.uint64)
    starts = np.empty(len(texts), np.int64)
    kernels.pack_strings.cpu(0, len(texts), strings.data, strings.offsets, 0, packed, starts)
    return packed, starts


def dictionary(texts: list[str], hash_seeds: np.ndarray, num_slots: int) -> dict[str, np.ndarray]:
    """Return the words, places and slots of a dictionary of distinct labels, with 3 words and 3 places to spare."""
    packed, starts = packed_strings(texts)
    slots = np.zeros(num_slots, np.uint64)
    sizes = np.empty(len(texts), np.int64)
    codes = np.empty(len(texts), np.uint32)
    words = np.zeros(len(packed) + 4, np.uint64)
    places = np.zeros(len(texts) + 3, np.int64)
    kernels.insert_labels.cpu(0, len(texts), packed, starts, hash_seeds, words, num_slots, slots, sizes, codes)
    kernels.append_labels.cpu(0, len(texts), packed, starts, np.cumsum(sizes), codes, 1, 0, words, places, slots)
    return {"words": words, "places": places, "slots": slots}


def batches(draw: st.DrawFn) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray, np.ndarray, int]:
    """Draw seeds, a dictionary, and a batch of labels, of which it has some."""
    known = draw(st.lists(LABELS, max_size=10, unique=True))
    texts = draw(st.lists(LABELS, min_size=1, max_size=90))
    hash_seeds = seeds(draw)
    return hash_seeds, dictionary(known, hash_seeds, 128), *packed_strings(texts), len(known)


def pack_strings(draw: st.DrawFn) -> Case:
    texts = draw(st.lists(LABELS, max_size=80))
    strings = Strings.of(["before", *texts])
    first = int(strings.offsets[1])
    args = {
        "lo": 0,
        "hi": len(texts),
        "text": strings.data[first:].copy(),
        "offsets": strings.offsets[1:],
        "first": first,
        "packed": Unwritten(2 * len(texts) + (len(strings.data) - first) // 8, np.uint64),
        "starts": Unwritten(len(texts), np.int64),
    }
    return Case(args)


def pack_integers(draw: st.DrawFn) -> Case:
    values = np.array(draw(st.lists(st.integers(0, 2**64 - 1), max_size=80)), np.uint64)
    n = len(values)
    packed = Unwritten(2 * n, np.uint64)
    return Case({"lo": 0, "hi": n, "values": values, "packed": packed, "starts": Unwritten(n, np.int64)})


def insert_labels(draw: st.DrawFn) -> Case:
    hash_seeds, found, packed, starts, _ = batches(draw)
    n = len(starts)
    args = {
        "lo": 0,
        "hi": n,
        "packed": packed,
        "starts": starts,
        "seeds": hash_seeds,
        "words": found["words"],
        "num_slots": 128,
        "slots": found["slots"],
        "sizes": Unwritten(n, np.int64),
        "codes": Unwritten(n, np.uint32),
    }
    return Case(args, _without_order)


def _without_order(result: Arrays) -> Arrays:
    """Name a slot that equal labels have claimed by the first of them, and forget which thread was first."""
    first_of_slot: dict[int, int] = {}
    for i, code in enumerate(result["codes"].tolist()):
        if code & kernels.CLAIMED:
            slot = code & ~kernels.CLAIMED
            first = first_of_slot.setdefault(slot, i)
            result["codes"][i] = kernels.CLAIMED | first
            if i != first:
                result["sizes"][first] += result["sizes"][i]
                result["sizes"][i] = 0
    for slot, first in first_of_slot.items():
        result["slots"][slot] = (result["slots"][slot] & ~PLACE) | np.uint64(first)
    result["slots"].sort()
    return result


def append_labels(draw: st.DrawFn) -> Case:
    hash_seeds, found, packed, starts, count = batches(draw)
    n = len(starts)
    sizes = np.empty(n, np.int64)
    codes = np.empty(n, np.uint32)
    kernels.insert_labels.cpu(0, n, packed, starts, hash_seeds, found["words"], 128, found["slots"], sizes, codes)
    used = len(found["words"]) - 3
    words = np.concatenate([found["words"], np.zeros(len(packed), np.uint64)])
    places = np.concatenate([found["places"], np.zeros(n, np.int64)])
    args = {
        "lo": 0,
        "hi": n,
        "packed": packed,
        "starts": starts,
        "ends": np.cumsum(sizes),
        "codes": codes,
        "used": used,
        "count": count,
        "words": words,
        "places": places,
        "slots": found["slots"],
    }
    return Case(args)


def resolve_codes(draw: st.DrawFn) -> Case:
    known = draw(st.lists(LABELS, min_size=1, max_size=40, unique=True))
    found = dictionary(known, seeds(draw), 64)
    there = np.flatnonzero(found["slots"])
    codes = draw(st.lists(st.sampled_from([7, *(int(slot) | kernels.CLAIMED for slot in there)]), max_size=80))
    args = {
        "lo": 0,
        "hi": len(codes),
        "slots": found["slots"],
        "words": found["words"],
        "codes": np.array(codes, np.uint32),
    }
    return Case(args)


def insert_records(draw: st.DrawFn) -> Case:
    known = draw(st.lists(LABELS, max_size=80, unique=True))
    hash_seeds = seeds(draw)
    found = dictionary(known, hash_seeds, 128)

    def normal(result: Arrays) -> Arrays:
        result["slots"].sort()
        return result

    args = {
        "lo": 0,
        "hi": len(known),
        "places": found["places"],
        "words": found["words"],
        "seeds": hash_seeds,
        "num_slots": 256,
        "slots": np.zeros(256, np.uint64),
    }
    return Case(args, normal)
