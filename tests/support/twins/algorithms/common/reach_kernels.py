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
    """Draw the states of grains of less and more states than a warp, many of them equal or unreached."""
    kinds = draw(types)
    random = np.random.default_rng(draw(seeds))
    bits = draw(st.sampled_from([3, 6]))
    num_grains = draw(st.integers(1, 6))
    count = num_grains << bits
    states = random.integers(0, 9, count).astype(kinds.dist)
    states[random.random(count) < 0.3] = unreached_of(kinds.dist)
    return random, kinds, bits, num_grains, states


def _parents(random: np.random.Generator, kinds: Types, count: int) -> np.ndarray:
    parents = random.integers(0, 50, count).astype(kinds.vertex)
    parents[random.random(count) < 0.3] = none_of(kinds.vertex)
    return parents


def note_lowered(draw: st.DrawFn) -> Case:
    """Draw grains in which none, some or all states have been lowered."""
    random, kinds, bits, num_grains, states = _states(draw)
    before = states.copy()
    before[random.random(len(states)) < np.repeat(random.choice([0, 0.1, 1], num_grains), 1 << bits)] = unreached_of(
        kinds.dist
    )
    args = {"lo": 0, "hi": num_grains, "grain_bits": bits, "visit": MAX_VISIT, "states": states, "before": before}
    args |= {
        "parents": _parents(random, kinds, len(states)),
        "stamps": random.integers(0, MAX_VISIT, len(states)).astype(STAMP),
        "latest": random.integers(0, MAX_VISIT, num_grains).astype(STAMP),
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


def find_reach(draw: st.DrawFn) -> Case:
    """Draw parts of any ranges, also empty ones, of which none, some or all states were lowered after the visit."""
    random, kinds, bits, num_grains, states = _states(draw)
    num_parts = draw(st.integers(1, 4))
    stamps = random.integers(0, MAX_VISIT, len(states)).astype(STAMP)
    multiplier = draw(st.integers(1, 3))
    far_states = random.integers(3, 9, num_grains).astype(kinds.dist)
    far_states[random.random(num_grains) < 0.2] = unreached_of(kinds.dist)
    args = {
        "lo": 0,
        "hi": 2 * num_parts,
        "shape": np.array([bits, draw(st.integers(0, 1)), -(-len(states) // multiplier), multiplier]),
        "bounds": np.array([draw(st.integers(0, 3)), draw(st.sampled_from([4, unreached_of(kinds.dist)]))], kinds.dist),
        "ranges": np.sort(random.integers(0, num_grains + 1, (num_parts, 2, 2))).reshape(-1, 4),
        "visited": random.integers(0, MAX_VISIT, num_parts),
        "states": states,
        "stamps": stamps,
        "latest": stamps.reshape(num_grains, -1).max(axis=1),
        "far_states": far_states,
        "far_parents": _parents(random, kinds, num_grains),
        "reach": Unwritten(2 * num_parts, kinds.dist),
    }
    return Case(args)
