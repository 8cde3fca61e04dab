"""The oracles agree with SciPy and with their definitions; the zoo with its drawings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given
from strategies import graphs_and_sources, orders
from tiers import examples
from zoo import CASES, ZOO, random_case, zoo_sources

ZOO_AND_RANDOM = [*CASES, *map(random_case, range(6))]


def scipy_distances(case, source, *, weighted):
    """Return float64 distances by SciPy: explicit zeros are edges in its sparse input."""
    arcs = oracles.arcs_of(case, weighted=weighted)
    rows, columns = np.array(list(arcs), np.int64).reshape(-1, 2).T
    values = np.array([float(w) for w in arcs.values()])
    matrix = scipy.sparse.csr_array((values, (rows, columns)), shape=(case.num_vertices,) * 2)
    return scipy.sparse.csgraph.dijkstra(matrix, indices=source)


@pytest.mark.parametrize("case", ZOO_AND_RANDOM, ids=lambda case: case.name)
def test_distances_equal_scipys_where_float64_is_exact_enough(case):
    for source in {source for sources in zoo_sources(case) for source in sources}:
        levels = oracles.bfs(case, [source])
        assert np.array_equal(np.where(levels < 0, np.inf, levels), scipy_distances(case, source, weighted=False))
        dist = oracles.sssp(case, [source])
        expected = scipy_distances(case, source, weighted=True)
        unreached = np.inf if dist.dtype.kind == "f" else -1
        assert np.array_equal(dist == unreached, np.isinf(expected))
        dist = np.where(dist == unreached, np.inf, dist.astype(np.float64))
        # SciPy sums in float64: float32 sums differ by their rounding, integers beyond 2^53 by SciPy's.
        exact = case.weights.dtype != np.float32 and case.name != "large-weights"
        np.testing.assert_allclose(dist, expected, rtol=0 if exact else 1e-5)


def test_float32_sums_are_rounded_at_every_step():
    dist = oracles.sssp(ZOO["absorbed"], [0])
    assert dist.dtype == np.float32
    assert dist.tolist() == [0, 2**24, 2**24, 2**24, 2**24], "float32 absorbs 0.5 at 2^24"
    exact = oracles.sssp(ZOO["absorbed"].with_weights(np.float64), [0])
    assert exact.tolist() == [0, 2**24, 2**24 + 0.5, 2**24, 2**24 + 0.75]


def test_kept_results_are_those_of_their_arguments_and_cannot_be_changed():
    case = ZOO["path"]
    oracles.bfs(case, [0])[:] = 9
    oracles.arcs_of(case).clear()
    assert oracles.bfs(case, [0]).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert oracles.bfs(case, [0], 2).tolist() == [0, 1, 2, -1, -1, -1, -1]
    assert oracles.bfs(case, [6]).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert oracles.bfs(replace(case, directed=True), [6]).tolist() == [-1] * 6 + [0]
    assert len(oracles.arcs_of(case)) == 12
    cycle = ZOO["cycle"]
    for position, middle in ((np.arange(6), 2), (np.arange(6)[::-1], 4)):
        assert oracles.predecessors(cycle, oracles.bfs(cycle, [0]), [0], position, weighted=False)[3] == middle


def test_large_integers_are_exact():
    assert oracles.sssp(ZOO["large-sums"], [1]).tolist() == [2**31 - 1, 0, 2**31 - 1, 2**31]
    assert oracles.sssp(ZOO["large-weights"], [0]).tolist() == [0, 2**40, 2**40 + 1, 2**40 + 1 + 2**53 + 1]


@pytest.mark.parametrize("case", ZOO_AND_RANDOM, ids=lambda case: case.name)
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_predecessors_explain_every_distance_and_end_at_the_nearest_source(case, order):
    position = oracles.positions(case, order)
    for sources in zoo_sources(case):
        for weighted in (False, True):
            dist = oracles.sssp(case, sources) if weighted else oracles.bfs(case, sources)
            chosen = oracles.predecessors(case, dist, sources, position, weighted=weighted)
            assert np.array_equal(chosen >= 0, (dist != -1) & (dist != np.inf))
            roots = oracles.nearest_sources(chosen)
            assert set(roots.tolist()) <= {*sources, -1}
            arcs = oracles.arcs_of(case, weighted=weighted)
            for v in np.flatnonzero(chosen >= 0).tolist():
                u = int(chosen[v])
                assert (v in sources) == (u == v)
                # In the dtype of the state: float32 + float32 stays float32.
                assert u == v or dist[u] + dist.dtype.type(arcs[u, v]) == dist[v]


@examples(100)
@given(graphs_and_sources(), orders)
def test_distance_to_several_sources_is_the_smallest_of_single_ones(drawn, order):
    case, sources = drawn
    for traverse in (oracles.bfs, oracles.sssp):
        far = np.array([traverse(case, [source]) for source in sources]).astype(np.float64)
        least = np.where(far < 0, np.inf, far).min(0)
        together = traverse(case, sources).astype(np.float64)
        assert np.array_equal(np.where(together < 0, np.inf, together), least)


@examples(100)
@given(graphs_and_sources(max_vertices=8))
def test_limits_only_drop_farther_vertices(drawn):
    case, sources = drawn
    for traverse in (oracles.bfs, oracles.sssp):
        whole = traverse(case, sources)
        unreached = np.inf if whole.dtype.kind == "f" else -1
        for limit in (0, 1, 2):
            assert np.array_equal(traverse(case, sources, limit), np.where(whole <= limit, whole, unreached))


def test_zero_weights_do_not_make_cycles():
    case = ZOO["zero-triangle"]
    dist = oracles.sssp(case, [2])
    chosen = oracles.predecessors(case, dist, [2], oracles.positions(case, "natural"), weighted=True)
    assert chosen.tolist() == [2, 2, 2], "both have a predecessor that is truly nearer"
    case = ZOO["zero-cycle"]
    chosen = oracles.predecessors(case, oracles.sssp(case, [4]), [4], np.arange(7), weighted=True)
    assert chosen.tolist() == [3, 0, 3, 4, 4, 1, 5], "1 is one hop after both 0 and 2: the first wins"
    chosen = oracles.predecessors(case, oracles.sssp(case, [4]), [4], np.arange(7)[::-1], weighted=True)
    assert chosen.tolist() == [3, 2, 3, 4, 4, 1, 5], "and 2 wins where it comes first"
    case = ZOO["absorbed"]
    chosen = oracles.predecessors(case, oracles.sssp(case, [0]), [0], np.arange(5), weighted=True)
    assert chosen.tolist() == [0, 0, 1, 0, 2], "2 is as near as 1 and 3 after rounding"


def test_degree_order_counts_parallel_edges_both_ends_and_no_loops():
    # Degrees: 0 three, 1 five (its loop does not count), 2 two (nor does its).
    assert oracles.positions(ZOO["parallel"], "degree").tolist() == [1, 0, 2]
    # Out plus in: 0 one, 1 three, 2 one, 3 three, 4 two, 5 none.
    assert oracles.positions(ZOO["unreachable-part"], "degree").tolist() == [3, 0, 4, 1, 2, 5]
    # 0, 3, 4 and 8 have no edge and come last; 1 and then 5, 6, 7 come first: 1, 6 and 7 have two edges.
    assert oracles.positions(ZOO["isolated"], "degree").tolist() == [5, 0, 3, 6, 7, 4, 1, 2, 8]


def test_paths_run_from_a_source():
    case = ZOO["long-chain"]
    chosen = oracles.predecessors(case, oracles.bfs(case, [0]), [0], np.arange(300), weighted=False)
    path = oracles.path_to(chosen, 150)
    assert (path[0], path[1], path[2], len(path)) == (0, 299, 1, 300)
    assert oracles.bfs(case, [0]).max() == 299, "more levels than 8 bits hold"
    assert oracles.path_to(np.array([-1, 1]), 0) == []


@pytest.mark.parametrize("case", ZOO_AND_RANDOM, ids=lambda case: case.name)
def test_ids_are_in_range_and_weights_not_negative(case):
    assert len(case.sources) == len(case.targets) == len(case.weights)
    ends = np.concatenate([case.sources, case.targets])
    assert ends.size == 0 or ends.max() < case.num_vertices
    assert (case.weights >= 0).all()


def test_random_cases_are_reproducible_and_varied():
    family = [random_case(seed) for seed in range(12)]
    again = random_case(3)
    assert np.array_equal(family[3].sources, again.sources)
    assert np.array_equal(family[3].weights, again.weights)
    assert {case.directed for case in family} == {True, False}
    assert {case.weights.dtype.name for case in family} == {"float32", "float64", "int32", "int64", "uint8"}
    assert all(200 <= case.num_vertices <= 2000 for case in family)
