"""Arguments for the kernels of algorithms/pagerank/kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import TYPES, rows, seeds, some, widths

from mgraph.algorithms.pagerank.fixed_point import ONE

# Each dtype of weights takes seconds to compile.
drawn = rows(widths(TYPES[0], TYPES[2]))


def total_weights(draw: st.DrawFn) -> Case:
    """Draw weights of any magnitude, in rows of which some are empty, and a few are long or of zeros."""
    r = draw(drawn)
    weights = r.weights
    if weights.dtype.kind == "f":
        largest = 2.0 ** draw(st.sampled_from([0, 100] if weights.dtype == np.float32 else [0, 1010, -1040]))
        weights = (r.random.random(len(weights)) * largest * some(r.random, len(weights), 0.8)).astype(weights.dtype)
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "weights": weights}
    return Case({**args, "totals": Unwritten(r.num_owned, np.float64), "counters": np.zeros(1, np.int64)})


def pull_scores(draw: st.DrawFn) -> Case:
    r = draw(drawn)
    if draw(st.booleans()):
        r = r.lengthened(1100)  # more than two warps read at once
    weighted = draw(st.booleans())
    most = ONE // max(len(r.targets), 1) // 4
    given = r.random.integers(0, most, r.num_states)
    hi = len(r.targets)
    # As in the in-rows of a directed graph, many rows may be empty, one after another.
    before = draw(st.integers(0, r.num_owned))
    indptr = np.insert(r.indptr, before, np.repeat(r.indptr[before], draw(st.sampled_from([0, 1100]))))
    args = {
        "lo": 0,
        "hi": hi,
        "indptr": indptr,
        "num_rows": len(indptr) - 1,
        "targets": r.targets,
        "weights": r.weights if weighted else None,
        "given": given.astype(np.float64) / 3 if weighted else given,
        "received": np.zeros(len(indptr) - 1, np.int64),
        "counters": np.zeros(1, np.int64),
    }
    return Case(args, cut=draw(st.none() | st.integers(0, hi)))


def settle_scores(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 300))
    random = np.random.default_rng(draw(seeds))
    degrees = random.integers(0, 4, n).astype(draw(widths(np.dtype(np.int64), np.dtype(np.uint32))))
    totals = random.random(n) * some(random, n, 0.8) if draw(st.booleans()) else None
    args = {
        "lo": 0,
        "hi": n,
        "received": random.integers(0, ONE // n, n),
        "degrees": degrees,
        "totals": totals,
        "teleport": random.integers(0, ONE, n) if draw(st.booleans()) else None,
        "rest": draw(st.sampled_from([0, 1, ONE // (2 * n), ONE // n])),
        "damping": draw(st.sampled_from([0, ONE // 7 * 6, ONE])),
        "scores": random.integers(0, ONE // n, n),
        "given": Unwritten(n, np.int64 if totals is None else np.float64),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args)


def finish_scores(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 300))
    units = np.random.default_rng(draw(seeds)).integers(-1, ONE + 1, n)
    units[::3] = -1
    return Case({"lo": 0, "hi": n, "units": units, "share": ONE // 3, "scores": Unwritten(n, np.float64)})
