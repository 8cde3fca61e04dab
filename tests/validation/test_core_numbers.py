"""Right core numbers pass on any number of ranks; every other number is caught, by the rule it breaks."""

from __future__ import annotations

import functools

import numpy as np
import oracles
import pytest
from component_checks import violations_of_labels
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import FEW_RANKS
from strategies import graphs, orders, rank_counts
from tiers import examples
from zoo import make_case

from mgraph.validation.core_numbers import validate_core_numbers

shards_of = functools.lru_cache(maxsize=16)(build_shards)
# A triangle with a tail, a cycle of four, and an isolated vertex.
CASE = make_case("rings", 10, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8), (8, 5)])


def violations(case, cores, num_ranks, order):
    """Return the violations of core numbers by user id."""
    return violations_of_labels(validate_core_numbers, shards_of(case, num_ranks, order), cores)


@pytest.mark.parametrize(
    ("cores", "broken"),
    [
        ([2, 2, 2, 1, 1, 2, 2, 2, 2, 0], {}),
        ([2, 2, 2, 1, 1, 2, 2, 2, -1, 0], {1: (1, 8), 2: (2, 5), 3: (1, 8)}),
        # One too large; an isolated vertex.
        ([2, 2, 2, 2, 1, 2, 2, 2, 2, 0], {2: (1, 3)}),
        ([2, 2, 2, 1, 1, 2, 2, 2, 2, 1], {2: (1, 9)}),
        # All of a ring too small: each has enough neighbors, and none can be removed.
        ([2, 2, 2, 1, 1, 1, 1, 1, 1, 0], {3: (4, 5)}),
        ([1, 1, 1, 1, 1, 2, 2, 2, 2, 0], {3: (3, 0)}),
        ([2, 2, 2, 0, 0, 2, 2, 2, 2, 0], {3: (2, 3)}),
    ],
)
def test_each_corruption_is_caught_by_its_rule(cores, broken):
    for num_ranks in FEW_RANKS:
        for order in ("degree", "natural"):
            found = violations(CASE, cores, num_ranks, order)
            assert {v.rule: (v.count, v.vertex) for v in found} == broken


@examples(200)
@given(graphs(max_vertices=9, max_edges=24), orders, rank_counts, st.data())
def test_wrong_numbers_are_caught_and_right_ones_pass(case, order, num_ranks, data):
    right = oracles.core_numbers(case)
    cores = right.copy()
    for _ in range(data.draw(st.integers(0, 3), "corruptions")):
        v = data.draw(st.integers(0, case.num_vertices - 1), "vertex")
        # One entry, or all of a number at once.
        which = right == right[v] if data.draw(st.booleans(), "whole") else [v]
        cores[which] = data.draw(st.integers(-1, case.num_vertices), "number")
    assert (violations(case, cores, num_ranks, order) == []) == np.array_equal(cores, right)
