"""Persistent Boruvka: the edges equal those of the step variant to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS
from emulator.backend import EmulatedBackend
from forest_checks import FORESTS
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import run_on_ranks
from tiers import examples
from zoo import random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest import filter_boruvka as loop
from mgraph.algorithms.spanning_forest import local_edges as own_edges
from mgraph.algorithms.spanning_forest import persistent
from mgraph.algorithms.spanning_forest.boruvka import WorkList, boruvka, join_and_renumber
from mgraph.algorithms.spanning_forest.kernels import TOP, remove_cycles, take_edges
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.shard.user_ids import rows_of_arcs

pytestmark = pytest.mark.interleavings

HOST = CpuBackend(1)


def draw_list(seed, num_trees, num_edges, wide, dtype=np.uint32):
    """Draw a work list: edges between trees, many of equal weight, most of them at few trees."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, num_trees, (num_edges, 2)) // random.integers(1, 5, (num_edges, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    weights = random.integers(-3, 4, len(ends))
    edges = random.permutation(len(ends))
    keys = weights if wide else weights << 32 | edges
    return WorkList(ends.astype(dtype).ravel(), keys, edges if wide else None)


def copy_of(work, backend):
    """Copy a work list to a backend."""
    columns = (None if column is None else backend.to_device(column) for column in (work.ends, work.keys, work.edges))
    return WorkList(*columns)


def as_parts(labels):
    """Return for each tree the first one with its label; labels themselves may differ."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


def check_list(work, num_trees, backend):
    """Compare one launch with the rounds of the step variant."""
    taken, tree_of, left = boruvka(HOST, work, num_trees)
    got = persistent.boruvka_persistent(backend, copy_of(work, backend), num_trees)
    np.testing.assert_array_equal(np.sort(backend.to_host(got[0])), np.sort(taken))
    labels = backend.to_host(got[1])
    assert set(labels.tolist()) == set(range(left))
    assert got[2] == left
    np.testing.assert_array_equal(as_parts(labels), as_parts(tree_of))
    last = persistent.boruvka_persistent(backend, copy_of(work, backend), num_trees, last=True)
    assert (last[1], last[2]) == (None, left)
    np.testing.assert_array_equal(np.sort(backend.to_host(last[0])), np.sort(taken))


@examples(40)
@given(
    st.integers(0, 2**32), st.integers(2, 400), st.integers(1, 1500), st.booleans(), st.sampled_from(["u4", "i8"]),
    st.sampled_from([(32, 1), (32, 7), (64, 3), (128, 2)]),
)  # fmt: skip
def test_work_lists_give_the_edges_of_the_step_variant(seed, num_trees, num_edges, wide, dtype, grid):
    work = draw_list(seed, num_trees, num_edges, wide, np.dtype(dtype))
    if len(work):
        check_list(work, num_trees, EmulatedBackend(seed=seed, block=grid[0], blocks=grid[1]))


@pytest.mark.parametrize("wide", [False, True], ids=["packed", "wide"])
def test_one_round_joins_a_path_as_long_as_the_work_list(wide):
    """The lightest edge of every tree leads to the next one, so one round joins all."""
    n = 500
    ends = np.repeat(np.arange(n), 2)[1:-1].astype(np.uint32)
    keys = np.arange(n - 1)[::-1].copy()
    names = np.arange(n - 1)
    work = WorkList(ends, keys if wide else keys << 32 | names, names if wide else None)
    for seed in range(3):
        check_list(work, n, EmulatedBackend(seed=seed, block=64, blocks=3))


@pytest.mark.parametrize("seed", range(6))
def test_lightest_edges_of_vertices_equal_the_step_variant(seed):
    random = np.random.default_rng(seed)
    n = [1, 2, 31, 64, 700, 3000][seed]
    # Every vertex is a child of the target of its lightest arc; the two arcs of a cycle are one edge.
    parent = random.integers(0, np.maximum(np.arange(n), 1))
    names = random.permutation(n)
    above = np.empty(n, np.uint32)
    above[names] = names[parent]
    arcs = np.where(above == np.arange(n), TOP, np.arange(n) + 10)
    for root in np.flatnonzero((above == np.arange(n)) & (random.random(n) < 0.8)):
        below = np.flatnonzero((above == root) & (np.arange(n) != root))
        if len(below):
            above[root], arcs[root] = below[0], 5 + n + root
    backend = EmulatedBackend(seed=seed, block=64, blocks=3)
    taken, labels, num_trees = persistent.join_vertices_persistent(backend, above.copy(), arcs)
    expected = above.copy()
    remove_cycles[HOST](0, n, expected)
    joined, _ = join_and_renumber(HOST, expected)
    stepped = np.empty(n, np.int64)
    take_edges[HOST](0, n, expected, arcs, joined.numbers, 0, -1, stepped)
    np.testing.assert_array_equal(np.sort(taken), np.sort(stepped[: n - joined.num_trees]))
    assert num_trees == joined.num_trees == len(set(labels.tolist()))
    np.testing.assert_array_equal(as_parts(labels), as_parts(joined.labels))


def forest_edges(case, backend, order="degree", maximum=False, num_ranks=1):
    """Return the positions of the ends of the forest's edges, sorted."""

    def program(shard, comm):
        arcs = loop.msf(shard, comm, Trace(backend, comm), maximum, is_persistent=backend is not HOST)
        rows = rows_of_arcs(shard, arcs)
        states = backend.to_host(rows) + comm.rank * shard.partition.stride, backend.to_host(shard.rows.targets[arcs])
        ends = np.stack([shard.partition.position(side.astype(np.int64)) for side in states])
        return list(zip(*np.sort(ends, axis=0).tolist(), strict=True))

    found = run_on_ranks(program, build_shards(case, num_ranks, order, backend))
    return sorted(edge for of_rank in found for edge in of_rank)


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", [c for c in FORESTS if 0 < c.num_vertices <= 700], ids=lambda case: case.name)
def test_forests_equal_the_step_variant(case, monkeypatch):
    for order, maximum in ("degree", False), ("natural", True):
        wanted = forest_edges(case, HOST, order, maximum)
        np.testing.assert_array_equal(forest_edges(case, EmulatedBackend(seed=3), order, maximum), wanted)
        monkeypatch.setattr(loop, "LIGHT", 1)
        monkeypatch.setattr(loop, "SHARE", 10**6)
        np.testing.assert_array_equal(forest_edges(case, EmulatedBackend(seed=4), order, maximum), wanted)
        monkeypatch.undo()


