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
from mgraph.algorithms.distance_matrix.per_core_kernels import search_source
from mgraph.algorithms.distance_matrix.searches import Searches
from mgraph.algorithms.sssp import hybrid_near_kernels as near_kernels
from mgraph.algorithms.sssp.hybrid import UNLIMITED, near_shapes
from mgraph.algorithms.sssp.radix_queue import queue_capacity, queue_shapes
from mgraph.api.traversal import state_dtype
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.types import LEVEL, unreached_of

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

# As if every search had wasted more than it may; and first buckets of all widths, one of all vertices among them.
WASTEFUL = {"MAX_WASTED": -(1 << 60)}
HOW = ({}, WASTEFUL, {"width": 1}, {"width": 1 << 30}, {"width": 1 << 30, **WASTEFUL})
# Weights that no one width suits: one edge far heavier than all others, and weights of all magnitudes.
WEIGHTS = ("equal", "zero", "bytes", "outlier", "skewed")


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


def patched(patch: pytest.MonkeyPatch, how: dict) -> None:
    """Have searches begin with another width, or end as wasteful."""
    if "width" in how:
        patch.setattr(per_core, "first_width", lambda shard, comm, dtype: how["width"])
    patch.setattr(per_core, "MAX_WASTED", how.get("MAX_WASTED", per_core.MAX_WASTED))


def drawn_weights(kind: str, dtype: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return weights of a kind in a dtype."""
    if kind == "skewed":
        most = 40.0 if dtype.kind == "f" else min(np.log(np.iinfo(dtype).max), 35.0)
        return np.exp(rng.random(count) * (most - 0.1)).astype(dtype)
    weights = rng.integers(0, {"zero": 2, "equal": 1}.get(kind, 100), count) + (kind == "equal")
    if dtype.kind == "f" and kind in ("bytes", "outlier"):
        weights = weights * rng.random(count)
    weights = weights.astype(dtype)
    if kind == "outlier":
        weights[0] = {4: 1e30, 8: 1e300}[dtype.itemsize] if dtype.kind == "f" else min(np.iinfo(dtype).max, 2**50)
    return weights


@st.composite
def searched_graphs(draw: st.DrawFn) -> tuple[GraphCase, list[int], list[int] | None, float | int | None]:
    """Draw a graph of any weights, sources, some of them alike, targets or None, and a limit or None."""
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    n = draw(st.sampled_from((2, 9, 60, 400)))
    num_edges = int(n * draw(st.sampled_from((0.7, 2.0, 6.0)))) + 1
    dtype = np.dtype(draw(st.sampled_from(("float32", "float64", "uint8", "int32", "int64"))))
    weights = drawn_weights(draw(st.sampled_from(WEIGHTS)), dtype, num_edges, rng)
    ends = rng.integers(0, n, (2, num_edges)).astype(np.uint32)
    case = GraphCase("drawn", n, ends[0], ends[1], weights, draw(st.booleans()))
    sources = [0, 0, *rng.integers(0, n, 4).tolist()]
    targets = rng.integers(0, n, draw(st.integers(0, 4))).tolist() if draw(st.booleans()) else None
    far = float(np.median(weights)) * draw(st.sampled_from((0, 2, 30)))
    limit = draw(st.sampled_from((None, far if dtype.kind == "f" else int(far))))
    return case, sources, targets, limit


@examples(150)
@given(searched_graphs(), orders, st.sampled_from(HOW), st.sampled_from((1, 2)))
def test_distances_over_weights_of_all_kinds_equal_the_oracle(drawn, order, how, threads):
    case, sources, targets, limit = drawn
    with pytest.MonkeyPatch.context() as patch:
        patched(patch, how)
        check_rows(search_by_cores, case, sources, targets, limit=limit, order=order, backend=CpuBackend(threads))


@pytest.mark.parametrize("limit", [2**32 - 1, 2**32, 2**40])
def test_limit_beyond_all_distances_limits_nothing(limit):
    case = make_case("heavy", 2, [(0, 1, 2**31 - 1)], np.int32)
    check_rows(search_by_cores, case, [0, 1], limit=limit)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_distances_over_weights_far_beyond_the_buckets_equal_the_oracle(how, monkeypatch):
    """Light stars, joined by arcs so heavy that a bucket of one star's width never reaches the next."""
    patched(monkeypatch, how)
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


@pytest.mark.parametrize("how", HOW, ids=str)
def test_search_that_lowers_vertices_too_often_equals_the_oracle(how, monkeypatch):
    patched(monkeypatch, how)
    # The second source follows one that is wasteful.
    for targets in (None, [39, 7, 3]):
        check_rows(search_by_cores, falling(40), [0, 20, 2, 45], targets, order="natural", backend=CpuBackend(1))


def search_once(
    case: GraphCase, start: int, until: list[int], wasted: int = 1 << 60, width: int = 1
) -> tuple[int, int, np.ndarray]:
    """Search from a position of the natural order; return why buckets ended, what was found, and the distances."""
    (shard,) = build_shards(case, 1, "natural")
    rows = shard.rows
    n = case.num_vertices
    dtype = state_dtype(shard.info)
    vertex = shard.partition.dtype
    near, far, listed = (np.empty(length, kind) for length, kind in near_shapes(n, vertex, n))
    queue = tuple([np.empty(length, kind) for length, kind in queue_shapes(queue_capacity(n), dtype, vertex)])
    state = np.zeros(near_kernels.NUM_WORDS, np.int64)
    state[[near_kernels.WAITING_LIMIT, near_kernels.PAUSE_LIMIT]] = UNLIMITED
    state[near_kernels.WASTE_LIMIT] = wasted
    state[near_kernels.MIN_WAITING_DEGREE] = 1
    where = np.zeros(n, np.uint8)
    dist = np.full(n, unreached_of(dtype), dtype)
    num_found = search_source(
        vertex.type(start), near, far, where, state, np.array([0, 0, width], dtype), queue, rows.indptr, rows.targets,
        rows.weights, unreached_of(dtype), np.array(until, vertex), dist, listed,
    )  # fmt: skip
    assert not where.any()
    assert sorted(listed[:num_found]) == np.flatnonzero(dist != unreached_of(dtype)).tolist()
    return state[near_kernels.REASON], num_found, dist


def test_wasteful_search_goes_on_in_order_of_distance():
    """Search one bucket of all vertices, over weights of all magnitudes: many are lowered again and again."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 400, (2, 4000)).astype(np.uint32)
    case = GraphCase("skewed", 400, *ends, drawn_weights("skewed", np.dtype(np.int64), 4000, rng), True)
    expected = oracles.sssp(case, [0])
    for wasted, reason in ((1 << 60, near_kernels.ENDED), (500, near_kernels.WASTEFUL), (-1, near_kernels.WASTEFUL)):
        found, num_found, dist = search_once(case, 0, [], wasted, 2**50)
        assert found == reason
        assert num_found == (expected >= 0).sum()
        np.testing.assert_array_equal(dist[expected >= 0], expected[expected >= 0])


def test_only_what_is_nearer_than_the_targets_is_searched():
    """On a path, the time of a search is that of its targets: what is beyond them stays unreached."""
    path = make_case("path", 400, [(v, v + 1, 1) for v in range(399)], np.uint8)
    for wasted in (1 << 60, -(1 << 60)):
        _, num_found, dist = search_once(path, 100, [90, 120], wasted)
        assert 31 <= num_found < 80
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
