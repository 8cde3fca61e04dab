"""Components on one CPU rank by few cores: the oracle's labels, however the pass over the rows is cut."""

from __future__ import annotations

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
from mgraph.algorithms.components import hybrid
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted


def find(case, order, threads=1, step_rows=hybrid.STEP_ROWS):
    """Return the labels by user id, the number of components, and the methods of the supersteps."""

    def program(shard, comm):
        trace = Trace(shard.backend, comm)
        roots = hybrid.find_components(shard, comm, trace)
        num = roots.num_roots
        if num is not None:
            num += shard.info.num_vertices - shard.partition.num_positions
        return labels_of_users(shard, comm, roots), num, [step["method"] for step in trace.supersteps]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "STEP_ROWS", step_rows)
        ((labels, num, methods),) = run_on_ranks(program, build_shards(case, 1, order, CpuBackend(threads)))
    return labels, num, methods


def check(case, order, step_rows=hybrid.STEP_ROWS):
    labels, num, methods = find(case, order, step_rows=step_rows)
    wanted = oracles.components(case)
    np.testing.assert_array_equal(labels, wanted)
    assert num == len(np.unique(wanted))
    assert methods == ["serial"]


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, random_case(1, 300)], ids=lambda case: case.name)
def test_labels_equal_the_oracles(case, order):
    check(case, order)


@examples(200)
@given(graphs(), orders, st.sampled_from([1, 3, hybrid.STEP_ROWS]))
def test_labels_of_drawn_graphs_equal_the_oracles(case, order, step_rows):
    check(case, order, step_rows)


@pytest.mark.parametrize("directed", [False, True])
def test_many_cores_find_the_same_as_one(directed):
    case = random_case(2, 300, directed=directed)
    labels, _, methods = find(case, "natural", threads=hybrid.FEW_CORES + 1)
    np.testing.assert_array_equal(labels, oracles.components(case))
    assert methods == ["sample", "finish"]


def test_call_that_is_ended_links_no_further():
    def program(shard, comm):
        shard.backend.stopped = "the call was ended"
        with pytest.raises(CommAborted, match="the call was ended"):
            hybrid.find_components(shard, comm, Trace(shard.backend, comm))

    run_on_ranks(program, build_shards(random_case(1, 40), 1, "natural"))
