"""Arguments for the kernels of algorithms/bfs/step_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, bits, rows, some, widths

# Without weights: only the width of a vertex varies.
unweighted = rows(widths(TYPES[0], TYPES[2]))


def _parents(r: DrawnRows) -> np.ndarray:
    parents = r.no_vertices(r.num_states)
    taken = some(r.random, r.num_states, 0.2)
    parents[taken] = r.random.integers(0, r.num_states, taken.sum())
    return parents


def push_level(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier = r.owned()
    offsets = r.offsets(frontier)
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "frontier": frontier,
        "num_frontier": len(frontier),
        "offsets": offsets,
        "indptr": r.indptr,
        "targets": r.targets,
        "visited": bits(some(r.random, r.num_states)),
        "base": r.base,
        "first": r.first,
        "multiplier": r.multiplier,
        "parents": _parents(r),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def merge_parents(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    n = draw(st.integers(1, 300))
    args = {
        "lo": 0,
        "hi": n,
        "states": r.random.integers(0, r.num_states, n).astype(r.types.vertex),
        "positions": r.random.integers(0, r.num_states, n).astype(r.types.vertex),
        "visited": bits(some(r.random, r.num_states)),
        "parents": _parents(r),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def pull_level(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "frontier": bits(some(r.random, r.num_states, 0.2)),
        "visited": bits(some(r.random, r.num_states)),
        "base": r.base,
        "stride": r.stride,
        "multiplier": r.multiplier,
        "parents": r.no_vertices(r.num_states),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def settle_level(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    found = r.owned()
    args = {
        "lo": 0,
        "hi": len(found),
        "found": found,
        "indptr": r.indptr,
        "base": r.base,
        "level": draw(st.integers(0, 300)),
        "visited": bits(some(r.random, r.num_states)),
        "levels": np.full(r.num_owned, -1, np.int32),
        "lengths": Unwritten(len(found), np.int64),
        "counters": np.zeros(3, np.int64),
    }
    return Case(args)


def mark_bits(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    states = r.owned()
    args = {"lo": 0, "hi": len(states), "states": states, "bits": bits(some(r.random, r.num_states))}
    return Case(args)