@pytest.mark.parametrize("key_bits", [own_edges.KEY_BITS, {}], ids=["packed", "wide"])
def test_forests_of_two_ranks_equal_the_step_variant(key_bits, monkeypatch):
    monkeypatch.setattr(own_edges, "KEY_BITS", key_bits)
    for case in (random_case(1, directed=False), random_case(5, directed=False)):
        wanted = forest_edges(case, HOST)
        assert forest_edges(case, EmulatedBackend(seed=5), num_ranks=2) == wanted


def test_aborted_launch_raises(monkeypatch):
    # As if every block had seen the abort word: nothing is written.
    backend = EmulatedBackend()
    case = random_case(1, directed=False)
    for name in ("join_vertices", "join_trees"):
        monkeypatch.setattr(persistent, name, {backend: lambda *args: None})
        with pytest.raises(CommAborted):
            forest_edges(case, backend)
        monkeypatch.undo()
    np.testing.assert_array_equal(forest_edges(case, backend), forest_edges(case, HOST))


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["int", "float64"])
@pytest.mark.parametrize("spec", ["rmat:16", "rmat:19", "uniform:2^18:16", "grid:700x300", "ssca2:16"])
def test_larger_graphs_on_a_gpu(spec, weights):
    backend = BACKENDS["cuda"].make()

    def both(_, comm):
        shard = build(parse_spec(f"{spec},weights={weights}"), backend, comm, order="auto")
        traces = Trace(backend, comm), Trace(backend, comm)
        one_launch = backend.xp.sort(loop.msf(shard, comm, traces[0], is_persistent=True))
        stepped = backend.xp.sort(loop.msf(shard, comm, traces[1]))
        assert bool((one_launch == stepped).all())

    run_on_ranks(both, [None])
