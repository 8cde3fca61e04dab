"""Right trees pass on any number of ranks; wrong ones are caught, by the rule they break."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import FEW_RANKS, run_on_ranks
from user_graphs import ORDERS
from zoo import make_case

from mgraph.validation.steiner_tree import validate_tree

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

EDGES = [(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 0, 5), (3, 4, 2), (4, 5, 1), (6, 7, 1)]
CASE = make_case("terminals", 8, EDGES, directed=False)
RIGHT = [(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 4, 2)]


def violations(edges, terminals, num_ranks, order):
    shards = build_shards(CASE, num_ranks, order)
    columns = [np.array(column, np.int64) for column in zip(*edges, strict=True)] or [np.empty(0, np.int64)] * 3
    parts = [([column[rank::num_ranks].copy() for column in columns],) for rank in range(num_ranks)]

    def program(shard, comm, columns):
        return validate_tree(shard, comm, columns, np.array(terminals), weighted=True)

    first, *others = run_on_ranks(program, shards, parts=parts)
    assert all(other == first for other in others), "the ranks disagree"
    return [(found.rule, found.vertex) for found in first]


def test_right_trees_pass_and_wrong_ones_are_caught_by_their_rule():
    for num_ranks in FEW_RANKS:
        for order in ORDERS:
            assert violations(RIGHT, [0, 2, 4], num_ranks, order) == []
            assert violations([], [3], num_ranks, order) == []
            for edges, terminals, wrong in (
                ([(0, 9, 1)], [0], [(1, 0)]),
                ([(1, 0, 1)], [0, 1], [(1, 1)]),
                ([*RIGHT[:3], (3, 4, 3)], [0, 4], [(1, 3)]),
                ([(0, 2, 1)], [0, 2], [(1, 0)]),
                ([(0, 1, 1), (0, 1, 1)], [0, 1], [(1, 0), (2, 0), (4, 0)][:2]),
                ([*RIGHT[:3], (0, 3, 5)], [0], [(2, 2)]),
                ([(0, 1, 1), (6, 7, 1)], [0, 1, 6, 7], [(2, 0)]),
                (RIGHT, [0, 4, 6], [(3, 6)]),
                ([], [3, 4], [(3, 3)]),
                (RIGHT, [0, 2], [(4, 4)]),
            ):
                found = violations(edges, terminals, num_ranks, order)
                assert found[: len(wrong)] == wrong, (edges, terminals, found)
