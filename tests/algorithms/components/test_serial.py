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
from zoo import CASES, ZOO, random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components import serial
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.algorithms.run_variant import compute_components
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted


def find(case, order, step_rows=serial.STEP_ROWS):
    """Return the labels by user id, the number of components, and the methods of the supersteps."""

    def program(shard, comm):
        trace = Trace(shard.backend, comm)
        roots = serial.find_components(shard, comm, trace)
        num = roots.num_roots
        if num is not None:
            num += shard.info.num_vertices - shard.partition.num_positions
        return labels_of_users(shard, comm, roots), num, [step["method"] for step in trace.supersteps]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serial, "STEP_ROWS", step_rows)
        ((labels, num, methods),) = run_on_ranks(program, build_shards(case, 1, order, CpuBackend(1)))
    return labels, num, methods


def check(case, order, step_rows=serial.STEP_ROWS):
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
@given(graphs(), orders, st.sampled_from([1, 3, serial.STEP_ROWS]))
def test_labels_of_drawn_graphs_equal_the_oracles(case, order, step_rows):
    check(case, order, step_rows)


@pytest.mark.parametrize(
    ("case", "most"),
    [(random_case(2, 300), serial.MAX_THREADS), (ZOO["path"], serial.MAX_THREADS_OF_TREES)],
    ids=lambda of_row: getattr(of_row, "name", None),
)
@pytest.mark.parametrize(("more", "name"), [(0, "serial"), (1, "afforest")])
def test_threads_of_the_rank_choose_the_variant_that_is_reported(case, most, more, name):
    threads = most + more

    def program(shard, comm):
        variant, roots = compute_components(shard, comm, Trace(shard.backend, comm))
        return variant, labels_of_users(shard, comm, roots)

    ((variant, labels),) = run_on_ranks(program, build_shards(case, 1, "natural", CpuBackend(threads)))
    assert variant == f"components.{name}"
    np.testing.assert_array_equal(labels, oracles.components(case))


def test_call_that_is_ended_links_no_further():
    def program(shard, comm):
        shard.backend.stopped = "the call was ended"
        with pytest.raises(CommAborted, match="the call was ended"):
            serial.find_components(shard, comm, Trace(shard.backend, comm))

    run_on_ranks(program, build_shards(random_case(1, 40), 1, "natural"))
