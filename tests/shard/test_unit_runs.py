"""Runs of units are divided where the last unit of many edges ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.shard.unit_runs import FEW_EDGES, run_of_units

SIZES = st.sampled_from([1, 2, FEW_EDGES - 1, FEW_EDGES, 5 * FEW_EDGES])


@examples(200)
@given(st.lists(SIZES, max_size=12), st.data())
def test_run_is_divided_behind_the_last_unit_of_many_edges(sizes, data):
    first = data.draw(st.integers(0, len(sizes)))
    last = data.draw(st.integers(first, len(sizes)))
    run = run_of_units(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), first, last)
    assert (run.first, run.last, run.num_edges) == (first, last, sum(sizes[first:last]))
    assert all(size < FEW_EDGES for size in sizes[run.first_of_few : last])
    assert run.first_of_few == first or sizes[run.first_of_few - 1] >= FEW_EDGES


def test_no_unit_has_many_edges():
    assert run_of_units(np.array([0, 3, 4, 9]), 1, 3) == (1, 1, 3, 6)
