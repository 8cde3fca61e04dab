"""Right sides and odd cycles pass on any number of ranks; wrong ones are caught, by the rule they break."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import FEW_RANKS, run_on_ranks
from zoo import make_case

from mgraph.validation.bipartite import validate_sides

# A path of three, a triangle, and an isolated vertex.
CASE = make_case("both", 7, [(0, 1), (1, 2), (3, 4), (4, 5), (5, 3)])


@pytest.mark.parametrize(
    ("sides", "cycle", "broken"),
    [
        ([0, 1, 0, -1, -1, -1, 0], [3, 4, 5], {}),
        ([0, 1, 2, -1, -1, -1, 0], [3, 4, 5], {1: (1, 2)}),
        ([0, 1, 1, -1, -1, -1, 0], [3, 4, 5], {2: (2, 1)}),
        ([0, 1, -1, -1, -1, -1, 0], [3, 4, 5], {2: (2, 1)}),
        ([0, 1, 0, 0, 1, 0, 0], [], {2: (2, 3)}),
        # No cycle, one of vertices that are not neighbors, of an even number, with a vertex twice, and an isolated one.
        ([0, 1, 0, -1, -1, -1, 0], [], {3: (3, 3)}),
        ([0, 1, 0, -1, -1, -1, 0], [0, 1, 2], {3: (3, 3)}),
        ([0, 1, 0, -1, -1, -1, 0], [3, 4], {3: (3, 3)}),
        ([0, 1, 0, -1, -1, -1, 0], [3, 4, 3, 4, 5], {3: (3, 3)}),
        ([0, 1, 0, -1, -1, -1, 0], [3, 4, 6], {3: (3, 3)}),
    ],
)
def test_each_corruption_is_caught_by_its_rule(sides, cycle, broken):
    for num_ranks in FEW_RANKS:
        for order in ("degree", "natural"):
            shards = build_shards(CASE, num_ranks, order)
            parts = [(np.array(sides, np.int32)[slice(*shard.user_range)], cycle) for shard in shards]
            first, *others = run_on_ranks(validate_sides, shards, parts=parts)
            assert all(other == first for other in others), "the ranks disagree"
            assert {v.rule: (v.count, v.vertex) for v in first} == broken
