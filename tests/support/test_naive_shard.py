"""The naive shards hold the graph they were made from, on any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from naive_shard import (
    arcs_of_shards,
    assert_equal_shards,
    build_shards,
    by_user,
    distance_parts,
    owner_layout,
    positions_of,
    users_of,
)
from zoo import CASES, ZOO, random_case

CHOSEN = [*CASES, random_case(2), random_case(3)]


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_rows_hold_every_arc_once_by_rising_position(case, order):
    for num_ranks in (1, 2, 3, 7):
        shards = build_shards(case, num_ranks, order)
        assert arcs_of_shards(shards) == oracles.arcs_of(case)
        assert arcs_of_shards(shards, incoming=True) == oracles.arcs_of(case)
        assert sum(len(shard.rows.targets) for shard in shards) == shards[0].info.num_arcs
        for shard in shards:
            assert len(shard.rows.indptr) == shard.num_owned + 1
            for start, end in zip(shard.rows.indptr, shard.rows.indptr[1:], strict=False):
                assert (np.diff(shard.partition.position(shard.rows.targets[start:end].astype(np.int64))) > 0).all()


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 7])
def test_tables_agree_and_layouts_round_trip(num_ranks, order):
    for case in CHOSEN:
        shards = build_shards(case, num_ranks, order)
        position = positions_of(shards)
        for shard in shards:
            local = np.arange(shard.num_owned)
            owned = shard.partition.position(shard.rank * shard.partition.stride + local)
            assert np.array_equal(position[users_of(shard)], owned)
            lo, hi = shard.user_range
            assert shard.position_of_user is None or np.array_equal(shard.position_of_user, position[lo:hi])
        users = np.arange(case.num_vertices)
        unowned = position >= shards[0].partition.num_positions
        assert unowned.sum() == (shards[0].info.num_isolated if order == "degree" else 0)
        got = by_user(shards, owner_layout(shards, users), missing=-1)
        assert np.array_equal(got, np.where(unowned, -1, users))


def test_dropped_edges_are_counted():
    info = build_shards(ZOO["parallel"], 2)[0].info
    assert (info.num_edges, info.num_arcs, info.num_loops, info.num_parallel) == (2, 4, 2, 3)
    assert (info.min_weight, info.max_weight, info.sum_weights, info.max_degree) == (0, 9, 6.0, 2)
    assert build_shards(ZOO["isolated"], 3)[0].info.num_isolated == 4
    info = build_shards(ZOO["unreachable-part"], 2)[0].info
    assert (info.num_edges, info.num_arcs, info.num_isolated) == (5, 5, 1)


def test_equal_shards_are_distinguished_from_others():
    case = ZOO["grid"]
    assert_equal_shards(build_shards(case, 3), build_shards(case, 3))
    with pytest.raises(AssertionError):
        assert_equal_shards(build_shards(case, 3), build_shards(case, 3, "natural"))
    heavier = replace(case, weights=np.where(np.arange(len(case.weights)) == 7, 3.5, case.weights))
    with pytest.raises(AssertionError):
        assert_equal_shards(build_shards(case, 3), build_shards(heavier, 3))


def test_unreached_is_the_top_of_the_states_dtype():
    shards = build_shards(ZOO["two-components"], 2)
    parts = distance_parts(shards, oracles.bfs(ZOO["two-components"], [0]), np.int32)
    assert by_user(shards, parts).tolist() == [0, 2**31 - 1, 1, 2**31 - 1, 2, 2**31 - 1]
