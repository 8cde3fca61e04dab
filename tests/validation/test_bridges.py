"""Right bridges pass on any number of ranks; wrong ones are caught, by the rule they break."""

from __future__ import annotations

import networkx as nx
import numpy as np
import oracles
import pytest
from bridge_checks import breadth_first_forest
from naive_shard import build_shards
from on_ranks import FEW_RANKS, run_on_ranks
from user_graphs import ORDERS
from zoo import make_case

from mgraph.validation.bridges import validate_bridges

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (5, 6), (7, 8)]
SMALL = make_case("small", 10, EDGES, directed=False)
ENDS = nx.gnm_random_graph(60, 70, seed=1, backend="networkx").edges()
SPARSE = make_case("sparse", 60, list(ENDS), directed=False)


def violations(case, bridges, num_ranks, order):
    """Return the rules that are violated by bridges on the ranks of their sources."""
    shards = build_shards(case, num_ranks, order)
    ends = np.array(bridges, np.int64).reshape(-1, 2)
    own = [(ends[:, 0] >= lo) & (ends[:, 0] < hi) for lo, hi in (shard.user_range for shard in shards)]
    parts = [(ends[is_own, 0], ends[is_own, 1], *breadth_first_forest(case)) for is_own in own]
    first, *others = run_on_ranks(validate_bridges, shards, parts=parts)
    assert all(other == first for other in others), "the ranks disagree"
    return [(found.rule, found.count) for found in first]


@pytest.mark.parametrize("case", [SMALL, SPARSE], ids=lambda case: case.name)
def test_right_bridges_pass_and_wrong_ones_are_caught_by_their_rule(case):
    right = oracles.bridges(case)
    _, parents = breadth_first_forest(case)
    others = [(u, v) for u, v in oracles.arcs_of(case) if u < v and (u, v) not in right]
    in_forest = next((u, v) for u, v in others if parents[v] == u or parents[u] == v)
    outside = next((u, v) for u, v in others if parents[v] != u and parents[u] != v)
    for num_ranks in FEW_RANKS:
        for order in ORDERS:
            assert violations(case, right, num_ranks, order) == []
            assert violations(case, right[1:], num_ranks, order) == [(3, 1)]
            assert violations(case, [*right, in_forest], num_ranks, order) == [(2, 1)]
            assert violations(case, [*right, outside], num_ranks, order) == [(1, 1)]
            assert violations(case, [*right, right[0]], num_ranks, order) == [(1, 1)]
