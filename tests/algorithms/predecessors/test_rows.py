"""Predecessors of correct distances: the defined ones, on any number of ranks."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import oracles
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from naive_shard import build_shards, distance_parts, positions_of, predecessor_parts
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders, rank_counts
from tiers import examples
from zoo import CASES, make_case, random_case, zoo_sources

from mgraph.algorithms.predecessors import rows as predecessors
from mgraph.algorithms.predecessors.rows import find_predecessors, find_roots
from mgraph.algorithms.predecessors.rows_kernels import find_equal
from mgraph.shard.lightest_arcs import require_lightest_arcs
from mgraph.shard.user_ids import gather_states


def predecessors_and_roots(shard, comm, dist, sources):
    parents = find_predecessors(shard, comm, sources, dist)
    return parents, find_roots(shard, comm, parents)


def check(case, sources, num_ranks, order, *, num_with_lightest=0):
    """Compare predecessors and nearest sources with the oracles'; some ranks have lightest arcs."""
    shards = build_shards(case, num_ranks, order)
    for shard in shards[:num_with_lightest]:
        require_lightest_arcs(shard)
    positions = positions_of(shards)
    num_positions = shards[0].partition.num_positions
    dist = oracles.sssp(case, sources)
    chosen = oracles.predecessors(case, dist, sources, positions, weighted=True)
    with_state = [p for p in positions[sources].tolist() if p < num_positions]
    parts = [(part,) for part in distance_parts(shards, dist, dist.dtype)]
    results = run_on_ranks(predecessors_and_roots, shards, with_state, parts=parts)
    for (parents, roots), wanted, wanted_roots in zip(
        results,
        predecessor_parts(shards, chosen),
        predecessor_parts(shards, oracles.nearest_sources(chosen)),
        strict=True,
    ):
        np.testing.assert_array_equal(parents, wanted)
        np.testing.assert_array_equal(roots, wanted_roots)


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_predecessors_and_nearest_sources_are_the_designed_ones(case, order):
    for sources in zoo_sources(case):
        for num_ranks in (1, 2, 3, 4, 7):
            check(case, sources, num_ranks, order)


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(3))], ids=lambda case: case.name)
def test_long_rows_with_lightest_arcs_have_the_same_predecessors(case, order):
    for num_ranks, sources in enumerate(zoo_sources(case), start=1):
        check(case, sources, num_ranks, order, num_with_lightest=num_ranks)


def test_lightest_arcs_of_a_directed_graph_explain_nothing():
    """Vertex 2 has many arcs, one of them to a nearer vertex, at a distance that would explain its own."""
    arcs = [(0, 1, 1), (0, 2, 3), (2, 1, 2), *((2, v, 5) for v in range(3, 103))]
    check(make_case("leaves", 103, arcs, np.uint8, directed=True), [0], 1, "degree", num_with_lightest=1)


@pytest.mark.parametrize("directed", [False, True])
def test_one_cpu_rank_scans_all_open_vertices_once_on_ways_of_many_hops(directed, monkeypatch):
    scans = []

    class CountedKernel:
        def __getitem__(self, backend):
            scans.append(backend)
            return find_equal[backend]

    monkeypatch.setattr(predecessors, "find_equal", CountedKernel())
    ways = [(0, 1, 0), (0, 50, 0), *((v, v + 1, 0) for v in range(1, 49)), *((v, v + 1, 0) for v in range(50, 98))]
    check(
        make_case("ways", 101, [*ways, (98, 99, 0), (49, 99, 0), (99, 100, 7)], np.uint8, directed=directed),
        [0],
        1,
        "degree",
    )
    assert len(scans) == 1


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_low_bytes_of_distances_rule_out_arcs(case, monkeypatch):
    """On graphs so large that the distances do not fit a cache, integers are compared by their low bytes first."""
    monkeypatch.setattr(predecessors, "wants_low_bytes", lambda info, dist, cache_bytes: dist.dtype.kind != "f")
    for sources in zoo_sources(case):
        for num_ranks in (1, 3):
            check(case, sources, num_ranks, "natural")


def threshold_at(least, shard, dist):
    """Return a dense-region threshold; floats have none."""
    return None if dist.dtype.kind == "f" else np.array([least], dist.dtype)


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_vertices_below_the_dense_region_push_candidates(case, monkeypatch):
    """At any threshold, with and without capacity for the candidates; on graphs so large that there is a threshold."""
    for sources in zoo_sources(case):
        for num_ranks, least, share in (1, 3, 1), (3, 40, 1), (2, 3, 1 << 40):
            threshold = functools.partial(threshold_at, least)
            monkeypatch.setattr(predecessors, "_find_threshold", threshold)
            monkeypatch.setattr(predecessors, "CANDIDATE_SHARE", share)
            monkeypatch.setattr(predecessors, "SAMPLE", 1 if share > 1 else 1 << 12)
            check(case, sources, num_ranks, "degree", num_with_lightest=2)


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_dense_region_threshold_is_above_the_heavy_arc(order, monkeypatch):
    """A heavy arc attaches the source to a dense part, a hundred vertices that are all neighbors."""
    arcs = [(100, 0, 50), *((u, v, 2 + (u + v) % 7) for u in range(100) for v in range(u))]
    shards = build_shards(make_case("hanging", 101, arcs, np.uint8), 2, order)
    dist = oracles.sssp(make_case("hanging", 101, arcs, np.uint8), [100])

    def threshold(shard, comm, part):
        return predecessors._find_threshold(shard, gather_states(shard, comm, part))

    parts = [(part,) for part in distance_parts(shards, dist, dist.dtype)]
    assert run_on_ranks(threshold, shards, parts=parts) == [None, None]
    monkeypatch.setattr(predecessors, "THRESHOLD_ARCS", 1)
    monkeypatch.setattr(predecessors, "SAMPLE", 20)
    least, other = run_on_ranks(threshold, shards, parts=parts)
    assert least == other and 50 <= least <= 56


def test_blocks_search_long_rows_at_the_same_time():
    """Every leaf has arcs to three hubs, the nearest of them last; each block of the emulated grid processes a hub."""
    hubs = range(3)
    leaves = range(3, 1103)
    arcs = [(v, hub, 1 + (v < 1102)) for hub in hubs for v in leaves]
    case = make_case("hubs", 1103, arcs, np.uint8, directed=True)
    (shard,) = build_shards(case, 1, "natural")
    dist = oracles.sssp(case, [3, 1102])
    chosen = oracles.predecessors(case, dist, [3, 1102], positions_of([shard]), weighted=True)
    (part,) = distance_parts([shard], dist, np.uint32)
    for seed in range(2):
        emulated = replace(shard, backend=EmulatedBackend(seed=seed, block=64, blocks=3))
        ((parents, _),) = run_on_ranks(predecessors_and_roots, [emulated], [3, 1102], parts=[(part,)])
        np.testing.assert_array_equal(parents, predecessor_parts([shard], chosen)[0])


@examples(100)
@given(graphs_and_sources(), rank_counts, orders)
def test_predecessors_of_drawn_graphs_equal_the_oracle(drawn, num_ranks, order):
    check(*drawn, num_ranks, order)
