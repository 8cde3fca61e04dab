"""Built shards equal those of a naive build: every table and every row, for any ranks and chunks."""

from __future__ import annotations

import numpy as np
import pytest
from builds import build_on
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import assert_equal_shards, build_shards
from strategies import graphs, orders, rank_counts
from tiers import examples
from zoo import CASES, ZOO, make_case, random_case

from mgraph.backends.cpu import CpuBackend

BACKEND = CpuBackend(threads=1)


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_shards_equal_those_of_the_naive_build(case, order):
    for num_ranks in (1, 2, 3, 4, 7):
        assert_equal_shards(build_on(case, num_ranks, order), build_shards(case, num_ranks, order))


@pytest.mark.parametrize("num_chunks", [1, 2, 5, 64])
@pytest.mark.parametrize("name", ["parallel", "star-of-stars", "unreachable-part", "no-edges"])
def test_shards_do_not_depend_on_the_number_of_chunks(name, num_chunks):
    case = ZOO[name]
    assert_equal_shards(build_on(case, 3, "degree", num_chunks), build_shards(case, 3, "degree"))


@pytest.mark.parametrize("name", ["parallel", "dag", "no-vertex"])
def test_graphs_without_weights_have_none(name):
    case = ZOO[name].unweighted
    assert_equal_shards(build_on(case, 3, "degree"), build_shards(case, 3, "degree"))


@examples(60)
@given(graphs(), rank_counts, orders, st.sampled_from([None, 1, 3]))
def test_shards_of_random_graphs_equal_those_of_the_naive_build(case, num_ranks, order, num_chunks):
    assert_equal_shards(build_on(case, num_ranks, order, num_chunks), build_shards(case, num_ranks, order))


@pytest.mark.parametrize("extreme", [-(2**63), 2**63 - 1])
def test_largest_and_smallest_int64_are_valid_weights(extreme):
    case = make_case("extreme", 3, [(0, 1, extreme), (1, 2, extreme)], np.int64)
    for shard in build_on(case, 2, "natural"):
        assert (shard.info.min_weight, shard.info.max_weight) == (extreme, extreme)
        assert shard.rows.weights.dtype == np.int64
        assert (shard.rows.weights == extreme).all()


def test_weights_with_a_sum_that_overflows_are_built():
    ends = [(0, v, (-1) ** v * np.finfo(np.float64).max) for v in range(1, 33)]
    case = make_case("signs", 33, ends, np.float64, directed=True)
    for num_ranks in (1, 3):
        for shard in build_on(case, num_ranks, "natural"):
            assert np.isfinite(shard.info.sum_weights)


def test_negative_zero_weight_becomes_zero():
    case = ZOO["zero-triangle"]
    case.weights[2] = -0.0
    try:
        for shard in build_on(case, 2, "natural"):
            assert not np.signbit(shard.rows.weights).any()
    finally:
        case.weights[2] = 0.0
