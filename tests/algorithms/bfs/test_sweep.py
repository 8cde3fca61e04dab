"""BFS by sweeps: results equal the oracles' and the step variant's, on any number of ranks."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from naive_shard import build_shards, predecessor_parts
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs_and_sources, orders, rank_counts
from sweep_checks import TINY, WHOLE, of_users, run_sweep
from tiers import by_tier, examples
from zoo import CASES, ZOO, make_case, random_case, zoo_sources

from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.bfs.sweep import bfs_sweep
from mgraph.algorithms.bfs.sweep_kernels import sweep_frontier
from mgraph.types import LEVEL


def check(case, sources, num_ranks, order="degree", backend=None, shape=TINY, limit=None):
    """Compare levels and predecessors with the oracles', which ignore weights."""
    shards = build_shards(case, num_ranks, order, backend)
    results, steps = run_sweep(bfs_sweep, shards, sources, limit, shape=shape)
    levels = oracles.bfs(case, sources, limit)
    assert results[0].distances.dtype == LEVEL
    np.testing.assert_array_equal(of_users(shards, sources, [a.distances for a in results]), levels)
    chosen = oracles.predecessors(case, levels, sources, oracles.positions(case, order), weighted=False)
    for shard, result, wanted in zip(shards, results, predecessor_parts(shards, chosen), strict=True):
        np.testing.assert_array_equal(shard.backend.to_host(result.predecessors), wanted)
    return shards, steps


@pytest.mark.widens
@pytest.mark.covering(every=3)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 300) for seed in range(6))], ids=lambda case: case.name)
def test_levels_and_predecessors_equal_the_oracles(case, order):
    for sources in zoo_sources(case):
        for num_ranks in by_tier(FEW_RANKS, RANKS):
            check(case, sources, num_ranks, order)


@examples(60)
@given(graphs_and_sources(), rank_counts, orders)
def test_results_of_drawn_graphs_equal_the_oracles(drawn, num_ranks, order):
    check(*drawn, num_ranks, order)


@pytest.mark.parametrize("name", ["path", "dag"])
def test_results_without_weights_equal_the_oracles(name):
    check(ZOO[name].unweighted, [0], 3)


@pytest.mark.parametrize("limit", [0, 1, 3, 254, 255, 299])
def test_vertices_deeper_than_the_limit_are_unreached(limit):
    for name in ("grid", "long-chain", "unreachable-part"):
        check(ZOO[name], [0], 3, limit=limit)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("shape", [TINY, WHOLE], ids=["tiny", "whole"])
def test_results_on_every_backend_equal_the_oracles(backend, shape):
    for case in (random_case(0, 400), random_case(1, 400), ZOO["long-chain"]):
        check(case, [3], 2, backend=backend, shape=shape)


def test_levels_and_supersteps_equal_the_step_variant():
    for seed in range(6):
        shards = build_shards(random_case(seed), 3)
        results, steps = run_sweep(bfs_sweep, shards, [0, 17])
        results_too, levels = run_sweep(bfs, shards, [0, 17])
        # One sweep for each level, and a last one that finds no vertex.
        assert len(steps[0]) == len(levels[0])
        for one, other in zip(results, results_too, strict=True):
            np.testing.assert_array_equal(one.distances, other.distances)


def test_a_frontier_of_all_kinds_reads_every_edge_once():
    """One segment and one window: whatever the level, a unit is read if any is."""
    for directed in (False, True):
        shards, steps = check(random_case(0, directed=directed), [0], 4, shape=WHOLE)
        for of_rank in zip(*steps, strict=True):
            shares = [step["edges"] for step in of_rank]
            assert sum(shares) == shards[0].info.num_edges
            assert max(shares) - min(shares) <= 1
            assert [step["arcs"] for step in of_rank] == [share << (not directed) for share in shares]
            assert {step["skipped_units"] for step in of_rank} == {0}
            assert {step["reduced_bytes"] for step in of_rank} == {4 * 4 * -(-shards[0].partition.num_states // 128)}


def test_units_without_a_frontier_are_skipped():
    """On a path in its own order a level touches one window, or two: others are not read."""
    path = make_case("path", 1000, [(v, v + 1) for v in range(999)])
    for num_ranks in (1, 2):
        _, steps = check(path, [0], num_ranks, "natural")
        for of_rank in zip(*steps, strict=True):
            assert sum(step["edges"] for step in of_rank) <= 5 * 32
            assert all(step["skipped_units"] > 0 for step in of_rank)


def test_search_without_a_source_reaches_no_vertex():
    _, steps = check(ZOO["grid"], [], 2)
    assert [len(of_rank) for of_rank in steps] == [0, 0]


def test_bits_of_a_segment_fit_the_shared_memory_of_a_launch():
    args = dict.fromkeys(sweep_frontier.parameters)
    args.update(segment_bits=15)
    assert sweep_frontier.shared_bytes(tuple(args.values())) == (8 << 10) + 8
