"""Arguments for the kernels of algorithms/pagerank/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import seeds, some
from twins.sweeps import SEGMENT_BITS, units

from mgraph.algorithms.pagerank.fixed_point import ONE


def _edges(draw: st.DrawFn) -> tuple[np.random.Generator, int, dict]:
    """Return a generator, the number of states, and the arguments of edges with weights."""
    random, half, args = units(draw, num_segments=3)
    weights = random.integers(0, 5, len(args["words"])).astype(np.float32)
    weights *= np.where(some(random, len(weights), 0.5), np.float32(-0.0), np.float32(0.3))
    shape = {"weights": weights, "segment_bits": SEGMENT_BITS, "both_ways": draw(st.integers(0, 1))}
    return random, 2 * half, {**args, **shape}


def sweep_scores(draw: st.DrawFn) -> Case:
    random, num_states, args = _edges(draw)
    given = random.integers(0, ONE // max(len(args["words"]), 1) // 8, num_states)
    if draw(st.booleans()):
        args["weights"] = None
    else:
        given = given.astype(np.float64) / 3
    args["ways"] = draw(st.integers(1, 3))
    del args["both_ways"]
    args |= {"given": given, "received": np.zeros(num_states, np.int64), "counters": np.zeros(1, np.int64)}
    return Case(args)


def find_greatest(draw: st.DrawFn) -> Case:
    _, num_states, args = _edges(draw)
    return Case({**args, "least": np.zeros(num_states, np.int64)})


def add_weights(draw: st.DrawFn) -> Case:
    random, num_states, args = _edges(draw)
    greatest = np.where(some(random, num_states, 0.8), 5 + random.random(num_states), 0.0)
    return Case({**args, "greatest": greatest, "sums": np.zeros(2 * num_states, np.int64)})


def join_sums(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 300))
    random = np.random.default_rng(draw(seeds))
    greatest = random.random(n) * some(random, n, 0.8) * 2.0 ** draw(st.sampled_from([0, 1010, -1040]))
    args = {"lo": 0, "hi": n, "greatest": greatest, "sums": random.integers(0, 1 << 40, 2 * n)}
    return Case({**args, "totals": Unwritten(n, np.float64), "counters": np.zeros(1, np.int64)})
