"""The loop that peels: drawn graphs against the oracle, levels that are skipped, and long ways."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from naive_shard import build_shards, by_user
from on_ranks import run_on_ranks
from strategies import graphs, orders, rank_counts
from tiers import examples
from zoo import make_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.core_numbers.peeling import find_core_numbers


def rank_program(shard, comm):
    trace = Trace(shard.backend, comm)
    return find_core_numbers(shard, comm, trace), trace.supersteps


def peeled(case, num_ranks, order):
    """Return the core numbers by user id, and the supersteps of each rank."""
    shards = build_shards(case, num_ranks, order)
    parts, supersteps = zip(*run_on_ranks(rank_program, shards), strict=True)
    return by_user(shards, parts), supersteps


@examples(200)
@given(graphs(max_vertices=40, max_edges=150), orders, rank_counts)
def test_numbers_of_drawn_graphs_equal_the_oracle(case, order, num_ranks):
    cores, supersteps = peeled(case, num_ranks, order)
    np.testing.assert_array_equal(cores, oracles.core_numbers(case))
    arcs = sum(step["arcs"] for steps in supersteps for step in steps)
    assert arcs == len(oracles.arcs_of(case)) * (2 if case.directed else 1), "each arc is scanned once from each end"


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_levels_that_no_vertex_has_are_skipped(num_ranks):
    clique = make_case("clique", 40, [(u, v) for u in range(40) for v in range(u)])
    cores, supersteps = peeled(clique, num_ranks, "degree")
    assert cores.tolist() == [39] * 40
    for steps in supersteps:
        assert [step["method"] for step in steps][:3] == ["list", "list", "peel"]


def test_long_way_on_one_rank_takes_few_supersteps():
    """A thread goes on from each vertex that it peels."""
    path = make_case("path", 5000, [(v, v + 1) for v in range(4999)])
    cores, (steps,) = peeled(path, 1, "natural")
    assert cores.tolist() == [1] * 5000
    assert len(steps) <= 6
