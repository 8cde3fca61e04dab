"""Search from many sources, a core for each."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_checks import check_rows
from naive_shard import build_shards
from strategies import graphs, orders
from tiers import examples
from zoo import CASES, GraphCase, make_case, random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix import per_core
from mgraph.algorithms.distance_matrix.per_core import search_by_cores
from mgraph.algorithms.distance_matrix.per_core_kernels import GIVEN_UP, SLOTS, settle_buckets
from mgraph.algorithms.distance_matrix.searches import Searches
from mgraph.algorithms.sssp.radix_queue import queue_capacity
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.types import LEVEL, unreached_of

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

DTYPES = ("float32", "uint8", "int64")


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("weighted", [True, False], ids=["weights", "hops"])
@pytest.mark.parametrize("case", [*CASES, random_case(3, 300)], ids=lambda case: case.name)
def test_distances_equal_the_oracle(case, weighted, monkeypatch):
    monkeypatch.setattr(per_core, "ROWS_BYTES", 5000)
    random = np.random.default_rng(2)
    sources = random.integers(0, case.num_vertices, 9).tolist() if case.num_vertices else []
    for targets in (None, sources[::-1]):
        check_rows(search_by_cores, case, sources, targets, weighted=weighted, backend=CpuBackend(2))


@examples(60)
@given(
    graphs(dtypes=("float32", "uint8", "int64")),
    st.integers(0, 99),
    orders,
    st.booleans(),
    st.none() | st.integers(0, 4),
)
def test_distances_of_drawn_graphs_equal_the_oracle(case, seed, order, weighted, limit):
    sources, targets = np.random.default_rng(seed).integers(0, case.num_vertices, (2, 3)).tolist()
    for wanted in (None, targets):
        check_rows(search_by_cores, case, sources, wanted, weighted=weighted, limit=limit, order=order)


def test_distances_over_weights_far_beyond_the_buckets_equal_the_oracle():
    """Light stars, joined by arcs so heavy that each begins the buckets anew."""
    stars = [(10 * k, 10 * k + leaf, 1) for k in range(12) for leaf in range(1, 10)]
    bridges = [(10 * k + 9, 10 * k + 10, 10**k) for k in range(11)]
    case = make_case("stars", 120, stars + bridges, np.int64)
    check_rows(search_by_cores, case, [0, 5, 119])
    check_rows(search_by_cores, case, [0, 119], [119, 60, 3])


def falling(num_vertices: int) -> GraphCase:
    """Return a graph in which a search that takes the last lowered vertex first lowers vertices again and again.

    Most weights are 0, so that all distances are in one bucket.
    """
    ladder = [(u, u + 1, 0) for u in range(0, num_vertices - 2, 2)]
    ladder += [(u, u + 2, 2 ** (num_vertices // 2 - u // 2)) for u in range(0, num_vertices - 2, 2)]
    ladder += [(u + 1, u + 2, 0) for u in range(0, num_vertices - 2, 2)]
    light = [(num_vertices, num_vertices + 1 + k, 0) for k in range(num_vertices)]
    return make_case("falling", 2 * num_vertices + 1, ladder + light, np.int64, directed=True)


def test_search_that_lowers_vertices_too_often_is_begun_anew():
    case = falling(40)
    (shard,) = build_shards(case, 1, "natural")
    rows = shard.rows
    n = case.num_vertices
    capacity = queue_capacity(n)
    dist = np.full(n, unreached_of(np.dtype(np.int64)))
    found = settle_buckets(
        rows.indptr, rows.targets, rows.weights, np.uint32(0), np.empty(0, np.uint32), 1, 0.0, np.int64(2**62), dist,
        np.empty(SLOTS, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.uint32),
        np.empty(capacity, np.int64), np.empty(n, np.uint32),
    )  # fmt: skip
    assert found == GIVEN_UP
    # The second source follows one that was given up.
    for targets in (None, [39, 7, 3]):
        check_rows(search_by_cores, case, [0, 20, 2, 45], targets, order="natural", backend=CpuBackend(1))


def test_only_what_is_nearer_than_the_targets_is_searched():
    """On a path, the time of a search is that of its targets: what is beyond them stays unreached."""
    n = 400
    path = make_case("path", n, [(v, v + 1, 1) for v in range(n - 1)], np.uint8)
    (shard,) = build_shards(path, 1, "natural")
    rows = shard.rows
    capacity = queue_capacity(n)
    dist = np.full(n, unreached_of(np.dtype(np.uint32)), np.uint32)
    num_found = settle_buckets(
        rows.indptr, rows.targets, rows.weights, np.uint32(100), np.array([90, 120], np.uint32), 2, 1.0,
        np.uint32(2**32 - 1), dist, np.empty(SLOTS, np.int64), np.empty(capacity, np.uint32),
        np.empty(capacity, np.uint32), np.empty(capacity, np.int64), np.empty(n, np.uint32),
    )  # fmt: skip
    assert 31 <= num_found < 50
    assert dist[[90, 120]].tolist() == [10, 20]


def test_abort_is_noticed_between_batches(monkeypatch):
    monkeypatch.setattr(per_core, "ROWS_BYTES", 1)
    case = random_case(1, 60)
    backend = CpuBackend(1)
    (shard,) = build_shards(case, 1, "natural", backend)
    positions = oracles.positions(case, "natural")
    found = search_by_cores(shard, None, Searches(positions.tolist(), False, LEVEL), Trace(backend, NoRanks()))
    next(found)
    backend.stopped = "the caller has gone"
    with pytest.raises(CommAborted, match="has gone"):
        next(found)


class NoRanks:
    """A communicator of one rank, of which a trace reads the bytes."""

    bytes_sent = 0
    size = 1
