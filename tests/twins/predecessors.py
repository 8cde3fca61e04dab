"""Arguments for the kernels of predecessors.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import DrawnRows, rows, some


def _shared(draw: st.DrawFn, r: DrawnRows) -> dict:
    # Where distances are far apart, it takes a long row to find an arc that explains one.
    most = draw(st.sampled_from([5, 60]))
    return {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.weights,
        "dist": r.distances(most=most),
    }


def _own(r: DrawnRows) -> dict:
    parents = r.nobody(r.num_owned)
    parents[some(r.random, r.num_owned, 0.2)] = 5
    return {"base": r.base, "stride": r.stride, "multiplier": r.multiplier, "parents": parents}


def find_nearer(draw: st.DrawFn) -> Case:
    r = draw(rows())
    return Case({**_shared(draw, r), **_own(r), "counters": np.zeros(1, np.int64)})


def find_nearer_by_weight(draw: st.DrawFn) -> Case:
    """On one rank, where a position is a state; the rows are in order of weight as classes make it."""
    r = draw(rows(ranks=st.just((1, 0))))
    given = {**_shared(draw, r), "scale": draw(st.sampled_from([1.0, 0.5, 100.0]))}
    order = np.lexsort(
        [(r.weights * given["scale"]).astype(np.int64), np.repeat(np.arange(r.num_owned), np.diff(r.indptr))]
    )
    given["targets"], given["weights"], dist = r.targets[order], r.weights[order], given.pop("dist")
    return Case({**given, "dist": dist, "parents": _own(r)["parents"]})


def find_equal(draw: st.DrawFn) -> Case:
    r = draw(rows())
    hops = some(r.random, r.num_states).astype(np.uint8)
    new_hops = np.zeros(r.num_owned, np.uint8)
    return Case({**_shared(draw, r), "hops": hops, **_own(r), "new_hops": new_hops, "counters": np.zeros(1, np.int64)})
