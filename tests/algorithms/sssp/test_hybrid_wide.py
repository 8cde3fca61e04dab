"""Arcs that all cores relax, each for its own parts of the vertices, lower what their minima do."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from zoo import make_case

from mgraph.algorithms.sssp import hybrid_wide
from mgraph.algorithms.sssp.hybrid_wide import PartwiseRelaxation
from mgraph.backends.cpu import CpuBackend
from mgraph.shard.lightest_arcs import require_lightest_arcs

N = 3000
# Ends of arcs: anywhere; all in one run of vertices of one part; one vertex alone; a page of candidates, exactly.
ENDS = {
    "anywhere": lambda rng: rng.integers(0, N, 20_011),
    "one run": lambda rng: rng.integers(64, 128, 9000),
    "one vertex": lambda rng: np.full(5000, 7),
    "one page": lambda rng: np.arange(64, 192),
}


@pytest.mark.parametrize("threads", [1, 2, 70])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("ends", list(ENDS))
def test_relaxed_rows_lower_distances_to_their_minima(monkeypatch, ends, dtype, threads):
    # All in one round: in a second one a row may lead on from a distance that the first has lowered.
    monkeypatch.setattr(hybrid_wide, "capacity_of", lambda num_arcs, threads: 1 << 20)
    monkeypatch.setattr(hybrid_wide, "MIN_SHARED", 0)
    rng = np.random.default_rng(2)
    targets = ENDS[ends](rng)
    edges = list(zip(rng.integers(0, N, len(targets)), targets, rng.integers(1, 200, len(targets)), strict=True))
    (shard,) = build_shards(make_case(ends, N, edges, dtype, directed=True), 1, "natural", CpuBackend(threads))
    require_lightest_arcs(shard)
    state = np.uint32 if dtype == "uint8" else np.float32
    top = np.iinfo(state).max if dtype == "uint8" else np.inf
    rows = shard.rows
    n = shard.num_owned
    dist = rng.integers(0, 400, n).astype(state)
    bound = state(260)
    sources = np.repeat(np.arange(n), np.diff(rows.indptr))
    expected = dist.copy()
    np.minimum.at(expected, rows.targets, dist[sources] + rows.weights.astype(state))
    before = dist.copy()
    relaxation = PartwiseRelaxation(shard, dist)
    near, found = (np.empty(n, shard.partition.dtype) for _ in range(2))
    lowest = np.array([top], state)
    bounds = np.array([0, bound, top, 0, 0], state)
    bucket = np.flatnonzero(np.diff(rows.indptr)).astype(shard.partition.dtype)
    num_near, arcs = relaxation.relax_rows(bucket, bounds, np.zeros(0, np.uint32), near, 0, found, lowest)
    np.testing.assert_array_equal(dist, expected)
    np.testing.assert_array_equal(np.sort(near[:num_near]), np.flatnonzero((dist < before) & (dist < bound)))
    assert arcs == len(rows.targets)
    # One that is seen may have fallen since.
    assert lowest[0] <= dist[(dist < before) & (dist >= bound)].min(initial=top)
