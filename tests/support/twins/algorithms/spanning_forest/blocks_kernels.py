"""Arguments for the kernels of algorithms/spanning_forest/blocks_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.spanning_forest.kernels import sort_list
from twins.case import Case, Unwritten
from twins.drawing import seeds, some, types, vertex_types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.algorithms.spanning_forest.kernels import TOP


def _edges(draw: st.DrawFn, dtype: np.dtype) -> tuple[np.random.Generator, dict, list[int], int]:
    """Return units with few weights, so that there are ties; the parameters of their states, and how many these are."""
    random, half, args = units(draw, num_segments=3)
    multiplier = draw(st.integers(1, 3))
    stride = -(-2 * half // multiplier)
    args["weights"] = random.integers(0, 4, len(args["words"])).astype(dtype)
    return random, args, [SEGMENT_BITS, stride, multiplier, draw(st.integers(0, 1))], stride * multiplier


def find_lightest_ends(draw: st.DrawFn) -> Case:
    """Draw some words that are lower than most of the edges'."""
    dtype = draw(st.sampled_from((np.dtype(np.float32), np.dtype(np.uint8))))
    random, args, parameters, num_positions = _edges(draw, dtype)
    best = np.full(num_positions, TOP)
    best[some(random, num_positions, 0.2)] = 1 << 32
    return Case({**args, "parameters": np.array(parameters), "best": best})


def hook_ends(draw: st.DrawFn) -> Case:
    dtype = draw(vertex_types)
    random = np.random.default_rng(draw(seeds))
    size = draw(st.integers(1, 200))
    words = random.integers(-3, 3, size) << 32 | random.integers(0, size, size)
    words[some(random, size, 0.2)] = TOP
    out = {"above": Unwritten(size, dtype), "names": Unwritten(size, np.int64)}
    return Case({"lo": 0, "hi": size, "words": words, **out})


def list_block_edges(draw: st.DrawFn) -> Case:
    """Draw few trees, so that many edges are dropped."""
    kinds = draw(types)
    random, args, parameters, num_positions = _edges(draw, kinds.weight)
    num_edges = len(args["words"])
    keys = np.arange(4).astype(kinds.weight)
    if kinds.weight.kind == "f":
        keys = keys.view(f"i{kinds.weight.itemsize}")
    keys = np.sort(~keys.astype(np.int64) if parameters[3] else keys.astype(np.int64))
    low, high = sorted(random.choice(keys, 2).tolist())
    room = draw(st.sampled_from([num_edges, num_edges // 2]))
    args |= {
        "parameters": np.array([*parameters, low, high, room]),
        "labels": random.integers(0, draw(st.sampled_from([1, 3])), num_positions).astype(kinds.vertex),
        "counters": np.zeros(1, np.int64),
        "ends": Unwritten(2 * room, kinds.vertex),
        "keys": Unwritten(room, np.int64),
        "edges": Unwritten(room, np.int64),
    }
    return Case(args, lambda result: sort_list(result, 0))
