"""Shortest paths of sparse graphs by all cores of a CPU rank at once, in one loop."""

from __future__ import annotations

import functools

import numpy as np
import oracles
import pytest
from hybrid_checks import check_failing_core, check_found
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders
from tiers import examples
from zoo import CASES, ZOO, GraphCase, chain_of_cliques, random_case, zoo_sources

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.predecessors.rows import find_predecessors
from mgraph.algorithms.sssp import hybrid, hybrid_joint
from mgraph.backends import all_cores
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted

BACKENDS = {threads: CpuBackend(threads) for threads in (2, 5)}
# All cores begin with the second vertex that waits, and go on to the last.
JOINT = {"MIN_VERTICES": 0, "MAX_SERIAL": 1, "FEW": 1, "SLOW_BARRIER_S": 1e9}
MODULES = {"MAX_WASTED": hybrid, "SLOW_BARRIER_S": all_cores}
HOW = (
    {},
    {"STEP_ARCS": 1},
    {"MAX_SERIAL": 4, "FEW": 4, "GROWTH": 1},
    {"WIDER": 1 << 20},
    # One core finds its buckets wasteful, before or after all cores have searched.
    {"MAX_WASTED": -(1 << 40)},
    {"MAX_SERIAL": 8, "FEW": 8, "MAX_WASTED": -200},
    # Lists that are full soon: one core takes over.
    {"LISTED_SHARE": 1 << 20, "MIN_LISTED": 2},
)


def search(case, sources, order="degree", cutoff=None, threads=2, **how):
    """Run the variant with its thresholds replaced; return the shards, the result and its methods."""
    backend = BACKENDS[threads]
    shards = build_shards(case, 1, order, backend)
    num_positions = shards[0].partition.num_positions
    starts = [p for p in oracles.positions(case, order)[list(sources)].tolist() if p < num_positions]

    def program(shard, comm):
        trace = Trace(backend, comm)
        found = hybrid.sssp_hybrid(shard, comm, starts, trace, np.dtype(np.uint32), cutoff)
        if found.predecessors is None:
            found.predecessors = find_predecessors(shard, comm, starts, found.distances)
        return found, [step["method"] for step in trace.supersteps]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (JOINT | how).items():
            patch.setattr(MODULES.get(name, hybrid_joint), name, value)
        ((found, methods),) = run_on_ranks(program, shards)
    return shards, found, methods


def check(case, sources, order="degree", cutoff=None, **how):
    """Compare distances, predecessors and counts with the oracle's; return the methods."""
    shards, found, methods = search(case, sources, order, cutoff, **how)
    check_found(case, sources, order, cutoff, shards, found)
    return methods


def in_words(case: GraphCase) -> GraphCase:
    """Return the graph with weights of which the distances fit 32 bits, the least of them 1."""
    weights = np.random.default_rng(3).integers(1, 200, len(case.sources)).astype(np.uint8)
    return GraphCase(case.name, case.num_vertices, case.sources, case.targets, weights, case.directed)


@pytest.mark.covering(every=6, ci=1)
@pytest.mark.parametrize("threads", list(BACKENDS))
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_distances_and_predecessors_equal_the_oracles(case, order, how, threads):
    case = in_words(case)
    for sources in zoo_sources(case):
        check(case, sources, order, threads=threads, **how)


@examples(100)
@given(graphs_and_sources(), orders, st.sampled_from(HOW), st.sampled_from(list(BACKENDS)))
def test_results_of_drawn_graphs_equal_the_oracles(drawn, order, how, threads):
    case, sources = drawn
    check(in_words(case), sources, order, threads=threads, **how)


def grid() -> GraphCase:
    """Return a grid of 100 x 100 with weights 1 .. 255."""
    at = np.arange(10_000, dtype=np.uint32).reshape(100, 100)
    ends = np.r_[at[:, :-1].ravel(), at[:-1].ravel()], np.r_[at[:, 1:].ravel(), at[1:].ravel()]
    weights = np.random.default_rng(1).integers(1, 256, len(ends[0])).astype(np.uint8)
    return GraphCase("grid", at.size, *ends, weights, False)


def test_all_cores_search_a_grid_from_where_many_vertices_wait():
    for threads in BACKENDS:
        methods = check(grid(), [17], threads=threads, MAX_SERIAL=40, FEW=10)
        assert methods[:2] == ["serial", "joint"]
        # One core goes on with vertices that wait, where the lists of all are full.
        methods = check(grid(), [17], threads=threads, MAX_SERIAL=40, LISTED_SHARE=1 << 20, MIN_LISTED=2)
        assert methods == ["serial", "joint", "serial"]
        assert check(grid(), [17], threads=threads, MAX_SERIAL=1 << 20) == ["serial"]
        assert "joint" not in check(grid(), [17], threads=threads, MAX_SERIAL=40, SLOW_BARRIER_S=0)
    assert check(chain_of_cliques(), [0], MAX_SERIAL=1 << 20) == ["serial"]


def test_one_core_goes_on_from_a_bucket_that_relaxes_vertices_again_and_again(monkeypatch):
    settle = hybrid_joint.JointSearch._settle
    reasons = []
    monkeypatch.setattr(hybrid_joint.JointSearch, "_settle", lambda *args: reasons.append(settle(*args)) or reasons[-1])
    rng = np.random.default_rng(5)
    sources = rng.integers(0, 8000, 16_000)
    targets = np.minimum(sources + rng.integers(1, 30, 16_000), 7999)
    weights = rng.integers(1, 1 << 20, 16_000).astype(np.uint32)
    case = GraphCase("band", 8000, sources.astype(np.uint32), targets.astype(np.uint32), weights, False)
    roomy = {"LISTED_SHARE": 1, "MIN_LISTED": 1 << 18}
    assert check(case, [4000], WIDER=1 << 20, STEP_ARCS=10_000, **roomy)[-1] == "serial"
    assert reasons[-1] == hybrid_joint.kernels.WASTEFUL


def test_vertices_beyond_the_cutoff_are_unreached():
    case = in_words(ZOO["grid"])
    farthest = int(oracles.sssp(case, [0]).max())
    for cutoff in (0, farthest // 2, farthest):
        check(case, [0], cutoff=cutoff)


def test_arcs_of_weight_zero_are_left_to_one_core():
    assert "joint" in check(grid(), [0])
    case = grid()
    case.weights[3] = 0
    assert "joint" not in check(case, [0])


def test_call_that_was_abandoned_ends_within_the_loop_of_all_cores(monkeypatch):
    settle = hybrid_joint.kernels.settle_jointly

    def settle_and_stop(*args):
        monkeypatch.setattr(BACKENDS[2], "stopped", "the user pressed Ctrl-C", raising=False)
        return settle(*args)

    monkeypatch.setattr(hybrid_joint.kernels, "settle_jointly", settle_and_stop)
    with pytest.raises(CommAborted, match="Ctrl-C"):
        search(grid(), [0], STEP_ARCS=1)


@pytest.mark.parametrize("failing", [0, 1])
def test_no_core_waits_for_one_that_has_failed(failing):
    check_failing_core(hybrid_joint.kernels, "settle_jointly", failing, functools.partial(check, grid(), [0]))
