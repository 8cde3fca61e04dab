"""Arguments for the kernels of algorithms/sssp/near_far_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import DrawnRows, bits, rows, some

from mgraph.types import unreached_of


def _bounds(r: DrawnRows) -> np.ndarray:
    low, high = sorted(r.random.integers(0, 7, 2))
    return np.array([low, high, r.random.integers(4, 9)], r.types.dist)


def relax_frontier(draw: st.DrawFn) -> Case:
    """Draw weights too heavy to improve a vertex of the frontier, so that the order of threads has no effect."""
    r = draw(rows())
    frontier = r.owned()
    dist = r.distances()
    dist[frontier] = r.random.integers(0, 2, len(frontier))
    offsets = r.offsets(frontier)
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "frontier": frontier,
        "num_frontier": len(frontier),
        "offsets": offsets,
        "begins": r.indptr[frontier.astype(np.int64) - r.base],
        "targets": r.targets,
        "weights": np.maximum(r.weights, r.types.weight.type(1)),
        "bounds": _bounds(r),
        "dist": dist,
        "marked": bits(np.zeros(r.num_states, bool)),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def merge_distances(draw: st.DrawFn) -> Case:
    r = draw(rows())
    n = draw(st.integers(1, 300))
    args = {
        "lo": 0,
        "hi": n,
        "states": r.random.integers(0, r.num_states, n).astype(r.types.vertex),
        "values": r.random.integers(0, 6, n).astype(r.types.dist),
        "dist": r.distances(),
        "marked": bits(np.zeros(r.num_states, bool)),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def clear_marks(draw: st.DrawFn) -> Case:
    r = draw(rows())
    states = r.owned()
    return Case({"lo": 0, "hi": len(states), "states": states, "marked": bits(some(r.random, r.num_states))})


def split_found(draw: st.DrawFn) -> Case:
    r = draw(rows())
    found = r.owned()
    args = {
        "lo": 0,
        "hi": len(found),
        "found": found,
        "dist": r.distances(),
        "bounds": _bounds(r),
        "keeps": draw(st.integers(0, 1)),
        "in_far": bits(some(r.random, r.num_states, 0.2)),
        "near": Unwritten(r.num_states, r.types.vertex),
        "far": Unwritten(r.num_states, r.types.vertex),
        "lowest": _lowest(r),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("near",), counters_1=("far",)))


def _lowest(r: DrawnRows) -> np.ndarray:
    return np.array([r.random.choice([2, unreached_of(r.types.dist)])], r.types.dist)


def split_far(draw: st.DrawFn) -> Case:
    r = draw(rows())
    far = r.owned()
    waits = np.zeros(r.num_states, bool)
    waits[far] = True
    args = {
        "lo": 0,
        "hi": len(far),
        "far": far,
        "dist": r.distances(),
        "bounds": _bounds(r),
        "in_far": bits(waits),
        "near": Unwritten(r.num_states, r.types.vertex),
        "next_far": Unwritten(r.num_states, r.types.vertex),
        "lowest": _lowest(r),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("near",), counters_1=("next_far",)))


def scan_distances(draw: st.DrawFn) -> Case:
    r = draw(rows())
    args = {
        "lo": r.base,
        "hi": r.base + r.num_owned,
        "dist": r.distances(),
        "bounds": _bounds(r),
        "near": Unwritten(r.num_states, r.types.vertex),
        "lowest": _lowest(r),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("near",)))


def measure_rows(draw: st.DrawFn) -> Case:
    r = draw(rows())
    states = r.owned()
    args = {
        "lo": 0,
        "hi": len(states),
        "states": states,
        "indptr": r.indptr,
        "stride": r.stride,
        "begins": Unwritten(len(states), np.int64),
        "lengths": Unwritten(len(states), np.int64),
    }
    return Case(args)
