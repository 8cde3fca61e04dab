"""Shortest paths on one CPU rank: the oracle's results, wherever the serial loop and buckets of all cores meet."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hybrid_checks import check_found
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from zoo import CASES, ZOO, GraphCase, chain_of_cliques, make_case, random_case, zoo_sources

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.predecessors.rows import find_predecessors
from mgraph.algorithms.sssp import hybrid, hybrid_wide
from mgraph.algorithms.sssp import hybrid_near_kernels as near_kernels
from mgraph.algorithms.sssp.near_far import typical_weight
from mgraph.api.traversal import state_dtype
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.shard.lightest_arcs import require_lightest_arcs

BACKEND = CpuBackend(2)


def search(case, sources, order="degree", until=(), cutoff=None, backend=BACKEND, **thresholds):
    """Run the variant with its thresholds replaced; return the shards, the result and its supersteps.

    With a threshold there are lightest arcs, without one core searches to the end.
    """
    max_waiting, share, delta = (thresholds.get(name) for name in ("max_waiting", "share", "delta"))
    shards = build_shards(case, 1, order, backend)
    if max_waiting is not None:
        require_lightest_arcs(shards[0])
    num_positions = shards[0].partition.num_positions
    starts, ends = (
        [p for p in oracles.positions(case, order)[list(users)].tolist() if p < num_positions]
        for users in (sources, until)
    )

    def program(shard, comm):
        trace = Trace(backend, comm)
        found = hybrid.sssp_hybrid(shard, comm, starts, trace, state_dtype(shard.info), cutoff, ends)
        if found.predecessors is None:
            found.predecessors = find_predecessors(shard, comm, starts, found.distances)
        return found, trace.supersteps

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "MAX_WAITING", max_waiting)
        patch.setattr(hybrid, "NARROW_SHARE", share or hybrid.NARROW_SHARE)
        patch.setattr(hybrid, "MAX_WASTED", thresholds.get("max_wasted", hybrid.MAX_WASTED))
        if "width" in thresholds:
            patch.setattr(hybrid, "first_width", lambda shard, comm, dtype: thresholds["width"])
        patch.setattr(hybrid, "STEP_ARCS", thresholds.get("step_arcs", hybrid.STEP_ARCS))
        patch.setattr(hybrid_wide, "MIN_SHARED", thresholds.get("min_shared", hybrid_wide.MIN_SHARED))
        patch.setattr(hybrid_wide, "MAX_CHUNK", thresholds.get("max_chunk", hybrid_wide.MAX_CHUNK))
        if delta is not None:
            patch.setattr(hybrid, "default_delta", lambda shard, dtype, mean_weight: delta)
        ((found, steps),) = run_on_ranks(program, shards)
    return shards, found, steps


def check(case, sources, order="degree", cutoff=None, **how):
    """Compare distances, predecessors and counts with the oracle's; return the supersteps."""
    shards, found, steps = search(case, sources, order, cutoff=cutoff, **how)
    check_found(case, sources, order, cutoff, shards, found)
    return steps


# As if one core had wasted more than it may.
WASTEFUL = {"max_wasted": -(1 << 40)}
# Pauses after a few arcs, and a threshold so small that a search is wide, and narrow again (a share of 0 is of no arc).
THRESHOLDS = (
    {"step_arcs": 7},
    {"step_arcs": 7, "width": 1},
    {"step_arcs": 7, **WASTEFUL},
    {"max_waiting": 2, "share": 1, **WASTEFUL},
    {"max_wasted": 20, "step_arcs": 7, "width": 1},
    {"max_wasted": 20, "max_waiting": 8, "share": 1, "width": 2},
    {"max_waiting": 1, "share": 1},
    {"max_waiting": 1, "share": 1, "min_shared": 0, "max_chunk": 1},
    {"max_waiting": 8, "share": 1, "delta": 1, "step_arcs": 1},
)


@pytest.mark.covering(every=6, ci=1)
@pytest.mark.parametrize("how", THRESHOLDS, ids=str)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_distances_and_predecessors_equal_the_oracles(case, order, how):
    for sources in zoo_sources(case):
        check(case, sources, order, **how)


