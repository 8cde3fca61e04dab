"""Search from many sources as one computation, on any number of ranks."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from matrix_checks import check_rows
from naive_shard import build_shards
from on_ranks import run_on_ranks
from strategies import graphs, orders, rank_counts
from tiers import examples
from zoo import CASES, ZOO, GraphCase, make_case, random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix import near_far
from mgraph.algorithms.distance_matrix.near_far import search_pairs
from mgraph.algorithms.distance_matrix.searches import Searches
from mgraph.api.traversal import state_dtype

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes


@pytest.mark.covering(every=6, ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("case", [*CASES, random_case(3, 300)], ids=lambda case: case.name)
def test_distances_equal_the_oracle_for_any_number_of_ranks(case, num_ranks, order, monkeypatch):
    monkeypatch.setattr(near_far, "MAX_AT_ONCE", 4)
    random = np.random.default_rng(2)
    sources = random.integers(0, case.num_vertices, 9).tolist() if case.num_vertices else []
    for targets in (None, sources[::-1]):
        check_rows(search_pairs, case, sources, targets, num_ranks=num_ranks, order=order)


@examples(60)
@given(graphs(), st.integers(0, 99), orders, rank_counts, st.none() | st.integers(0, 4), st.integers(1, 3))
def test_distances_of_drawn_graphs_equal_the_oracle(case, seed, order, num_ranks, limit, at_once):
    sources, targets = np.random.default_rng(seed).integers(0, case.num_vertices, (2, 3)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_far, "MAX_AT_ONCE", at_once)
        for wanted in (None, targets):
            check_rows(search_pairs, case, sources, wanted, limit=limit, order=order, num_ranks=num_ranks)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("case", [ZOO["grid"], ZOO["dag"]], ids=lambda case: case.name)
def test_distances_on_emulated_gpus_equal_the_oracle(case, num_ranks):
    sources = np.random.default_rng(2).integers(0, case.num_vertices, 5).tolist()
    backend = EmulatedBackend(seed=3, block=64, blocks=2)
    check_rows(search_pairs, case, sources, num_ranks=num_ranks, backend=backend)
    check_rows(search_pairs, case, sources, sources[::-1], num_ranks=num_ranks, backend=backend)


def path(num_vertices: int, weight: float, dtype: str) -> GraphCase:
    return make_case("path", num_vertices, [(v, v + 1, weight) for v in range(num_vertices - 1)], np.dtype(dtype))


@pytest.mark.parametrize(
    ("case", "dtypes"),
    [
        # Paths may be longer than narrow distances hold, but are not; or are, and later batches do not try again.
        (path(40, 3, "uint8"), ["uint32"]),
        (path(40, 2**25, "uint32"), ["uint32"]),
        (path(200, 2**25, "uint32"), ["uint32", "int64", "int64"]),
        (path(40, 2**40, "int64"), ["int64"]),
        (path(40, 0.1, "float32"), ["float32"]),
        (path(40, 0.1, "float64"), ["float64"]),
    ],
    ids=["uint8", "uint32", "beyond", "int64", "float32", "float64"],
)
def test_dtypes_are_tried_as_one_search_tries_them(case, dtypes, monkeypatch):
    monkeypatch.setattr(near_far, "MAX_AT_ONCE", 2)
    tried = []
    search = near_far._search

    def noted(shard, comm, searches, trace):
        if comm.rank == 0:
            tried.append(searches.dtype.name)
        return search(shard, comm, searches, trace)

    monkeypatch.setattr(near_far, "_search", noted)
    check_rows(search_pairs, case, [0, 7, 30, 0], num_ranks=2)
    assert list(dict.fromkeys(tried)) == list(dict.fromkeys(dtypes))
    assert len(tried) == 2 + (len(dtypes) > 1)
    for limit in (0, 2**31):
        check_rows(search_pairs, case, [0, 7], [39, 3], limit=limit, num_ranks=2)


def test_memory_of_a_narrow_search_is_free_before_a_wider_one(monkeypatch):
    before = threading.local()
    search = near_far._search

    def noted(*args):
        assert getattr(before, "search", lambda: None)() is None
        found = search(*args)
        before.search = weakref.ref(found)
        return found

    monkeypatch.setattr(near_far, "_search", noted)
    check_rows(search_pairs, path(200, 2**25, "uint32"), [0, 7], num_ranks=2)


def test_all_sources_take_about_as_many_supersteps_as_one():
    case = path(300, 3, "uint8")
    one = len(check_rows(search_pairs, case, [0], num_ranks=2))
    many = len(check_rows(search_pairs, case, [0, 299, 150, 20, 77], num_ranks=2))
    assert 30 < one <= many <= one + one // 4
    near = len(check_rows(search_pairs, case, [0, 20], [3, 9], num_ranks=2))
    assert near < one // 2  # it ends with its targets


def test_rows_are_those_of_one_search_after_another_by_fewer_sources_where_memory_is_short(monkeypatch):
    case = random_case(5, 120)
    shards = build_shards(case, 3)
    dtype = state_dtype(shards[0].info)
    searches = Searches([4, 90, 4, 17, 60], True, dtype, users=[0] * 5)

    def program(shard, comm):
        return [batch.copy() for batch in search_pairs(shard, comm, searches, Trace(shard.backend, comm))]

    at_once = run_on_ranks(program, shards)
    assert [len(batches) for batches in at_once] == [1, 1, 1]
    # One rank has room for two sources, others for more.
    of_source = near_far._bytes_of_source(shards[0].partition, shards[0].num_owned, dtype.itemsize, dtype.itemsize)
    monkeypatch.setattr(type(shards[0].backend), "free_bytes", lambda backend: 2 * near_far.ROOM_SHARE * of_source)
    in_parts = run_on_ranks(program, shards)
    for whole, parts in zip(at_once, in_parts, strict=True):
        assert [len(batch) for batch in parts] == [1, 2, 2]
        np.testing.assert_array_equal(np.concatenate(parts), whole[0])
