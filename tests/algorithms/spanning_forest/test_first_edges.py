"""Forests of equal weights by one core: Kruskal's edges, which Boruvka's rounds take too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import run_on_ranks
from strategies import graphs, orders
from tiers import examples
from zoo import CASES, random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest import first_edges
from mgraph.algorithms.spanning_forest.filter_boruvka import msf
from mgraph.algorithms.variant import Conditions
from mgraph.errors import CommAborted
from mgraph.shard.user_ids import edges_of_users

UNDIRECTED = [case for case in CASES if not case.directed and case.weights is not None]


def equal(case, weight=3):
    return replace(case, weights=np.full_like(case.weights, weight), directed=False)


def edges_of(take, case, order, maximum):
    """Return the edges that a function takes, as a dictionary by their ends."""

    def program(shard, comm):
        arcs = take(shard, comm, Trace(shard.backend, comm), maximum)
        return edges_of_users(shard, comm, arcs)[1]

    ((edges),) = run_on_ranks(program, build_shards(case, 1, order))
    columns = [edges[name].tolist() for name in ("sources", "targets", "weights")]
    return {(u, v): weight for u, v, weight in zip(*columns, strict=True)}


def check(case, order, maximum):
    found = edges_of(first_edges.take_forest, case, order, maximum)
    assert found == oracles.kruskal(case, oracles.positions(case, order), maximum=maximum)
    assert found == edges_of(msf, case, order, maximum)
    assert list(found) == sorted(found)


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*UNDIRECTED, random_case(1, 200)], ids=lambda case: case.name)
def test_edges_are_those_of_kruskal_and_boruvka(case, order):
    check(equal(case), order, maximum=False)


@examples(100)
@given(graphs(), orders, st.booleans(), st.sampled_from([1, first_edges.STEP_ROWS]))
def test_edges_of_drawn_graphs_are_those_of_kruskal_and_boruvka(case, order, maximum, step_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_edges, "STEP_ROWS", step_rows)
        check(equal(case), order, maximum)


@pytest.mark.parametrize(("weights", "applies"), [([2, 2], True), ([2, 1], False), ([0.0, -0.0], False)])
def test_it_applies_to_equal_weights_but_zeros_of_two_signs(weights, applies):
    case = replace(random_case(1, 40), sources=np.array([0, 1]), targets=np.array([1, 2]), weights=np.array(weights))

    def program(shard, comm):
        return first_edges.VARIANT.applies(Conditions.of(shard, comm))

    assert run_on_ranks(program, build_shards(case, 1)) == [applies]


def test_call_that_is_ended_takes_no_further_edges():
    def program(shard, comm):
        shard.backend.stopped = "the call was ended"
        with pytest.raises(CommAborted, match="the call was ended"):
            first_edges.take_forest(shard, comm, Trace(shard.backend, comm))

    run_on_ranks(program, build_shards(equal(random_case(1, 40)), 1))
