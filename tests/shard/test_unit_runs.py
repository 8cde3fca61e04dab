"""Runs of units cover all units, each in one window and divided where the last unit of many edges ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.shard.unit_runs import FEW_EDGES, run_of_units, runs_of_units

SIZES = st.sampled_from([1, 2, FEW_EDGES - 1, FEW_EDGES, 5 * FEW_EDGES])


@examples(200)
@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=12))
def test_runs_divide_all_units(units):
    sizes = np.array([size for size, _ in units], np.int64)
    windows = np.cumsum([begins for _, begins in units])
    unit_edges = np.concatenate([[0], np.cumsum(sizes)])
    runs = runs_of_units(unit_edges, windows)
    assert [unit for run in runs for unit in range(run.first, run.last)] == list(range(len(units)))
    assert len(runs) == len(set(windows))
    for run in runs:
        assert len(set(windows[run.first : run.last])) == 1
        assert run.num_edges == sizes[run.first : run.last].sum()
        assert (sizes[run.first_of_few : run.last] < FEW_EDGES).all()
        assert run.first_of_few == run.first or sizes[run.first_of_few - 1] >= FEW_EDGES


def test_no_unit_has_many_edges():
    assert run_of_units(np.array([0, 3, 4, 9]), 1, 3) == (1, 1, 3, 6)
