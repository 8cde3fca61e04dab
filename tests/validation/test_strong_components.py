"""Right labels pass on any number of ranks; every other label is caught, by the rule it breaks."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import oracles
import pytest
from component_checks import violations_of_labels
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import FEW_RANKS, RANKS
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from zoo import CASES, make_case, random_case

from mgraph.validation.strong_components import validate_strong_labels

shards_of = functools.lru_cache(maxsize=16)(build_shards)
# Two cycles, the first with a way to the second, which leads to 5; 6 is isolated.
CHAIN = make_case("chain", 7, [(0, 2), (2, 0), (2, 1), (1, 3), (3, 4), (4, 1), (4, 5)], directed=True)


def violations(case, labels, num_ranks=3, order="degree"):
    """Return the violations of labels by user id."""
    return violations_of_labels(validate_strong_labels, shards_of(case, num_ranks, order), labels)


@pytest.mark.widens
@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [CHAIN, *CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_right_labels_pass_on_any_number_of_ranks(case, order):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        assert violations(case, oracles.strong_components(case), num_ranks, order) == []


@pytest.mark.parametrize(
    ("labels", "broken"),
    [
        ([0, 1, 0, 1, 1, 5, 6], {}),
        # No vertex, and one that is larger: both count as the vertex itself.
        ([0, 1, 0, 1, -1, 5, 6], {1: (1, 4), 3: (1, 3)}),
        ([0, 1, 0, 1, 7, 5, 6], {1: (1, 4), 3: (1, 3)}),
        ([0, 3, 0, 3, 3, 5, 6], {1: (1, 1), 3: (1, 4)}),
        ([0, 1, 0, 1, 3, 5, 6], {2: (1, 4), 3: (2, 3)}),
        # Reached by its label, and does not reach it.
        ([0, 1, 0, 1, 1, 1, 6], {3: (1, 5)}),
        # Both cycles by one label: the second does not reach it.
        ([0, 0, 0, 0, 0, 5, 6], {3: (3, 1)}),
        # A vertex without arcs.
        ([0, 1, 0, 1, 1, 5, 0], {3: (1, 6)}),
        # A cycle that is cut: what is after it is not visited either.
        ([0, 1, 2, 1, 1, 5, 6], {4: (6, 0)}),
        ([0, 1, 0, 3, 4, 5, 6], {4: (4, 1)}),
    ],
)
def test_each_corruption_is_caught_by_its_rule(labels, broken):
    for num_ranks in RANKS:
        for order in ("degree", "natural"):
            found = violations(CHAIN, labels, num_ranks, order)
            assert {v.rule: (v.count, v.vertex) for v in found} == broken


@examples(200)
@given(graphs(max_vertices=9, max_edges=16), orders, rank_counts, st.data())
def test_wrong_labels_are_caught(case, order, num_ranks, data):
    case = replace(case, directed=True)
    right = oracles.strong_components(case)
    labels = right.copy()
    for _ in range(data.draw(st.integers(0, 3), "corruptions")):
        v = data.draw(st.integers(0, case.num_vertices - 1), "vertex")
        # One entry, or all of a component at once.
        which = right == right[v] if data.draw(st.booleans(), "whole") else [v]
        labels[which] = data.draw(st.integers(-1, case.num_vertices), "label")
    assert (violations(case, labels, num_ranks, order) == []) == np.array_equal(labels, right)
