"""The serial search in depth: labels, and searches that are interrupted after any arc."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.strong_components import depth_first
from mgraph.algorithms.strong_components.labels import labels_of_users
from mgraph.errors import CommAborted


def rank_program(shard, comm):
    trace = Trace(shard.backend, comm)
    labels = labels_of_users(shard, comm, depth_first.find_strong_components(shard, comm, trace))
    return labels, [step["arcs"] for step in trace.supersteps], len(shard.rows.targets)


@pytest.mark.parametrize("step_arcs", [1, 2, 7, depth_first.STEP_ARCS])
def test_search_goes_on_where_it_was(step_arcs, monkeypatch):
    monkeypatch.setattr(depth_first, "STEP_ARCS", step_arcs)
    for seed in range(30):
        case = random_case(seed, num_vertices=40, directed=True)
        for order in ("natural", "degree"):
            ((labels, arcs, num_arcs),) = run_on_ranks(rank_program, build_shards(case, 1, order))
            np.testing.assert_array_equal(labels, oracles.strong_components(case))
            assert sum(arcs) == num_arcs


def test_call_that_is_ended_searches_no_further():
    def program(shard, comm):
        shard.backend.stopped = "the call was ended"
        with pytest.raises(CommAborted, match="the call was ended"):
            depth_first.find_strong_components(shard, comm, Trace(shard.backend, comm))

    run_on_ranks(program, build_shards(random_case(1, num_vertices=40, directed=True), 1, "natural"))
