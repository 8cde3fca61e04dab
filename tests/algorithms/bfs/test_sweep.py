"""BFS by sweeps: results equal the oracles' and the step variant's, on any number of ranks."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from naive_shard import build_shards, predecessor_parts
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs_and_sources, orders, rank_counts
from sweep_checks import TINY, WHOLE, SnapshotBackend, of_users, run_sweep
from tiers import by_tier, examples
from zoo import CASES, ZOO, make_case, random_case, zoo_sources

from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.bfs.sweep import bfs_sweep
from mgraph.algorithms.bfs.sweep_kernels import sweep_levels
from mgraph.algorithms.predecessors.rows import find_predecessors
from mgraph.types import LEVEL


def sweep_with_predecessors(shard, comm, sources, trace, depth_limit=None):
    traversal = bfs_sweep(shard, comm, sources, trace, depth_limit)
    traversal.predecessors = find_predecessors(shard, comm, sources, traversal.distances)
    return traversal


def check(case, sources, num_ranks, order="degree", backend=None, shape=TINY, limit=None):
    """Compare levels and predecessors with the oracles', which ignore weights."""
    shards = build_shards(case, num_ranks, order, backend)
    results, steps = run_sweep(sweep_with_predecessors, shards, sources, limit, shape=shape)
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


@pytest.mark.parametrize("deepest", [253, 254, 255, 256, 600])
def test_levels_beyond_8_bits_widen(deepest):
    path = make_case("path", deepest + 2, [(v, v + 1) for v in range(deepest)])
    for num_ranks in (1, 2):
        for order in ("degree", "natural"):
            _, steps = check(path, [0], num_ranks, order)
            widths = {step["reduced_bytes"] for step in steps[0]}
            assert len(widths - {0}) == (2 if deepest > 254 else 1)


@pytest.mark.parametrize("limit", [0, 1, 3, 254, 255, 299])
def test_vertices_deeper_than_the_limit_are_unreached(limit):
    for name in ("grid", "long-chain", "unreachable-part"):
        check(ZOO[name], [0], 3, limit=limit)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_levels_do_not_depend_on_snapshots(directed):
    backend = SnapshotBackend(threads=2)
    for num_ranks in (1, 3):
        check(random_case(3, 300, directed=directed), [5, 299], num_ranks, backend=backend)
    check(ZOO["long-chain"], [0], 2, backend=backend)
    backend.close()


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


def test_supersteps_have_equal_shares_of_edges_and_reduced_bytes():
    shards, steps = check(random_case(0, directed=True), [0], 4)
    for of_rank in zip(*steps, strict=True):
        shares = [step["edges"] for step in of_rank]
        assert sum(shares) == shards[0].info.num_edges
        assert max(shares) - min(shares) <= 1
        assert [step["arcs"] for step in of_rank] == shares
    *full, last = steps[0]
    assert all(step["reduced_bytes"] == shards[0].partition.num_states for step in full)
    assert last["reduced_bytes"] == 0


def test_search_without_a_source_reaches_no_vertex():
    _, steps = check(ZOO["grid"], [], 2)
    assert [len(of_rank) for of_rank in steps] == [1, 1]


@pytest.mark.parametrize(("dtype", "expected"), [("uint8", 32 << 10), ("int32", 128 << 10)])
def test_segment_of_levels_fits_the_shared_memory_of_a_launch(dtype, expected):
    args = dict.fromkeys(sweep_levels.parameters)
    args.update(segment_bits=15, levels=np.empty(0, dtype))
    assert sweep_levels.shared_bytes(tuple(args.values())) == expected
