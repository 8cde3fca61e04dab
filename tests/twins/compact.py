"""Arguments for the kernels of compact.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Answer, Case, Unwritten
from twins.drawing import seeds, vertex_types, weight_types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.types import none_of


def orient_edges(draw: st.DrawFn) -> Case:
    """Few vertices, so that some edges are loops."""
    random, ids, dtype = np.random.default_rng(draw(seeds)), draw(vertex_types), draw(vertex_types)
    n, m, ranks = draw(st.integers(1, 20)), draw(st.integers(1, 200)), draw(st.integers(1, 3))
    args = {
        "lo": 0,
        "hi": m,
        "from_ids": random.integers(0, n, m).astype(ids),
        "to_ids": random.integers(0, n, m).astype(ids),
        "table": random.permutation(n).astype(dtype) if draw(st.booleans()) else None,
        "stride": 64,
        "multiplier": ranks,
        "directed": draw(st.integers(0, 1)),
        "by_parity": draw(st.integers(0, 1)),
        "sources": Unwritten(m, dtype),
        "targets": Unwritten(m, dtype),
    }
    return Case(args)


def key_edges(draw: st.DrawFn) -> Case:
    random, dtype = np.random.default_rng(draw(seeds)), draw(vertex_types)
    m, first = draw(st.integers(1, 200)), draw(st.integers(0, 2))
    sources = random.integers(first << 4, 64 << 4, m).astype(dtype)
    sources[random.random(m) < 0.1] = none_of(dtype)
    args = {
        "lo": 0,
        "hi": m,
        "sources": sources,
        "targets": random.integers(0, 1 << 10, m).astype(dtype),
        "first_window": first,
        "window_bits": 4,
        "subwindow_bits": draw(st.integers(2, 4)),
        "segment_bits": 3,
        "tile_bits": 9,
        "keys": Unwritten(m, np.int64),
    }
    return Case(args)


def _buckets(draw: st.DrawFn) -> tuple[np.random.Generator, np.ndarray, int, int, int]:
    """Draw keys of 50 buckets, and which of the buckets are wanted; -1 is no key."""
    random, shift = np.random.default_rng(draw(seeds)), draw(st.sampled_from([0, 5, 40]))
    first = draw(st.integers(0, 49))
    keys = random.integers(-1, 50, draw(st.integers(1, 300)))
    keys = np.where(keys < 0, -1, keys << shift | random.integers(0, 1 << shift, len(keys)))
    return random, keys, shift, first, draw(st.integers(first, 50))


def count_keys(draw: st.DrawFn) -> Case:
    _, keys, shift, first, last = _buckets(draw)
    args = {"lo": 0, "hi": len(keys), "keys": keys, "shift": shift, "first": first, "last": last}
    return Case({**args, "counts": np.zeros(last - first, np.int64)})


def place_keys(draw: st.DrawFn) -> Case:
    random, keys, shift, first, last = _buckets(draw)
    weight = draw(weight_types)
    weights = None if weight is None else random.integers(0, 9, len(keys)).astype(weight)
    buckets = (keys >> shift)[(keys >> shift >= first) & (keys >> shift < last)]
    lengths = np.bincount(buckets - first, minlength=last - first)
    args = {
        "lo": 0,
        "hi": len(keys),
        "keys": keys,
        "weights": weights,
        "shift": shift,
        "first": first,
        "last": last,
        "cursors": np.cumsum(lengths) - lengths,
        "out_keys": Unwritten(len(buckets), np.int64),
        "out_weights": None if weight is None else Unwritten(len(buckets), weight),
    }

    def in_any_order(answer: Answer) -> Answer:
        """Sort what stands in each bucket: the order of arrival is free."""
        columns = [name for name in answer if "out_" in name]
        order = np.lexsort([*(answer[name] for name in columns), np.sort(buckets)])
        return {**answer, **{name: answer[name][order] for name in columns}}

    return Case(args, in_any_order)


def count_ends(draw: st.DrawFn) -> Case:
    _, half, args = units(draw, num_segments=3)
    args |= {"segment_bits": SEGMENT_BITS, "both_ways": draw(st.integers(0, 1))}
    return Case({**args, "degrees": np.zeros(2 * half, np.uint32)})
