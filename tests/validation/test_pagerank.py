"""Right scores pass on any number of ranks; wrong ones are caught, by the rule they break."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from naive_shard import build_shards
from on_ranks import FEW_RANKS, run_on_ranks
from user_graphs import ORDERS
from zoo import make_case, random_case

from mgraph.algorithms.pagerank.fixed_point import ONE, ScoreSpec
from mgraph.validation.pagerank import validate_scores

# The last vertex is isolated.
SMALL = make_case("small", 5, [(0, 1, 3), (0, 2, 1), (1, 2, 1), (2, 0, 1)], directed=True)
USERS = {"users": np.array([1, 4]), "shares": np.array([ONE // 4, ONE // 4 * 3])}
ITERATIONS = 200


def violations(case, scores, num_ranks, order, *, change=0, **named):
    """Return the violations of scores by user id, which must be equal on all ranks."""
    shards = build_shards(case, num_ranks, order)
    spec = ScoreSpec(int(0.85 * ONE), None, ITERATIONS, True, **named)
    parts = [(np.asarray(scores)[slice(*shard.user_range)],) for shard in shards]
    first, *others = run_on_ranks(validate_scores, shards, spec, change, parts=parts)
    assert all(other == first for other in others), "the ranks disagree"
    return first


def right_scores(case, **named):
    shares = None
    if named:
        shares = [0] * case.num_vertices
        for user, share in zip(*named.values(), strict=True):
            shares[user] = int(share)
    return np.array(oracles.pagerank(case, 0.85, ITERATIONS, shares)) / ONE


@pytest.mark.parametrize("named", [{}, USERS], ids=["all", "some"])
@pytest.mark.parametrize("case", [SMALL, random_case(1, num_vertices=60, directed=True)], ids=lambda case: case.name)
def test_right_scores_pass_and_wrong_ones_are_caught_by_their_rule(case, named):
    right = right_scores(case, **named)
    corrupted = {
        1: right + np.where(np.arange(case.num_vertices) == 3, np.nan, 0),
        2: right * 0.99,
        3: right[::-1].copy(),
    }
    if not named:
        # An isolated vertex and another, with the sum kept.
        isolated = right.copy()
        isolated[[0, -1]] += [-1e-4, 1e-4]
        corrupted[0] = isolated
    for num_ranks in FEW_RANKS:
        for order in ORDERS:
            assert violations(case, right, num_ranks, order, **named) == []
            for rule, scores in corrupted.items():
                found = violations(case, scores, num_ranks, order, **named)
                assert found[0].rule == (rule or 3)
            nan = violations(case, corrupted[1], num_ranks, order, **named)
            assert (nan[0].count, nan[0].vertex) == (1, 3)
            # What a longer last iteration leaves is no error.
            assert violations(case, corrupted[3], num_ranks, order, change=2 * ONE, **named) == []
