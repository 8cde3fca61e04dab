"""Arguments for the kernels of ingest/compact_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import bits, seeds, vertex_types, weight_types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.types import none_of


def _positions(random: np.random.Generator, users: np.ndarray, n: int, dtype: np.dtype, how: str) -> dict:
    """Return the arguments that map these user ids to positions."""
    nothing = {"bits": None, "before": None, "table": None}
    if how == "none":
        return nothing
    if how == "whole":
        whole = np.zeros(users.max() + 1, dtype)
        whole[users] = random.permutation(n)
        return nothing | {"table": whole}
    has = np.zeros(-(-(int(users.max()) + 1) // 32) * 32, bool)
    has[users] = True
    counts = has.reshape(-1, 32).sum(axis=1)
    before = (np.cumsum(counts) - counts).astype(dtype)
    return {"bits": bits(has), "before": before, "table": random.permutation(n).astype(dtype)}


def unpack_positions(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    n = draw(st.integers(1, 60))
    found = _positions(random, np.sort(random.choice(4 * n, n, replace=False)), n, dtype, "ranked")
    num_ids = 32 * len(found["bits"])
    first = draw(st.integers(0, num_ids - 1))
    return Case({"lo": first, "hi": num_ids, **found, "first": first, "out": Unwritten(num_ids - first, dtype)})


def orient_edges(draw: st.DrawFn) -> Case:
    """Few vertices, so that some edges are loops."""
    random = np.random.default_rng(draw(seeds))
    ids = draw(vertex_types)
    dtype = draw(vertex_types)
    n = draw(st.integers(1, 20))
    m = draw(st.integers(1, 200))
    ranks = draw(st.integers(1, 3))
    # Beyond the first word of a bitmap, too.
    ids_used = 13 * random.permutation(n)
    args = {
        "lo": 0,
        "hi": m,
        "from_ids": ids_used[random.integers(0, n, m)].astype(ids),
        "to_ids": ids_used[random.integers(0, n, m)].astype(ids),
        **_positions(random, ids_used, n, dtype, draw(st.sampled_from(["none", "whole", "ranked"]))),
        "stride": 64,
        "multiplier": ranks,
        "directed": draw(st.integers(0, 1)),
        "by_parity": draw(st.integers(0, 1)),
        "sources": Unwritten(m, dtype),
        "targets": Unwritten(m, dtype),
    }
    return Case(args)


def key_edges(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    m = draw(st.integers(1, 200))
    first = draw(st.integers(0, 2))
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
    """Draw keys of 50 buckets, and the range of buckets to process; -1 is no key."""
    random = np.random.default_rng(draw(seeds))
    shift = draw(st.sampled_from([0, 5, 40]))
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

    def in_any_order(result: Arrays) -> Arrays:
        """Sort the contents of each bucket: their order depends on the schedule of threads."""
        columns = [name for name in result if "out_" in name]
        order = np.lexsort([*(result[name] for name in columns), np.sort(buckets)])
        return {**result, **{name: result[name][order] for name in columns}}

    return Case(args, in_any_order)


def count_ends(draw: st.DrawFn) -> Case:
    _, half, args = units(draw, num_segments=3)
    args |= {"segment_bits": SEGMENT_BITS, "both_ways": draw(st.integers(0, 1))}
    return Case({**args, "degrees": np.zeros(2 * half, np.uint32)})
