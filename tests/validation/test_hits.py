"""Right hubs and authorities pass on any number of ranks; wrong ones are caught, by the rule they break."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from naive_shard import build_shards
from on_ranks import FEW_RANKS, run_on_ranks
from user_graphs import ORDERS
from zoo import make_case, random_case

from mgraph.algorithms.hits.mutual_iteration import HitsSpec
from mgraph.validation.hits import validate_hubs

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

# The last vertex is isolated.
SMALL = make_case("small", 5, [(0, 1, 3), (0, 2, 1), (1, 2, 1), (2, 0, 1)], directed=True)
ITERATIONS = 300
SPEC = HitsSpec(None, ITERATIONS, weighted=True, normalized=True)


def violations(case, hubs, authorities, num_ranks, order, change=0.0, spec=SPEC):
    """Return the violations of scores by user id, which must be equal on all ranks."""
    shards = build_shards(case, num_ranks, order)
    parts = [tuple(np.asarray(one)[slice(*shard.user_range)] for one in (hubs, authorities)) for shard in shards]
    first, *others = run_on_ranks(validate_hubs, shards, spec, change, parts=parts)
    assert all(other == first for other in others), "the ranks disagree"
    return first


@pytest.mark.parametrize("case", [SMALL, random_case(1, num_vertices=60, directed=True)], ids=lambda case: case.name)
def test_right_scores_pass_and_wrong_ones_are_caught_by_their_rule(case):
    hubs, authorities = (np.array(one) / sum(one) for one in oracles.hits(case, ITERATIONS))
    others = np.where(np.arange(case.num_vertices) == 3, np.nan, 0)
    # An isolated vertex and another, with the sum kept.
    moved = hubs.copy()
    moved[[hubs.argmax(), -1]] += [-1e-4, 1e-4]
    wrong = [
        (1, hubs + others, authorities),
        (2, hubs, authorities * 0.99),
        (3, hubs[::-1].copy(), authorities),
        (3, moved, authorities),
    ]
    for num_ranks in FEW_RANKS:
        for order in ORDERS:
            assert violations(case, hubs, authorities, num_ranks, order) == []
            for rule, *scores in wrong:
                assert violations(case, *scores, num_ranks, order)[0].rule == rule
            greatest = HitsSpec(None, ITERATIONS, weighted=True, normalized=False)
            scaled = hubs / hubs.max(), authorities / authorities.max()
            assert violations(case, *scaled, num_ranks, order, spec=greatest) == []
            assert violations(case, hubs, authorities, num_ranks, order, spec=greatest)[0].rule == 2


def test_authorities_may_be_as_far_away_as_the_last_change_allows():
    hubs, authorities = (np.array(one) / sum(one) for one in oracles.hits(SMALL, 2))
    assert [found.rule for found in violations(SMALL, hubs, authorities, 2, "degree")] == [4]
    before = np.array(oracles.hits(SMALL, 1)[0]) / (1 << 61)
    assert violations(SMALL, hubs, authorities, 2, "degree", change=float(abs(hubs - before).sum())) == []
