"""Arguments for the kernels of algorithms/sssp/delta_stepping_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import DrawnRows, bits, rows, some

from mgraph.types import unreached_of


def _rows(draw: st.DrawFn) -> tuple[DrawnRows, float]:
    """Return rows of a single rank, and the scale of their weight classes."""
    return draw(rows(ranks=st.just((1, 0)))), draw(st.sampled_from([1.0, 0.5]))


def _bounds(r: DrawnRows) -> np.ndarray:
    begin, settled, bound = np.sort(r.random.integers(0, 7, 3))
    return np.array([settled, bound, r.random.integers(4, 9), begin], r.types.dist)


def _lowest(r: DrawnRows) -> np.ndarray:
    return np.array([r.random.choice([2, unreached_of(r.types.dist)])], r.types.dist)


def relax_light(draw: st.DrawFn) -> Case:
    """Draw weights too heavy to improve a vertex of the frontier, so that the order of threads has no effect."""
    r, scale = _rows(draw)
    r.weights = np.maximum(r.weights, r.types.weight.type(1))
    frontier = r.owned()
    dist = r.distances()
    dist[frontier] = r.random.integers(0, 2, len(frontier))
    bounds = _bounds(r)
    bounds[1] = max(bounds[1], 2)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.weights,
        **r.lightest(scale),
        "scale": scale,
        "bounds": bounds,
        "dist": dist,
        "marked": bits(np.zeros(r.num_states, bool)),
        "near": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("near",)))


def list_settled(draw: st.DrawFn) -> Case:
    r, _ = _rows(draw)
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "dist": r.distances(),
        "bounds": _bounds(r),
        "marked": bits(some(r.random, r.num_states, 0.1)),
        "settled": Unwritten(r.num_states, r.types.vertex),
        "near": Unwritten(r.num_states, r.types.vertex),
        "lowest": _lowest(r),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("near",), counters_1=("settled",)))


def pull_distances(draw: st.DrawFn) -> Case:
    """Draw weights so heavy that no pulled distance is one that another vertex pulls from."""
    r, scale = _rows(draw)
    bounds = _bounds(r)
    bounds[1] = max(bounds[1], bounds[0])
    giving = bounds[0] + draw(st.sampled_from([0, 3]))
    bounds = np.append(bounds, r.types.dist.type(giving))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.weights,
        **r.lightest(scale),
        "scale": scale,
        "bounds": bounds,
        "dist": _nothing_light(r, giving),
        "near": Unwritten(r.num_states, r.types.vertex),
        "lowest": _lowest(r),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("near",)))


def _nothing_light(r: DrawnRows, giving: float) -> np.ndarray:
    """Return distances in which no arc from below `giving` lowers a vertex to below it."""
    dist = r.distances(most=9)
    ends = np.repeat(np.arange(r.num_owned), np.diff(r.indptr))
    while True:
        through = dist[r.targets].astype(np.float64) + r.weights
        lowered = (dist[r.targets] < giving) & (through < giving) & (dist[ends] > through)
        if not lowered.any():
            return dist
        np.minimum.at(dist, ends[lowered], through[lowered].astype(dist.dtype))
