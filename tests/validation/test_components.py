"""Right labels pass on any number of ranks; every other label is caught, by the rule it breaks."""

from __future__ import annotations

import functools

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
from zoo import CASES, ZOO, make_case, random_case

from mgraph.validation import components as validation_components
from mgraph.validation.components import validate_labels

shards_of = functools.lru_cache(maxsize=16)(build_shards)


def violations(case, labels, num_ranks=3, order="degree"):
    """Return the violations of labels by user id."""
    return violations_of_labels(validate_labels, shards_of(case, num_ranks, order), labels)


@pytest.mark.widens
@pytest.mark.covering
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_right_labels_pass_on_any_number_of_ranks(case, order):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        assert violations(case, oracles.components(case), num_ranks, order) == []


@pytest.mark.parametrize(
    ("labels", "broken"),
    [
        # 0 -- 2 -- 4     1 -- 3 -- 5 -- 1
        ([0, 1, 0, 1, 0, 1], {}),
        ([0, 1, 0, 1, -1, 1], {1: (1, 4), 3: (2, 2)}),
        ([0, 1, 0, 1, 6, 1], {1: (1, 4), 3: (2, 2)}),
        ([0, 1, 0, 1, 2, 1], {2: (1, 4), 3: (2, 2)}),
        ([0, 1, 0, 1, 4, 1], {3: (2, 2)}),
        # Two components with one label: no arc has a label mismatch.
        ([0, 0, 0, 0, 0, 0], {4: (3, 1)}),
        # A label that is not the smallest of its component.
        ([0, 3, 0, 3, 0, 3], {1: (1, 1), 3: (3, 1)}),
        # Swapped.
        ([0, 0, 0, 0, 1, 0], {2: (1, 4), 3: (2, 2), 4: (4, 1)}),
    ],
)
def test_each_corruption_is_caught_by_its_rule(labels, broken):
    for num_ranks in RANKS:
        for order in ("degree", "natural"):
            found = violations(ZOO["two-components"], labels, num_ranks, order)
            assert {v.rule: (v.count, v.vertex) for v in found} == broken


def test_vertices_without_arcs_are_their_own_component():
    case = ZOO["isolated"]
    right = oracles.components(case)
    for v in (3, 4, 8):
        for label in (0, 1):
            labels = right.copy()
            labels[v] = label
            assert [(x.rule, x.vertex) for x in violations(case, labels)] == [(4, v)]


def test_long_chain_is_connected_in_few_rounds(monkeypatch):
    rounds = []
    compress = validation_components._compress_paths
    monkeypatch.setattr(validation_components, "_compress_paths", lambda *args: rounds.append(1) or compress(*args))
    # Neighbors far apart in position, so that paths are compressed in several rounds.
    n = 500
    names = np.random.default_rng(3).permutation(n)
    case = make_case("chain", n, [(int(names[i]), int(names[i + 1])) for i in range(n - 1)])
    half = next(part for part in (names[: n // 2], names[n // 2 :]) if 0 not in part)
    for num_ranks in (1, 4):
        rounds.clear()
        assert violations(case, np.zeros(n), num_ranks) == []
        assert 2 * num_ranks <= len(rounds) <= 8 * num_ranks
        labels = np.zeros(n)
        labels[half] = half.min()
        assert {v.rule for v in violations(case, labels, num_ranks)} >= {3}


@examples(200)
@given(graphs(max_vertices=9, max_edges=9), orders, rank_counts, st.data())
def test_wrong_labels_are_caught(case, order, num_ranks, data):
    right = oracles.components(case)
    labels = right.copy()
    for _ in range(data.draw(st.integers(0, 3), "corruptions")):
        v = data.draw(st.integers(0, case.num_vertices - 1), "vertex")
        # One entry, or all of a component at once.
        which = right == right[v] if data.draw(st.booleans(), "whole") else [v]
        labels[which] = data.draw(st.integers(-1, case.num_vertices), "label")
    assert (violations(case, labels, num_ranks, order) == []) == np.array_equal(labels, right)
