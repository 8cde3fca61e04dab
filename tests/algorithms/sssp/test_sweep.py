"""SSSP by sweeps: results equal the oracles' and near/far's to the bit, on any number of ranks."""

from __future__ import annotations

import itertools

import numpy as np
import oracles
import pytest
from hypothesis import given
from naive_shard import build_shards, predecessor_parts
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from strategies import graphs_and_sources, orders, rank_counts
from sweep_checks import TINY, WHOLE, WHOLE_WIDE, of_users, on_all, on_some, run_sweep
from tiers import by_tier, examples
from zoo import CASES, ZOO, make_case, random_case, zoo_sources

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.predecessors.rows import find_predecessors
from mgraph.algorithms.sssp.near_far import sssp
from mgraph.algorithms.sssp.sweep import sssp_sweep
from mgraph.api.traversal import state_dtype
from mgraph.shard import light_units


def sweep_with_predecessors(shard, comm, sources, trace, dtype, cutoff=None):
    traversal = sssp_sweep(shard, comm, sources, trace, dtype, cutoff)
    traversal.predecessors = find_predecessors(shard, comm, sources, traversal.distances)
    return traversal


def check(case, sources, num_ranks, order="degree", backend=None, shape=TINY, divided=on_all):
    """Compare distances and predecessors with the oracles'."""
    shards = build_shards(case, num_ranks, order, backend)
    dtype = state_dtype(shards[0].info)
    shape = WHOLE_WIDE if shape is WHOLE and dtype.itemsize == 8 else shape
    results, steps = run_sweep(sweep_with_predecessors, shards, sources, dtype, shape=shape, divided=divided)
    dist = oracles.sssp(case, sources)
    assert results[0].distances.dtype == dtype
    np.testing.assert_array_equal(of_users(shards, sources, [a.distances for a in results]), dist)
    chosen = oracles.predecessors(case, dist, sources, oracles.positions(case, order), weighted=True)
    for shard, result, wanted in zip(shards, results, predecessor_parts(shards, chosen), strict=True):
        np.testing.assert_array_equal(shard.backend.to_host(result.predecessors), wanted)
    return shards, steps


@pytest.mark.widens
@pytest.mark.covering(every=3)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 300) for seed in range(6))], ids=lambda case: case.name)
def test_distances_and_predecessors_equal_the_oracles(case, order):
    for sources in zoo_sources(case):
        for num_ranks in by_tier(FEW_RANKS, RANKS):
            check(case, sources, num_ranks, order)


@examples(60)
@given(graphs_and_sources(), rank_counts, orders)
def test_results_of_drawn_graphs_equal_the_oracles(drawn, num_ranks, order):
    check(*drawn, num_ranks, order)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint32", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_results_of_every_dtype_equal_the_oracles(directed, dtype):
    case = random_case(0, 300, directed=directed).unweighted
    weights = np.random.default_rng(7).integers(0, 200, len(case.sources))
    # A weight that sums to more than 32 bits makes the state int64.
    weights[:2] = 2**31 if dtype == "int64" else 255
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    case = case.with_weights(dtype)
    for num_ranks in (1, 3):
        shards, _ = check(case, [5, 299], num_ranks)
        assert state_dtype(shards[0].info) == dtype


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("shape", [TINY, WHOLE], ids=["tiny", "whole"])
def test_results_on_every_backend_equal_the_oracles(backend, shape):
    for seed in (0, 1):
        check(random_case(seed, 400), [3], 2, backend=backend, shape=shape)


def test_distances_equal_near_far_to_the_bit():
    for seed in range(6):
        shards = build_shards(random_case(seed), 3)
        dtype = state_dtype(shards[0].info)
        results, _ = run_sweep(sssp_sweep, shards, [0, 17], dtype)
        results_too, _ = run_sweep(sssp, shards, [0, 17], dtype)
        for one, other in zip(results, results_too, strict=True):
            assert one.distances.tobytes() == other.distances.tobytes()


@pytest.mark.parametrize("name", ["grid", "dag", "rounding", "large-weights"])
def test_vertices_beyond_the_cutoff_are_unreached(name):
    case = ZOO[name]
    for cutoff in (0, 1, 3, 2**40):
        for num_ranks in (1, 3):
            shards = build_shards(case, num_ranks)
            dtype = state_dtype(shards[0].info)
            limit = min(cutoff, 2**31) if dtype == np.uint32 else cutoff
            results, _ = run_sweep(sssp_sweep, shards, [0], dtype, limit)
            expected = oracles.sssp(case, [0], cutoff)
            np.testing.assert_array_equal(of_users(shards, [0], [a.distances for a in results]), expected)


def test_search_without_a_source_reaches_no_vertex():
    shards = build_shards(ZOO["grid"], 2)
    results, steps = run_sweep(sssp_sweep, shards, [], np.dtype(np.float64))
    assert all(np.isinf(result.distances).all() for result in results)
    assert steps == [[], []]


def test_supersteps_count_what_was_read_and_exchanged():
    case = ZOO["grid"]
    shards, steps = check(case, [0], 4)
    num_states = shards[0].partition.num_states
    for step in itertools.chain(*steps):
        assert step["arcs"] == 2 * step["edges"]
    # Words of bits and distances of 8 bytes, or lists of both from the other ranks.
    whole = (8 + 1 / 8) * num_states
    for step, *others in zip(*steps, strict=True):
        assert [other["frontier"] for other in others] == 3 * [step["frontier"]]
        assert step["reduced_bytes"] in (whole, *range(0, 12 * 3 * step["frontier"] + 1, 12))
    assert {step["reduced_bytes"] == whole for step in steps[0]} == {True, False}
    assert steps[0][-1]["reduced_bytes"] == 0


def test_units_without_edges_to_lower_are_not_read():
    """A sweep along a path reads the units about its frontier."""
    case = make_case("path", 200, [(v, v + 1) for v in range(199)])
    _, steps = check(case, [0], 1, order="natural", divided=on_some)
    assert len(steps[0]) > 10
    for step in steps[0]:
        assert step["skipped_units"]
        assert 0 < step["edges"] < 199


@pytest.mark.parametrize("share", [0, 0.5, 1])
@pytest.mark.parametrize("divided", [on_all, on_some])
def test_results_do_not_depend_on_the_share_of_light_edges(share, divided, monkeypatch):
    """Where one rank has no light units, none reads its own before the others."""
    monkeypatch.setattr(light_units, "LIGHT_SHARE", share)
    for seed in range(3):
        for num_ranks in (1, 3):
            check(random_case(seed, 300), [3], num_ranks, divided=divided)


def test_sweep_builds_missing_blocks():
    shards = build_shards(ZOO["grid"], 3)
    run_on_ranks(
        lambda shard, comm: sssp_sweep(shard, comm, [0], Trace(shard.backend, comm), np.dtype(np.float64)), shards
    )
    assert [list(shard.blocks) for shard in shards] == [[8]] * 3
