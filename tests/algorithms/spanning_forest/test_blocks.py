"""Forests over edge blocks: equal to the oracle's in the layouts compact and host, on any number of ranks."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from builds import CaseEdges, build_compact_on, shrink_passes
from emulator.backend import EmulatedBackend
from forest_checks import FORESTS, expected
from host_layout import RANKS_AND_SHARES, build_host_on, resident_share
from on_ranks import run_on_ranks
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest import blocks
from mgraph.algorithms.spanning_forest.blocks import msf_over_blocks
from mgraph.algorithms.variant import GraphSizes
from mgraph.api.graph import Graph
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat
from mgraph.ingest.build import build
from mgraph.shard.user_ids import edges_of_users

# The forest of integers may weigh more than 64 bits hold: the oracle has it as a sum of Python's.
CASES = [case for case in FORESTS if case.weights is not None and len(case.sources)]


@pytest.fixture(autouse=True)
def _few_are_listed(monkeypatch):
    """Let a small graph find its forest several times."""
    monkeypatch.setattr(blocks, "LISTED", 24)
    monkeypatch.setattr(blocks, "SAMPLES", 8)


def program(shard, comm, maximum):
    """Return the edges of a rank's range of user ids, and the supersteps."""
    trace = Trace(shard.backend, comm)
    _, columns = edges_of_users(shard, comm, msf_over_blocks(shard, comm, trace, maximum))
    return [shard.backend.to_host(column) for column in columns.values()], trace.supersteps


def check(case, shards, order, maximum):
    results = run_on_ranks(program, shards, maximum)
    found = [np.concatenate(column) for column in zip(*(columns for columns, _ in results), strict=True)]
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected(case, order, maximum)
    assert len({len(steps) for _, steps in results}) == 1
    return [steps for _, steps in results]


def shorten_memory(monkeypatch):
    """Let lists have room for no more edges than they must."""
    monkeypatch.setattr(
        blocks, "_capacity", lambda _, *partition, **is_wide: blocks._least_capacity(*partition, **is_wide)
    )


@pytest.mark.covering(every=6, ci=1)
@pytest.mark.parametrize("memory", ["ample", "short"])
@pytest.mark.parametrize(("num_ranks", "share"), RANKS_AND_SHARES)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forest_equals_the_oracle(case, order, num_ranks, share, memory, monkeypatch):
    if memory == "short":
        shorten_memory(monkeypatch)
    with pytest.MonkeyPatch.context() as patch:
        shrink_passes(patch)
        compact = build_compact_on(case, num_ranks, order)
    for maximum in (False, True):
        check(case, compact, order, maximum)
        for steps in check(case, build_host_on(case, num_ranks, share, order), order, maximum):
            assert steps[0]["skipped_parts"] == 0


@pytest.mark.parametrize("layout", ["compact", "host"])
def test_graph_without_edges_has_an_empty_forest(backend, layout):
    with resident_share(0.0):
        results = run_on_ranks(lambda _, comm: forest_of_build(backend, comm, ZOO["no-edges"], layout), [None] * 2)
    assert all(not len(column) for columns in results for column in columns)


def test_lists_of_tied_weights_of_64_bits_are_shortened_few_times(monkeypatch):
    """However many edges have one weight: a list has room for more than the forest that is kept of it."""
    case = random_case(0, 400, directed=False)
    heavy = replace(case, weights=np.ones(len(case.sources)))
    calls = []
    shortened = blocks._Forest._shortened
    monkeypatch.setattr(blocks, "LISTED", 8)
    monkeypatch.setattr(blocks._Forest, "_shortened", lambda forest: calls.append(1) or shortened(forest))
    check(heavy, build_compact_on(heavy, 1), "degree", False)
    num_positions = len(np.unique([case.sources, case.targets]))
    assert 1 <= len(calls) <= 8 * len(case.sources) / num_positions


@pytest.mark.parametrize("num_weights", [1, 2, 50])
@pytest.mark.parametrize("maximum", [False, True])
def test_short_list_leaves_what_does_not_fit_to_the_second_pass(maximum, num_weights, monkeypatch):
    """Where the sample of weights has been misleading, so that half of the list is given up again and again."""
    case = random_case(0, 400, directed=False)
    case = replace(case, weights=np.random.default_rng(1).integers(1, num_weights, len(case.sources), endpoint=True))
    bounds = []
    keep_lighter = blocks._keep_lighter

    def noted(*backend_and_list):
        high, length = keep_lighter(*backend_and_list)
        bounds.append(high)
        return high, length

    monkeypatch.setattr(blocks, "LISTED", 8)
    monkeypatch.setattr(blocks, "_light_bound", lambda *_: blocks.TOP - 1)
    monkeypatch.setattr(blocks, "_keep_lighter", noted)
    shorten_memory(monkeypatch)
    (steps,) = check(case, build_compact_on(case, 1), "degree", maximum)
    assert bounds == sorted(set(bounds), reverse=True)
    assert bounds
    assert len([step for step in steps if "listed" in step]) == 2


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_forest_takes_no_more_memory_than_planned(order, monkeypatch):
    monkeypatch.setattr(blocks, "LISTED", 1 << 16)
    shorten_memory(monkeypatch)
    (comm,) = open_threads(1)
    # Helper threads would hold the arguments of the last kernel.
    shard = build(Rmat(18), CpuBackend(1), comm, order=order, layout="compact")
    program(shard, comm, False)  # compiles kernels
    tracemalloc.start()
    try:
        program(shard, comm, False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    info = shard.info
    weights = np.dtype(info.weight_dtype), info.max_weight
    sizes = GraphSizes(info.num_vertices, info.num_edges, info.directed, shard.partition, *weights)
    assert 0.6 * blocks._bytes(sizes) < most < blocks._bytes(sizes)


def forest_of_build(backend, comm, case, layout):
    return program(build(CaseEdges(case), backend, comm, order="degree", layout=layout), comm, False)[0]


def emulated_program(_, comm, case, layout):
    return forest_of_build(EmulatedBackend(seed=comm.rank, block=32, blocks=3), comm, case, layout)


@pytest.mark.ci
@pytest.mark.covering(every=2)
@pytest.mark.interleavings
@pytest.mark.parametrize("layout", ["compact", "host"])
def test_forest_on_the_emulator_equals_the_oracle(layout):
    for case in [case for case in CASES if case.name in ("grid", "many-ties", "wide")]:
        with resident_share(0.4):
            results = run_on_ranks(emulated_program, [None] * 2, case, layout)
        found = [np.concatenate(column) for column in zip(*results, strict=True)]
        assert list(zip(*(column.tolist() for column in found), strict=True)) == expected(case, "degree", False)


def test_public_function_runs_on_every_layout(clusters):
    case = next(case for case in CASES if case.name == "grid")
    for layout in ("rows", "compact", "host"):
        with (
            resident_share(0.4),
            Graph.from_source(CaseEdges(case), cluster=clusters[2], order="degree", layout=layout) as g,
        ):
            found = mg.minimum_spanning_forest(g)
            edges = zip(*(np.asarray(column).tolist() for column in found.columns), strict=True)
            assert list(edges) == expected(case, "degree", False)
            assert (found.stats.variant == "spanning_forest.blocks") == (layout != "rows")
            if layout == "host":
                assert min(found.stats.link_bytes) > 0
                with pytest.raises(mg.UsageError, match="minimum_spanning_forest with a checkpoint needs rows"):
                    mg.minimum_spanning_forest(g, checkpoint="state")
