"""Arguments for the kernels of algorithms/bfs/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import bits, seeds, some, vertex_types
from twins.sweeps import SEGMENT_BITS, WINDOW_BITS, flagged_units, listed_units

from mgraph.types import none_of


def _kinds(random: np.random.Generator, num_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of a frontier, and those of unreached states."""
    kinds = random.integers(0, 3, num_states)
    return bits(kinds == 0), bits(kinds == 1)


def sweep_frontier(draw: st.DrawFn) -> Case:
    dtype = draw(vertex_types)
    random, num_states, args, flags = flagged_units(draw)
    frontier, unreached = _kinds(random, num_states)
    parents = random.integers(0, num_states, num_states).astype(dtype)
    parents[some(random, num_states)] = none_of(dtype)
    return Case({
        **listed_units(random, args),
        "segment_bits": SEGMENT_BITS,
        "shape": flags["shape"],
        "frontier": frontier,
        "unreached": unreached,
        "windows": flags["windows"],
        "parents": parents,
    })  # fmt: skip


def find_reached(draw: st.DrawFn) -> Case:
    dtype = draw(vertex_types)
    random = np.random.default_rng(draw(seeds))
    num_states = draw(st.integers(1, 300))
    _, unreached = _kinds(random, num_states + 64)
    parents = random.integers(0, num_states, num_states).astype(dtype)
    parents[some(random, num_states)] = none_of(dtype)
    frontier = np.zeros_like(unreached)
    return Case({
        "lo": 0,
        "hi": len(unreached),
        "num_states": num_states,
        "unreached": unreached,
        "parents": parents,
        "frontier": frontier,
    })  # fmt: skip


def settle_level(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    frontier, unreached = _kinds(random, draw(st.integers(1, 300)))
    window_bits = draw(WINDOW_BITS)
    num_states = 32 * len(frontier)
    flags = {
        name: np.zeros(2 * ((num_states >> bits) + 1), np.uint8)
        for name, bits in (("segments", SEGMENT_BITS), ("windows", window_bits))
    }
    first, last = sorted(random.integers(0, num_states + 1, 2).tolist())
    return Case({
        "lo": 0,
        "hi": len(frontier),
        "level": 7,
        "first": first,
        "last": last,
        "shape": np.array([1, num_states, 1, SEGMENT_BITS, window_bits]),
        "frontier": frontier,
        "unreached": unreached | frontier,
        "levels": random.integers(0, 7, last - first).astype(np.int32),
        **flags,
        "counters": np.zeros(1, np.int64),
    })  # fmt: skip