@examples(100)
@given(graphs_and_sources(), orders, st.sampled_from(THRESHOLDS))
def test_results_of_drawn_graphs_equal_the_oracles(drawn, order, how):
    check(*drawn, order, **how)


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "uint16", "uint32", "int32", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("how", THRESHOLDS, ids=str)
def test_results_of_all_dtypes_equal_the_oracles(directed, dtype, how):
    case = random_case(1, 300, directed=directed).unweighted
    weights = np.random.default_rng(3).integers(0, 40, len(case.sources))
    weights[:2] = {"int64": 2**33, "uint16": 60_000}.get(dtype, 255)
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    check(case.with_weights(dtype), [5, 299], **how)


@pytest.mark.parametrize("how", THRESHOLDS, ids=str)
def test_vertices_beyond_the_cutoff_are_unreached(how):
    for name in ("grid", "dag", "rounding", "large-weights"):
        farthest = oracles.sssp(ZOO[name], [0]).max()
        for cutoff in (0, farthest // 2, farthest):
            check(ZOO[name], [0], cutoff=cutoff, **how)


@pytest.mark.parametrize("how", THRESHOLDS, ids=str)
def test_search_may_end_behind_its_targets(how):
    for case in (ZOO["long-chain"], random_case(0)):
        dist = oracles.sssp(case, [0])
        reached = np.flatnonzero(np.isfinite(dist))
        near, far = reached[np.argsort(dist[reached], kind="stable")][[len(reached) // 4, len(reached) // 2]]
        shards, found, _ = search(case, [0], until=[near, far], **how)
        got = of_users(shards, [0], [found.distances])
        np.testing.assert_array_equal(got[dist <= dist[far]], dist[dist <= dist[far]])
        beyond = got[dist > dist[far]]
        assert (np.isinf(beyond) | (beyond == dist[dist > dist[far]])).all()
        assert np.isinf(beyond).any()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_bucket_of_all_vertices_ends_behind_the_targets(dtype):
    """Leave most arcs of a dense graph, though all of its vertices are below the first bound."""
    ends = np.random.default_rng(5).integers(0, 2000, (2, 40_000)).astype(np.uint32)
    weights = np.random.default_rng(6).integers(1, 250, ends.shape[1]).astype(dtype)
    case = GraphCase("dense", 2000, *ends, weights, False)
    dist = oracles.sssp(case, [0])
    nearest = np.argsort(dist, kind="stable")[[0, 3, 20]].tolist()
    (whole,) = check(case, [0], width=1 << 20)
    shards, found, (step,) = search(case, [0], until=nearest, width=1 << 20)
    got = of_users(shards, [0], [found.distances])
    np.testing.assert_array_equal(got[nearest], dist[nearest])
    assert step["arcs"] < whole["arcs"] / 4


def test_near_targets_are_found_in_few_arcs_over_weights_of_all_magnitudes():
    random = np.random.default_rng(5)
    ends = random.integers(0, 2000, (2, 16_000)).astype(np.uint32)
    weights = np.exp(random.normal(0, 6, ends.shape[1])).astype(np.float32)
    case = GraphCase("skewed", 2000, *ends, weights, False)
    dist = oracles.sssp(case, [0])
    nearest = np.argsort(dist, kind="stable")[[5, 20]].tolist()
    shards, found, (step,) = search(case, [0], until=nearest)
    np.testing.assert_array_equal(of_users(shards, [0], [found.distances])[nearest], dist[nearest])
    assert step["arcs"] < len(weights) / 8


def test_search_of_all_cores_may_end_behind_targets_that_one_core_settles():
    """Of a vertex beyond them a tentative distance is dropped."""
    rng = np.random.default_rng(5)
    dense = [(*ends, 30 + i % 20) for i, ends in enumerate(rng.integers(10, 110, (1000, 2)).tolist())]
    paths = [(v, v + 1, 5) for v in [*range(10), *range(109, 309)]]
    case = make_case("dense between paths", 311, [*dense, *paths, (150, 310, 250), (180, 310, 5)], np.uint8)
    dist = oracles.sssp(case, [0])
    shards, found, steps = search(case, [0], until=[160], max_waiting=30, share=1)
    assert steps[-1]["method"] == "serial" and len(steps) > 1
    got = of_users(shards, [0], [found.distances])
    assert got[160] == dist[160] < dist[310] and got[310] == -1


def test_many_sources_of_a_graph_without_arcs_are_all_that_is_reached():
    case = make_case("no arcs", 20, [], np.uint8)
    for how in THRESHOLDS:
        check(case, list(range(12)), "natural", **how)


def test_distance_may_be_the_largest_float():
    most = np.finfo(np.float32).max
    for how in THRESHOLDS:
        check(make_case("largest", 4, [(0, 1, most), (1, 2, 1), (2, 3, most)], np.float32), [0], **how)


def test_wide_search_that_is_narrow_again_is_searched_by_one_core():
    """Search a path to a dense graph, that by buckets, and a path behind it by one core again."""
    rng = np.random.default_rng(5)
    dense = [(*ends, 30 + i % 20) for i, ends in enumerate(rng.integers(10, 110, (1000, 2)).tolist())]
    paths = [(v, v + 1, 5) for v in [*range(10), *range(109, 309)]]
    steps = check(make_case("dense between paths", 310, dense + paths, np.uint8), [0], max_waiting=30, share=1)
    methods = [step["method"] for step in steps]
    assert methods[0] == methods[-1] == "serial" and {"push", "heavy"} <= set(methods)
    (step,) = check(chain_of_cliques(), [0])
    assert (step["method"], step["frontier"]) == ("serial", 1)
    steps = check(chain_of_cliques(), [0], max_waiting=30)
    assert [step["method"] for step in steps] == ["serial"], "a deep search stays with one core if few vertices wait"


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_frontier_of_more_arcs_than_candidates_fit_is_relaxed_in_rounds(monkeypatch, directed, dtype, threads):
    """Have room for what each core stages once, so that rows are left in the middle."""
    monkeypatch.setattr(hybrid_wide, "MAX_CANDIDATES", 0)
    backend = CpuBackend(threads)
    launched = []
    run_ranges = backend.run_ranges
    monkeypatch.setattr(
        backend, "run_ranges", lambda *args, **how: launched.append(args[0]) or run_ranges(*args, **how)
    )
    rng = np.random.default_rng(5)
    hubs = [(0, v, 40) for v in range(1, 4000)] + [(1, v, 60) for v in range(2000, 6000)]
    others = [(*ends, 1 + i % 50) for i, ends in enumerate(rng.integers(0, 6000, (20_000, 2)).tolist())]
    case = make_case("hubs", 6000, hubs + others, dtype, directed=directed)
    steps = check(case, [0, 17], backend=backend, max_waiting=1, share=1, min_shared=0)
    supersteps = sum(step["method"] in ("push", "heavy") for step in steps)
    assert launched.count(hybrid_wide.lower_parts) > supersteps > 0


def test_a_few_very_heavy_edges_widen_no_bucket():
    case = random_case(0, 300).unweighted
    weights = np.random.default_rng(1).random(len(case.sources))
    weights[7] = 1e300
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, case.directed)
    for num_ranks in (1, 3):
        typical = run_on_ranks(typical_weight, build_shards(case, num_ranks, "degree", BACKEND))
        assert len(set(typical)) == 1 and 0.5 < typical[0] < 1.5
    # All but one weight are of one class, which sorts no rows.
    steps = check(case, [0], max_waiting=1)
    assert [step["method"] for step in steps] == ["serial"]


def test_full_queue_is_made_smaller(monkeypatch):
    """Lower a vertex again and again, so that its entries fill the queue."""
    monkeypatch.setattr(hybrid, "queue_capacity", lambda num_vertices: num_vertices)
    n = 40
    edges = [(0, v, v) for v in range(1, n)] + [(v, u, (u - v) * 100 - v) for u in range(2, n) for v in range(1, u)]
    edges += [(0, u, 10_000) for u in range(n, 2 * n)] + [
        (v, u, 9_000 - 100 * v) for v in range(1, n) for u in range(n, 2 * n)
    ]
    check(make_case("lowered", 2 * n, edges, np.int32), [0], **WASTEFUL)


@pytest.mark.parametrize(
    ("module", "kernel", "how"),
    [(near_kernels, "settle_near", {}), (hybrid, "settle_nearest", {"width": 1, **WASTEFUL})],
)
@pytest.mark.parametrize("pauses", [0, 3])
def test_call_that_was_abandoned_ends_within_the_serial_loop(monkeypatch, pauses, module, kernel, how):
    settle = getattr(module, kernel)
    left = list(range(pauses))

    def settle_until_stopped(*args):
        left.pop()
        monkeypatch.setattr(BACKEND, "stopped", None if left else "the user pressed Ctrl-C", raising=False)
        return settle(*args)

    monkeypatch.setattr(module, kernel, settle_until_stopped)
    if not pauses:
        monkeypatch.setattr(BACKEND, "stopped", "the user pressed Ctrl-C", raising=False)
    with pytest.raises(CommAborted, match="Ctrl-C"):
        search(ZOO["path"], [0], step_arcs=1, **how)
    assert not left
