"""BFS on one CPU rank: the oracle's levels and predecessors, wherever serial levels and those of all cores meet."""

from __future__ import annotations

import functools

import numpy as np
import oracles
import pytest
from hybrid_checks import check_failing_core
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards, predecessor_parts
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from zoo import CASES, ZOO, chain_of_cliques, make_case, random_case, zoo_sources

from mgraph.algorithms.bfs import hybrid, hybrid_kernels
from mgraph.algorithms.common.traversal import Trace
from mgraph.backends import all_cores
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted

BACKEND = CpuBackend(2)
MANY_CORES = CpuBackend(5)
# All cores go on to the last arc, and share rows of more than three.
JOINT = {"NARROW_ARCS": 0, "HUB_ARCS": 3}
HOW = (
    {},
    {"STEP_ARCS": 1},
    {"NARROW_ARCS": 5, "GROWTH": 1},
    {"HUB_ARCS": 1},
    {"HUB_ARCS": 1 << 20},
    {"MAX_JOINT_CORES": 3},
)


def search(case, sources, order="degree", max_arcs=None, few_cores=2, how=None, slow_s=1e9, **options):
    """Run the variant with its thresholds replaced; return the shard, the result and its supersteps.

    With `few_cores` below 2, wide frontiers are pushed by all of five cores.
    """
    backend = BACKEND if few_cores >= 2 else MANY_CORES
    shards = build_shards(case, 1, order, backend)
    positions = oracles.positions(case, order)
    num_positions = shards[0].partition.num_positions
    starts = [p for p in positions[sources].tolist() if p < num_positions]
    options = {name: value for name, value in options.items() if value is not None}
    if "until" in options:
        options["until"] = [p for p in positions[options["until"]].tolist() if p < num_positions]

    def program(shard, comm):
        trace = Trace(backend, comm)
        return hybrid.bfs_hybrid(shard, comm, starts, trace, **options), trace.supersteps

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "MAX_ARCS", hybrid.MAX_ARCS if max_arcs is None else max_arcs)
        patch.setattr(hybrid, "MAX_SERIAL_CORES", few_cores)
        patch.setattr(all_cores, "SLOW_BARRIER_S", slow_s)
        patch.setattr(all_cores, "VALID_S", 0.0)
        for name, value in (JOINT | (how or {})).items():
            patch.setattr(hybrid, name, value)
        ((found, steps),) = run_on_ranks(program, shards)
    return shards, found, steps


def check(case, sources, order="degree", depth_limit=None, **thresholds):
    """Compare levels, predecessors and counts with the oracle's; return the supersteps."""
    shards, found, steps = search(case, sources, order, depth_limit=depth_limit, **thresholds)
    levels = oracles.bfs(case, sources, depth_limit)
    np.testing.assert_array_equal(of_users(shards, sources, [found.distances]), levels)
    chosen = oracles.predecessors(case, levels, sources, oracles.positions(case, order), weighted=False)
    np.testing.assert_array_equal(found.predecessors, predecessor_parts(shards, chosen)[0])
    reached = found.distances != np.iinfo(np.int32).max
    assert found.num_reached == reached.sum()
    assert found.reached_arcs == shards[0].degrees[reached].sum()
    return steps


@pytest.mark.covering(every=3, ci=2)
@pytest.mark.parametrize("max_arcs", [None, 0, 3, 20])
@pytest.mark.parametrize("few_cores", [1, 2])
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 300) for seed in range(6))], ids=lambda case: case.name)
def test_levels_and_predecessors_equal_the_oracles(case, order, few_cores, max_arcs):
    for sources in zoo_sources(case):
        check(case, sources, order, max_arcs=max_arcs, few_cores=few_cores)


@examples(200)
@given(graphs_and_sources(), orders, st.sampled_from([None, 0, 2, 7]), st.sampled_from([1, 2]), st.sampled_from(HOW))
def test_results_of_drawn_graphs_equal_the_oracles(drawn, order, max_arcs, few_cores, how):
    check(*drawn, order, max_arcs=max_arcs, few_cores=few_cores, how=how)


@pytest.mark.parametrize("limit", [None, 2, 20, 21, 22])
@pytest.mark.parametrize("chord", [None, (0, 39), (3, 25), (20, 22), (0, 20)])
def test_runs_of_consecutive_vertices_end_where_their_rows_or_the_limit_say(chord, limit):
    # A path 0, 1, ... 39, which other paths and a chord interrupt; from its ends, its middle and two sides.
    edges = [(v, v + 1) for v in range(39)] + [(30, 40), (40, 41), (41, 29)]
    case = make_case("runs", 42, edges + ([chord] if chord else []))
    for sources in ([0], [39], [20], [0, 39], [5, 6]):
        check(case, sources, "natural", depth_limit=limit)


