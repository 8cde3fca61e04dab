"""Components over edge blocks: labels equal the oracle's, in the layouts compact and host, on any number of ranks."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from builds import CaseEdges, build_compact_on, shrink_passes
from component_checks import violations_of_labels
from emulator.backend import EmulatedBackend
from host_layout import RANKS_AND_SHARES, build_host_on, resident_share
from naive_shard import build_shards
from on_ranks import run_on_ranks
from user_graphs import GRAPHS
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.blocks import link_blocks
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.api.graph import Graph
from mgraph.ingest.build import build
from mgraph.validation.components import validate_labels


def program(shard, comm):
    """Return the labels of a rank's user ids, the violations of the rules, and the supersteps."""
    trace = Trace(shard.backend, comm)
    labels = labels_of_users(shard, comm, link_blocks(shard, comm, trace))
    return shard.backend.to_host(labels), validate_labels(shard, comm, labels), trace.supersteps


def check(case, shards):
    results = run_on_ranks(program, shards)
    np.testing.assert_array_equal(np.concatenate([labels for labels, _, _ in results]), oracles.components(case))
    assert [wrong for _, wrong, _ in results] == [[]] * len(shards)
    return [steps for _, _, steps in results]


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize(("num_ranks", "share"), RANKS_AND_SHARES)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_labels_equal_the_oracle(case, order, num_ranks, share):
    with pytest.MonkeyPatch.context() as patch:
        shrink_passes(patch)
        check(case, build_compact_on(case, num_ranks, order))
    for steps in check(case, build_host_on(case, num_ranks, share, order)):
        assert steps[0]["skipped_parts"] == 0


def emulated_program(_, comm, case, layout):
    backend = EmulatedBackend(seed=comm.rank, block=32, blocks=3)
    return program(build(CaseEdges(case), backend, comm, layout=layout), comm)[:2]


@pytest.mark.covering(every=2)
@pytest.mark.interleavings
@pytest.mark.parametrize("layout", ["compact", "host"])
def test_labels_on_the_emulator_equal_the_oracle(layout):
    for case in (random_case(0, num_vertices=120), ZOO["two-components"]):
        with resident_share(0.4):
            results = run_on_ranks(emulated_program, [None] * 2, case, layout)
        np.testing.assert_array_equal(np.concatenate([labels for labels, _ in results]), oracles.components(case))
        assert [wrong for _, wrong in results] == [[], []]


@pytest.mark.parametrize("seed", range(6))
def test_violations_equal_those_over_rows(seed):
    """Spoil right labels in a few places: the rules find the same over blocks."""
    case = random_case(seed, 200)
    random = np.random.default_rng(seed)
    labels = oracles.components(case).copy()
    for vertex in random.integers(0, case.num_vertices, seed):
        labels[vertex] = random.choice([-1, 0, vertex, case.num_vertices, labels[random.integers(case.num_vertices)]])
    found = [
        violations_of_labels(validate_labels, shards, labels)
        for shards in (build_shards(case, 3), build_compact_on(case, 3), build_host_on(case, 3, 0.4))
    ]
    assert found[0] == found[1] == found[2]
    assert bool(found[0]) == (labels != oracles.components(case)).any()


def test_public_function_runs_on_every_layout(clusters):
    case = random_case(3, 200)
    for layout in ("rows", "compact", "host"):
        with resident_share(0.4), Graph.from_source(CaseEdges(case), cluster=clusters[2], layout=layout) as g:
            found = mg.connected_components(g)
            np.testing.assert_array_equal(np.asarray(found.labels), oracles.components(case))
            assert (found.stats.variant == "components.blocks") == (layout != "rows")
            mg.validate(found)
            if layout == "host":
                assert min(found.stats.link_bytes) > 0
                with pytest.raises(mg.UsageError, match="connected_components with a checkpoint needs rows"):
                    mg.connected_components(g, checkpoint="state")
