"""Sorting by one core: the order of NumPy's sorts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.shard.edge_order_kernels import count_order, is_sorted, sort_arcs


@examples(200)
@given(st.lists(st.integers(0, 70), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_arcs_are_sorted_and_have_their_rows(lengths, random):
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    num = int(indptr[-1])
    arcs = np.array(random.sample(range(num), random.randint(0, num)), np.int64)
    rows = np.empty(len(arcs), np.int64)
    found = arcs.copy()
    sort_arcs(indptr, np.zeros((num >> 6) + 1, np.uint64), found, rows)
    np.testing.assert_array_equal(found, np.sort(arcs))
    np.testing.assert_array_equal(rows, np.searchsorted(indptr, found, side="right") - 1)


@examples(200)
@given(st.lists(st.tuples(st.integers(5, 9), st.integers(0, 6)), max_size=40))
def test_two_counts_sort_pairs_stably(pairs):
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    order = None
    for values, lowest, size in ((second, 0, 7), (first, 5, 5)):
        before, order = order, np.empty(len(pairs), np.int64)
        count_order(values, lowest, before, np.zeros(size + 2, np.int64), order)
    np.testing.assert_array_equal(order, np.lexsort((second, first)))
    assert is_sorted(first[order], second[order])


@pytest.mark.parametrize("pair", [((1, 0), (0, 1)), ((1, 1), (1, 0))])
def test_pairs_out_of_order_are_not_sorted(pair):
    assert not is_sorted(*np.array(pair))