@pytest.mark.parametrize("limit", [None, 7, 19, 20])
@pytest.mark.parametrize("size", [3, 4, 39, 40])
def test_two_runs_around_a_cycle_meet(size, limit):
    case = make_case("cycle", size, [(v, (v + 1) % size) for v in range(size)])
    for source in (0, 1, size // 2, size - 1):
        check(case, [source], "natural", depth_limit=limit)
    # One of two runs ends first, or passes a vertex with another edge.
    for end in ((size - 2, size), (size // 3, size)):
        check(make_case("tail", size + 1, [(v, v + 1) for v in range(size - 1)] + [end]), [size // 2], "natural")


@pytest.mark.parametrize("depth", [7, 8])
def test_what_is_left_before_a_wide_level_is_found_in_its_own_rows(depth):
    num = 2**depth
    tree = [((v - 1) // 2, v) for v in range(1, num)]
    # Of two neighbors in the last level but one, or in the one before, the first of the nearer level is the parent.
    for rest in ([], [(num // 2 + 5, num - 1)], [(num // 4 + 1, num - 1), (num // 2 + 9, num), (num // 2 + 3, num)]):
        case = make_case("tree", num + 1, tree + rest)
        steps = check(case, [0], "natural")
        if rest:
            check(case, [0], "natural", depth_limit=depth)
            check(case, [0], "degree")
    assert sum(step["arcs"] for step in steps) < 2 * len(tree), "the leaves' arcs are not scanned"


@pytest.mark.parametrize("seed", range(6))
def test_push_without_branches_finds_what_a_push_with_branches_finds(seed):
    case = random_case(seed, 400)
    (shard,) = build_shards(case, 1, "natural", BACKEND)
    n = shard.num_owned
    # Some reached before, some in this level already, and all others for the queue to be full at the end.
    frontier = np.random.default_rng(seed).permutation(n)[: n // 3].astype(np.uint32)
    found = []
    for push in (hybrid_kernels.push, hybrid_kernels.push_irregular):
        words = np.full(n, hybrid_kernels.UNREACHED)
        words[frontier] = 1 << 32
        words[::7] = np.minimum(words[::7], 2 << 32 | n // 2)
        queue = np.zeros(n + 1, np.uint32)
        queue[: len(frontier)] = frontier
        begin, end, scanned = push(2, 0, len(frontier), shard.rows.indptr, shard.rows.targets, queue, words)
        found.append((begin, end, scanned, queue[:end].tolist(), words.tolist()))
    assert found[0] == found[1]
    assert found[0][2] == shard.degrees[frontier].sum()


def test_rows_are_irregular_where_they_are_short_and_of_many_lengths():
    for lengths, expected in [([2, 3] * 20, True), ([3] * 40, False), ([9, 30] * 20, False), ([1] * 30 + [5], False)]:
        indptr = np.r_[0, np.cumsum(lengths)]
        queue = np.arange(len(lengths), dtype=np.uint32)
        assert hybrid_kernels.has_irregular_rows(0, len(lengths), indptr, queue) == expected


def test_hub_at_the_end_of_a_path_is_no_level_of_few_arcs():
    case = make_case("hub", 300, [(v, v + 1) for v in range(100)] + [(100, v) for v in range(101, 300)])
    for order in ("natural", "degree"):
        serial, *_ = check(case, [0], order, max_arcs=64, few_cores=1)
        assert serial["levels"] == 100


@pytest.mark.parametrize("limit", [0, 1, 3, 299])
@pytest.mark.parametrize(("max_arcs", "few_cores"), [(None, 2), (3, 2), (3, 1)])
def test_vertices_deeper_than_the_limit_are_unreached(limit, max_arcs, few_cores):
    for name in ("grid", "long-chain", "unreachable-part", "star"):
        check(ZOO[name], [0], depth_limit=limit, max_arcs=max_arcs, few_cores=few_cores)


@pytest.mark.parametrize(("max_arcs", "few_cores"), [(None, 2), (3, 2), (1, 1)])
@pytest.mark.parametrize(("name", "near", "far"), [("long-chain", 5, 20), ("grid", 2, 4)])
def test_search_ends_at_the_level_of_the_last_target(name, near, far, max_arcs, few_cores):
    case = ZOO[name]
    levels = oracles.bfs(case, [0])
    ends = np.flatnonzero((levels == near) | (levels == far)).tolist()
    shards, found, _ = search(case, [0], max_arcs=max_arcs, few_cores=few_cores, until=ends)
    wanted = np.where(levels <= far, levels, -1)
    np.testing.assert_array_equal(of_users(shards, [0], [found.distances]), wanted)


def test_serial_levels_are_one_record_and_wide_ones_their_own():
    (step,) = check(ZOO["long-chain"], [0])
    assert (step["method"], step["levels"], step["frontier"]) == ("serial", 299, 1)
    steps = check(chain_of_cliques(), [0], max_arcs=50, few_cores=1)
    methods = [step["method"] for step in steps]
    assert {"serial", "joint"} <= set(methods)
    assert methods.count("serial") > 1, "a search that was wide is narrow again"
    assert sum(step["levels"] for step in steps) == oracles.bfs(chain_of_cliques(), [0]).max()


def test_call_that_was_abandoned_ends_before_the_serial_loop(monkeypatch):
    monkeypatch.setattr(BACKEND, "stopped", "the user pressed Ctrl-C", raising=False)
    with pytest.raises(CommAborted, match="Ctrl-C"):
        search(ZOO["path"], [0])


def test_one_core_pushes_from_and_to_consecutive_vertices():
    tree = make_case("tree", 511, [((v - 1) // 2, v) for v in range(1, 511)])
    (step,) = check(tree, [0], "natural", max_arcs=20, few_cores=1)
    assert step["method"] == "serial"
    for order in ("natural", "degree"):
        (step,) = check(ZOO["star"], [0], order, max_arcs=2, few_cores=1)
        assert step["method"] == "serial"
    first, *rest = check(tree, [0, 2], "natural", max_arcs=20, few_cores=1)
    assert (first["method"], rest[0]["method"]) == ("serial", "joint")


def test_frontier_is_wide_from_more_arcs_on_where_all_cores_have_pushed_few():
    case = chain_of_cliques()
    narrow_again = {"NARROW_ARCS": 50}
    often = check(case, [0], max_arcs=50, few_cores=1, how=narrow_again | {"GROWTH": 1})
    once = check(case, [0], max_arcs=50, few_cores=1, how=narrow_again | {"GROWTH": 1 << 30})
    enough = check(case, [0], max_arcs=50, few_cores=1, how=narrow_again | {"GROWTH": 1 << 30, "MIN_JOINT_ARCS": 0})
    joint = [[step["method"] for step in steps].count("joint") for steps in (often, once, enough)]
    assert joint[0] == joint[2] > joint[1] == 1


def test_one_core_pushes_all_where_barriers_are_slow(monkeypatch):
    monkeypatch.setattr(all_cores, "barrier_s", lambda backend, num_cores: 1.0)
    methods = {step["method"] for step in check(chain_of_cliques(), [0], max_arcs=50, few_cores=1, slow_s=1e-9)}
    assert methods == {"serial"}


@pytest.mark.parametrize("slow_s", [1e9, 0.0])
def test_arcs_that_all_cores_push_are_limited_beside_a_gpu(monkeypatch, slow_s):
    case = chain_of_cliques()
    arcs = sum(step["arcs"] for step in check(case, [0], max_arcs=50, few_cores=1))
    pushed = []
    push = hybrid._Search.push
    monkeypatch.setattr(hybrid._Search, "push", lambda *args: pushed.append(push(*args)) or pushed[-1])
    for limit in (60, arcs // 2, arcs):
        monkeypatch.setattr(hybrid, "max_wide_arcs", lambda shard, algorithm: limit)  # noqa: B023
        pushed.clear()
        _, found, _ = search(case, [0], max_arcs=50, few_cores=1, slow_s=slow_s)
        assert (found is None) == (limit < arcs)
        assert sum(pushed) <= limit
        assert pushed or limit == 60, "the first wide level has more arcs"


def test_call_that_was_abandoned_ends_between_the_loops_of_all_cores(monkeypatch):
    push = hybrid.joint_kernels.push_jointly

    def push_and_stop(*args):
        MANY_CORES.stopped = "the user pressed Ctrl-C"
        return push(*args)

    monkeypatch.setattr(hybrid.joint_kernels, "push_jointly", push_and_stop)
    try:
        with pytest.raises(CommAborted, match="Ctrl-C"):
            search(chain_of_cliques(), [0], max_arcs=50, few_cores=1, how={"STEP_ARCS": 1})
    finally:
        MANY_CORES.stopped = None


@pytest.mark.parametrize("failing", [0, 1])
def test_no_core_waits_for_one_that_has_failed(failing):
    find = functools.partial(check, chain_of_cliques(), [0], max_arcs=50, few_cores=1)
    check_failing_core(hybrid.joint_kernels, "push_jointly", failing, find)
