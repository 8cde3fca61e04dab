"""Arguments for the kernels of algorithms/bfs/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import bits, seeds, some, vertex_types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.types import none_of

# Windows of several words, and of one.
WINDOW_BITS = st.sampled_from([5, 6])


def _kinds(random: np.random.Generator, num_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of a frontier, and those of unreached states."""
    kinds = random.integers(0, 3, num_states)
    return bits(kinds == 0), bits(kinds == 1)


def _units(draw: st.DrawFn) -> tuple[np.random.Generator, int, dict, dict]:
    """Return the number of states, arrays of units, and a shape with flags of its ranges."""
    random, half, args = units(draw, num_segments=3)
    num_states = 2 * half
    window_bits = draw(WINDOW_BITS)
    multiplier = draw(st.integers(1, 3))
    shape = [draw(st.integers(0, 1)), num_states // multiplier, multiplier, SEGMENT_BITS, window_bits]
    flags = {
        name: some(random, 2 * ((num_states >> bits) + 1), 0.7).astype(np.uint8)
        for name, bits in (("segments", SEGMENT_BITS), ("windows", window_bits))
    }
    return random, num_states, args, {"shape": np.array(shape), **flags}


def mark_units(draw: st.DrawFn) -> Case:
    _, _, args, flags = _units(draw)
    del args["words"]
    return Case({**args, **flags, "is_wanted": Unwritten(args["hi"], np.uint8), "counters": np.zeros(1, np.int64)})


def sweep_frontier(draw: st.DrawFn) -> Case:
    dtype = draw(vertex_types)
    random, num_states, args, flags = _units(draw)
    frontier, unreached = _kinds(random, num_states)
    parents = random.integers(0, num_states, num_states).astype(dtype)
    parents[some(random, num_states)] = none_of(dtype)
    listed = np.flatnonzero(some(random, args.pop("hi"), 0.7))
    return Case({
        "lo": args.pop("lo"),
        "hi": len(listed),
        "units": listed,
        **args,
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
