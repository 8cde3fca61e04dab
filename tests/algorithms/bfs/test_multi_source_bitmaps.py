"""Multi-source BFS of 256 roots on one GPU, in the emulator: the levels of each root equal those of its own search."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards, positions_of
from on_ranks import run_on_ranks
from strategies import graphs, orders
from sweep_checks import of_users
from tiers import examples
from zoo import CASES, GraphCase, make_case, random_case

from mgraph.algorithms.bfs.level_counts import count_levels_by_bitmaps
from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS
from mgraph.algorithms.bfs.multi_source_bitmaps import bfs_bitmaps
from mgraph.algorithms.bfs.multi_source_bitmaps_kernels import BLOCK_ROW
from mgraph.algorithms.common.traversal import Trace

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes


def check(case: GraphCase, roots: list[int], order: str = "degree", limit: int | None = None, seed: int = 5):
    """Compare the levels and counts of every root with the oracle's; return the supersteps."""
    shards = build_shards(case, 1, order, EmulatedBackend(seed=seed, block=64, blocks=2))
    positions = positions_of(shards)[roots].tolist() if roots else []
    with_arcs = [p if p < shards[0].partition.num_positions else None for p in positions]

    def program(shard, comm):
        trace = Trace(shard.backend, comm)
        found = bfs_bitmaps(shard, comm, with_arcs, trace, limit)
        levels = [shard.backend.to_host(found.levels(shard, root)) for root in range(len(roots))]
        chosen = shard.backend.to_device(np.arange(shard.num_owned)[::-2].copy())
        some = found.of_vertices(chosen).levels(shard, len(roots) - 1) if roots else None
        counts = count_levels_by_bitmaps(shard, comm, with_arcs, Trace(shard.backend, comm))
        return levels, some, trace.supersteps, counts

    ((levels, some, steps, counts),) = run_on_ranks(program, shards)
    for root, own in enumerate(levels):
        np.testing.assert_array_equal(of_users(shards, [roots[root]], [own]), oracles.bfs(case, [roots[root]], limit))
        whole = oracles.bfs(case, [roots[root]])
        wanted = np.bincount(whole[whole >= 0], minlength=len(counts)) if with_arcs[root] is not None else 0
        np.testing.assert_array_equal(counts[:, root], wanted)
    if roots:
        np.testing.assert_array_equal(some, levels[-1][::-2])
    return steps


def some_roots(case: GraphCase, count: int) -> list[int]:
    """Return random vertices of a case, some of them repeated."""
    return np.random.default_rng(7).integers(0, case.num_vertices, count).tolist() if case.num_vertices else []


@pytest.mark.covering(every=3, ci_every=2)
@pytest.mark.parametrize("case", [*CASES, random_case(3, 150)], ids=lambda case: case.name)
def test_levels_and_counts_equal_the_oracle(case):
    check(case, some_roots(case, 9))


@examples(8)
@given(graphs(), st.sampled_from([1, 64, 65, BATCH_ROOTS]), orders, st.none() | st.integers(0, 3), st.integers(0, 99))
def test_levels_of_drawn_graphs_equal_the_oracle(case, count, order, limit, seed):
    check(case, some_roots(case, count), order, limit, seed)


def test_roots_of_small_components_do_not_keep_rows_open():
    """Two roots are in a component of their own: once theirs are searched, no vertex waits for them."""
    n = 40
    clique = [(u, v) for u in range(n) for v in range(u)]
    tail = [(v, v + 1) for v in range(n + 1, n + 6)]
    case = make_case("clique with a tail, and a pair", n + 9, [*clique, (0, n + 1), *tail, (n + 7, n + 8)])
    steps = check(case, [0, n + 7, n + 8, 5])
    # Else each pull scanned all arcs of the clique.
    assert len(steps) > 6
    assert max(step["arcs"] for step in steps[4:]) < n


def test_long_rows_are_gathered_by_blocks():
    star = make_case("star", BLOCK_ROW + 40, [(0, leaf) for leaf in range(1, BLOCK_ROW + 40)])
    steps = check(star, [0, 3, BLOCK_ROW + 7, BLOCK_ROW + 39])
    assert "pull" in [step["method"] for step in steps]


def test_search_of_many_arcs_pushes_small_fronts():
    n = 40
    clique = [(u, v) for u in range(n) for v in range(u)]
    case = make_case("clique with a tail", n + 30, [*clique, *[(v, v + 1) for v in range(n - 1, n + 29)]])
    steps = check(case, [n + 25])
    assert {"push", "pull"} == {step["method"] for step in steps}
