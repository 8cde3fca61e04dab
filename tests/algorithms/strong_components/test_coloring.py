"""Priorities, and the rounds of the loop that finds strong components."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.strong_components import coloring
from mgraph.algorithms.strong_components.kernels import priority_of, state_of_priority
from mgraph.algorithms.strong_components.labels import labels_of_users
from mgraph.shard.in_rows import require_in_rows
from mgraph.types import LARGE_VERTEX, SMALL_VERTEX, none_of


@pytest.mark.parametrize("dtype", [SMALL_VERTEX, LARGE_VERTEX], ids=str)
@pytest.mark.parametrize("pivot", [0, 5, 2**32 - 3])
def test_priorities_fit_their_dtype_and_lead_back_to_their_state(dtype, pivot):
    numbering = coloring._numbering(dtype, pivot)
    states = [0, 1, 2, pivot, 2**31 - 1, 2**31, 2**32 - 3] + ([2**40, 2**62] if dtype == LARGE_VERTEX else [])
    priorities = [priority_of(state, numbering) for state in states]
    assert all(0 <= priority <= none_of(dtype) for priority in priorities)
    assert [state_of_priority(priority, numbering) for priority in priorities] == states
    assert priority_of(pivot, numbering) == 0


def rank_program(shard, comm):
    require_in_rows(shard, comm)
    return labels_of_users(shard, comm, coloring.find_strong_components(shard, comm, Trace(shard.backend, comm)))


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_first_region_may_have_the_name_of_any_vertex(num_ranks, monkeypatch):
    """A vertex of the largest priority keeps it as its color only if no other reaches it."""
    inverse = int(coloring._numbering(SMALL_VERTEX, 0)[2])
    for seed in range(3):
        case = random_case(seed, num_vertices=40, directed=True)
        for vertex in range(case.num_vertices):
            monkeypatch.setattr(coloring, "find_hub", lambda *_, vertex=vertex: vertex + inverse)
            assert priority_of(vertex, coloring._numbering(SMALL_VERTEX, vertex + inverse)) == none_of(SMALL_VERTEX)
            labels = np.concatenate(run_on_ranks(rank_program, build_shards(case, num_ranks, "natural")))
            np.testing.assert_array_equal(labels, oracles.strong_components(case))
