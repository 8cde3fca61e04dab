"""Starts of rows in 32 bits, and what searches find by those in 64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matrix_checks import check_rows
from naive_shard import build_shards
from zoo import random_case

from mgraph.algorithms.distance_matrix import per_core
from mgraph.shard.narrow_indptr import narrow_indptr
from mgraph.shard.shard import Rows


def test_starts_have_32_bits_and_are_made_once():
    (shard,) = build_shards(random_case(1, 60), 1)
    narrow = narrow_indptr(shard)
    assert narrow.dtype == np.uint32
    assert narrow.tolist() == shard.rows.indptr.tolist()
    assert narrow_indptr(shard) is narrow


@pytest.mark.parametrize("num_arcs", [2**32 - 1, 2**32])
def test_starts_of_more_arcs_than_32_bits_count_stay_wide(num_arcs):
    (shard,) = build_shards(random_case(1, 60), 1)
    indptr = np.array([0, num_arcs])
    found = narrow_indptr(replace(shard, stored_rows=Rows(indptr, np.empty(0, np.uint32), None), kept={}))
    assert found.tolist() == [0, num_arcs]
    assert found.itemsize == (4 if num_arcs < 2**32 else 8)


@pytest.mark.ci  # compiles the searches once more
def test_searches_by_wide_starts_equal_the_oracle(monkeypatch):
    monkeypatch.setattr(per_core, "narrow_indptr", lambda shard: shard.rows.indptr)
    for weighted in (True, False):
        check_rows(per_core.search_by_cores, random_case(3, 300), [0, 17, 299], weighted=weighted)
