"""Arguments for the kernels of algorithms/common/unit_flags_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import bits, seeds, some, types
from twins.sweeps import SEGMENT_BITS, WINDOW_BITS, flagged_units

from mgraph.types import unreached_of


def gather_lowered(draw: st.DrawFn) -> Case:
    dtype = draw(types).dist
    random = np.random.default_rng(draw(seeds))
    num_states = draw(st.integers(1, 3000))
    top = unreached_of(dtype)
    dist = random.integers(0, 9, num_states).astype(dtype)
    dist[some(random, num_states)] = top
    lowered = bits(some(random, num_states, draw(st.sampled_from([0.01, 0.4]))))
    pending = bits(some(random, num_states, 0.1))
    return Case({
        "lo": 0,
        "hi": len(pending),
        "num_states": num_states,
        "limit": np.array([draw(st.sampled_from([4, top]))], dtype),
        "dist": dist,
        "lowered": lowered,
        "pending": pending,
        "least": np.full(1, top, dtype),
        "counters": np.zeros(1, np.int64),
    })  # fmt: skip


def mark_states(draw: st.DrawFn) -> Case:
    dtype = draw(types).dist
    random = np.random.default_rng(draw(seeds))
    num_states = draw(st.integers(1, 3000))
    active = bits(some(random, num_states))
    dist = random.integers(0, 9, num_states).astype(dtype)
    dist[some(random, num_states)] = unreached_of(dtype)
    window_bits = draw(WINDOW_BITS)
    flags = {
        name: np.zeros(2 * ((32 * len(active) >> bits) + 1), np.uint8)
        for name, bits in (("segments", SEGMENT_BITS), ("windows", window_bits))
    }
    return Case({
        "lo": 0,
        "hi": len(active),
        "num_states": num_states,
        "bound": np.array([draw(st.sampled_from([0, 4, unreached_of(dtype)]))], dtype),
        "shape": np.array([1, 1, 1, SEGMENT_BITS, window_bits]),
        "active": active,
        "dist": dist,
        "marks": np.zeros(len(active), np.uint64),
        **flags,
    })  # fmt: skip


def mark_units(draw: st.DrawFn) -> Case:
    random, _, args, flags = flagged_units(draw)
    del args["words"]
    is_read = some(random, args["hi"], 0.8).astype(np.uint8)
    return Case({**args, **flags, "is_read": is_read, "counters": np.zeros(1, np.int64)})
