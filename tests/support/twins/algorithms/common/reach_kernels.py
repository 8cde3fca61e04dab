"""Arguments for the kernels of algorithms/common/reach_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import Types, seeds, types

from mgraph.types import none_of, unreached_of

STAMP = np.dtype(np.int32)
MAX_VISIT = 5


def _states(draw: st.DrawFn) -> tuple[np.random.Generator, Types, int, int, np.ndarray]:
    """Draw the states of grains of less and more states than a warp, many of them equal, some or all unreached."""
    kinds = draw(types)
    random = np.random.default_rng(draw(seeds))
    bits = draw(st.sampled_from([3, 6]))
    num_grains = draw(st.integers(1, 6) | st.integers(30, 40))
    count = num_grains << bits
    states = random.integers(0, 9, count).astype(kinds.dist)
    states[random.random(count) < random.choice([0.3, 1])] = unreached_of(kinds.dist)
    return random, kinds, bits, num_grains, states


def _parents(random: np.random.Generator, kinds: Types, count: int) -> np.ndarray:
    parents = random.integers(0, 50, count).astype(kinds.vertex)
    parents[random.random(count) < 0.3] = none_of(kinds.vertex)
    return parents


def note_lowered(draw: st.DrawFn) -> Case:
    """Draw grains in which none, some or all states have been lowered, of which some are marked."""
    random, kinds, bits, num_grains, states = _states(draw)
    before = states.copy()
    before[random.random(len(states)) < np.repeat(random.choice([0, 0.1, 1], num_grains), 1 << bits)] = unreached_of(
        kinds.dist
    )
    args = {"lo": 0, "hi": num_grains, "grain_bits": bits, "visit": MAX_VISIT}
    args |= {
        "states": states,
        "lowered": random.integers(0, 2, num_grains).astype(np.uint8),
        "before": before,
        "parents": _parents(random, kinds, len(states)),
        "stamps": random.integers(0, MAX_VISIT, len(states)).astype(STAMP),
        "latest": random.integers(0, MAX_VISIT, num_grains).astype(STAMP),
        "counters": np.array([7]),
    }
    return Case(args)


def find_farthest(draw: st.DrawFn) -> Case:
    random, kinds, bits, num_grains, states = _states(draw)
    args = {"lo": 0, "hi": num_grains, "grain_bits": bits, "states": states}
    args |= {
        "parents": _parents(random, kinds, len(states)),
        "far_states": Unwritten(num_grains, kinds.dist),
        "far_parents": Unwritten(num_grains, kinds.vertex),
    }
    return Case(args)


def _ranges(random: np.random.Generator, num_grains: int, num_parts: int) -> np.ndarray:
    """Draw the grains of parts, of any ranges, also empty ones."""
    return np.sort(random.integers(0, num_grains + 1, (num_parts, 2, 2))).reshape(-1, 4)


def find_nearest(draw: st.DrawFn) -> Case:
    """Draw parts of which none, some or all states were lowered after the visit."""
    random, kinds, bits, num_grains, states = _states(draw)
    num_parts = draw(st.integers(1, 4))
    slices = draw(st.integers(1, 3))
    stamps = random.integers(0, MAX_VISIT, len(states)).astype(STAMP)
    multiplier = draw(st.integers(1, 3))
    args = {
        "lo": 0,
        "hi": 2 * num_parts * slices,
        "shape": np.array([bits, draw(st.integers(0, 1)), -(-len(states) // multiplier), multiplier, slices]),
        "ranges": _ranges(random, num_grains, num_parts),
        "visited": random.integers(0, MAX_VISIT, num_parts),
        "states": states,
        "stamps": stamps,
        "latest": stamps.reshape(num_grains, -1).max(axis=1),
        "nearest": Unwritten(2 * num_parts * slices, kinds.dist),
        "positions": Unwritten(2 * num_parts * slices, kinds.vertex),
    }
    return Case(args)


def find_reach(draw: st.DrawFn) -> Case:
    """Draw parts of which some slices have no state, and many the same."""
    random, kinds, _, num_grains, _ = _states(draw)
    num_parts = draw(st.integers(1, 4))
    slices = draw(st.integers(1, 3))
    num_slices = 2 * num_parts * slices
    far_states = random.integers(3, 9, num_grains).astype(kinds.dist)
    far_states[random.random(num_grains) < 0.2] = unreached_of(kinds.dist)
    nearest = random.integers(0, 5, num_slices).astype(kinds.dist)
    positions = random.integers(0, 50, num_slices).astype(kinds.vertex)
    has_none = random.random(num_slices) < 0.3
    nearest[has_none] = unreached_of(kinds.dist)
    positions[has_none] = none_of(kinds.vertex)
    args = {
        "lo": 0,
        "hi": 2 * num_parts,
        "slices": slices,
        "bounds": np.array([draw(st.integers(0, 3)), draw(st.sampled_from([4, unreached_of(kinds.dist)]))], kinds.dist),
        "ranges": _ranges(random, num_grains, num_parts),
        "nearest": nearest,
        "positions": positions,
        "far_states": far_states,
        "far_parents": _parents(random, kinds, num_grains),
        "reach": Unwritten(2 * num_parts, kinds.dist),
    }
    return Case(args)
