"""Arguments for the kernels of algorithms/predecessors/rows_kernels.py."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case
from twins.drawing import DrawnRows, rows, seeds, some, types_found, widths

from mgraph.types import unreached_of


def _shared(draw: st.DrawFn, r: DrawnRows) -> dict:
    # Where distances differ widely, an arc that explains one is found late in a long row.
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
    parents = r.no_vertices(r.num_owned)
    parents[some(r.random, r.num_owned, 0.2)] = 5
    return {"base": r.base, "stride": r.stride, "multiplier": r.multiplier, "parents": parents}


def _threshold(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    """Draw the dense-region threshold: none, among the distances, or above most of them."""
    return np.array([draw(st.sampled_from([0, 1, 4, 30]))], r.types.dist)


def find_nearer(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    given = {**_shared(draw, r), "counters": np.zeros(1, np.int64)}
    dist = given.pop("dist")
    counters = given.pop("counters")
    exact = dist.dtype.kind != "f" and draw(st.booleans())
    given |= {"long_rows": draw(st.integers(0, r.num_owned)), "dist": dist}
    given["low_bytes"] = dist.astype(np.uint8) if exact else None
    given["threshold"] = _threshold(draw, r) if draw(st.booleans()) else None
    return Case({**given, **_own(r), "counters": counters})


def find_core(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    step = draw(st.integers(1, 4))
    given = {"lo": 0, "hi": r.num_states // step, "step": step, "dist": r.distances()}
    threshold = np.full(1, unreached_of(r.types.dist), r.types.dist)
    return Case({**given, "stride": r.stride, "multiplier": r.multiplier, "threshold": threshold})


def offer_early(draw: st.DrawFn) -> Case:
    """Draw a capacity for all candidates, or 0."""
    r = draw(rows(types_found))
    given = {**_shared(draw, r), "threshold": _threshold(draw, r)}
    given |= {"base": r.base, "stride": r.stride, "multiplier": r.multiplier}
    capacity = draw(st.sampled_from([0, len(r.targets)]))
    given |= {"capacity": capacity, "candidates": np.zeros(2 * (1 + len(r.targets)), r.types.vertex)}

    def normal(result: Arrays) -> Arrays:
        (count, _), *_ = pairs = result["candidates"].reshape(-1, 2)
        candidates = pairs[1 : 1 + int(count) if capacity else 1]
        candidates[:] = candidates[np.lexsort(candidates.T)]
        return result

    return Case(given, normal)


def take_offers(draw: st.DrawFn) -> Case:
    """Draw candidates, on one rank perhaps more than its capacity."""
    r = draw(rows(types_found))
    num_ranks = draw(st.sampled_from([1, 3]))
    capacity = 90 // num_ranks
    candidates = r.random.integers(0, r.num_states, (num_ranks, 1 + capacity, 2)).astype(r.types.vertex)
    candidates[:, 0, 0] = r.random.integers(0, capacity + draw(st.integers(1, 9)), num_ranks)
    candidates[:, 0, 1] = 0
    given = {"lo": 0, "hi": 90, "candidates": candidates.reshape(-1), "capacity": capacity, "num_ranks": num_ranks}
    given |= {"base": r.base, "num_owned": r.num_owned}
    return Case({**given, "parents": _own(r)["parents"], "threshold": np.array([7], r.types.dist)})


def digest_distances(draw: st.DrawFn) -> Case:
    dtype = np.dtype(draw(widths(np.uint32, np.int64, np.uint16)))
    dist = np.random.default_rng(draw(seeds)).integers(0, unreached_of(dtype), 40, dtype, endpoint=True)
    return Case({"lo": 0, "hi": len(dist), "dist": dist, "low_bytes": np.zeros(len(dist), np.uint8)})


def find_nearer_by_weight(draw: st.DrawFn) -> Case:
    """Draw rows; some are in order of falling length, the first a hub's, and with a threshold one is out of order."""
    r = draw(rows(types_found))
    falling = draw(st.booleans())
    if falling:
        r = r.lengthened(draw(st.sampled_from([0, 17000])))
    scale = draw(st.sampled_from([1.0, 0.5, 100.0]))
    lengths = np.diff(r.indptr)
    # The place of each row, and of each arc the place of its row.
    places = np.argsort(np.argsort(-lengths, kind="stable")) if falling else np.arange(r.num_owned)
    threshold = _threshold(draw, r)
    if falling and threshold[0] and r.num_owned > 2:
        places = np.where(places == 1, r.num_owned - 1, places - (places > 1))
    order = np.argsort(np.repeat(places, lengths), kind="stable")
    lengths[places] = lengths.copy()
    r = dataclasses.replace(
        r,
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        targets=r.targets[order],
        weights=r.weights[order],
    )
    given = {**_shared(draw, r), **r.lightest(scale), "scale": scale}
    del given["targets"], given["weights"]
    dist = given.pop("dist")
    shape = {"lo": given.pop("lo"), "hi": given.pop("hi"), "falling": int(falling)}
    return Case({**shape, **given, "dist": dist, "threshold": threshold, **_own_with_candidates(r, dist)})


def find_before_candidates(draw: st.DrawFn) -> Case:
    """Draw rows with their lightest arcs, or without."""
    r = draw(rows(types_found)).lengthened(draw(st.sampled_from([0, 3000])))
    scale = draw(st.sampled_from([1.0, 0.5, 100.0]))
    given = _shared(draw, r)
    dist = given.pop("dist")
    lightest = r.lightest(scale)["lightest_weights"] if draw(st.booleans()) else None
    own = _own_with_candidates(r, dist)
    return Case(
        {
            **given,
            "lightest_weights": lightest,
            "scale": scale,
            "dist": dist,
            "threshold": _threshold(draw, r),
            **own,
        }
    )


def _own_with_candidates(r: DrawnRows, dist: np.ndarray) -> dict:
    """Return arguments where some vertices are sources, at distance 0, and others have a candidate."""
    own = _own(r)
    is_source = own["parents"] == 5
    dist[r.base :][: r.num_owned][is_source] = 0
    candidate = some(r.random, r.num_owned, 0.3) & ~is_source
    own["parents"][candidate] = r.random.integers(0, r.num_states, candidate.sum())
    return own


def find_equal(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    hops = some(r.random, r.num_states).astype(np.uint8)
    new_hops = np.zeros(r.num_owned, np.uint8)
    return Case({**_shared(draw, r), "hops": hops, **_own(r), "new_hops": new_hops, "counters": np.zeros(1, np.int64)})
