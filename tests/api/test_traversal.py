"""bfs and sssp as users call them: every graph, rank count, method and order against the oracles, to the bit."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from on_ranks import FEW_RANKS, RANKS
from tiers import by_tier
from traversal_checks import check_traversal
from user_graphs import GRAPHS, METHODS, ORDERS, SEARCHES, graph_of
from variant_checks import wrap_run
from zoo import ZOO, make_case, random_case, zoo_sources

import mgraph as mg
from mgraph.api.traversal import state_dtype


@pytest.mark.covering(every=3)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_results_equal_the_oracle_for_all_ranks_methods_and_orders(case, clusters):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        cluster = clusters[num_ranks]
        # Hundreds of supersteps on seven ranks are slow and test no more than those on three.
        if case is ZOO["long-chain"] and num_ranks > 3:
            continue
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                assert g.info.order == order
                for sources in zoo_sources(case) if case.num_vertices else []:
                    for method in METHODS:
                        for search in SEARCHES.values():
                            with search(g, sources, method=method) as result:
                                check_traversal(result, case, sources, order)


def test_results_are_equal_to_the_bit_for_all_ranks_and_methods(clusters):
    # Without an oracle: equal bytes, also of floats that are rounded at every step.
    case = random_case(1)
    results = {}
    for num_ranks, cluster in clusters.items():
        with graph_of(case, cluster) as g:
            for name, search in SEARCHES.items():
                for method in METHODS:
                    columns = search(g, [3, 5], method=method)
                    distances, predecessors = map(np.asarray, columns)
                    found = distances.tobytes(), predecessors.tobytes(), columns.distances.digest()
                    assert results.setdefault(name, found) == found, (name, num_ranks, method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize(
    "case", [ZOO["grid"], ZOO["long-chain"], ZOO["dag"], random_case(2)], ids=lambda case: case.name
)
def test_depth_limit_equals_the_oracle(case, num_ranks, method, clusters):
    with graph_of(case, clusters[num_ranks]) as g:
        for limit in (0, 1, 3, 254, 255, 2**31, 2**80):
            check_traversal(mg.bfs(g, 0, depth_limit=limit, method=method), case, [0], g.info.order, limit)
        check_traversal(mg.bfs(g, [0, 1], depth_limit=np.int64(2), method=method), case, [0, 1], g.info.order, 2)


def round_down(limit, dtype):
    """Return a limit that the oracle does not round: the largest float of the state that is not above it."""
    if dtype.kind != "f" or dtype.type(limit).item() <= limit:
        return limit
    return np.nextafter(dtype.type(limit), dtype.type(0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize(
    "case", [ZOO["grid"], ZOO["many-ties"], ZOO["rounding"], ZOO["large-sums"], random_case(0), random_case(3)],
    ids=lambda case: case.name,
)  # fmt: skip
def test_cutoff_equals_the_oracle(case, num_ranks, method, clusters):
    farthest = int(np.max(oracles.sssp(case, [0]), where=oracles.sssp(case, [0]) != np.inf, initial=0))
    with graph_of(case, clusters[num_ranks]) as g:
        for limit in (0, 1, 2, 2.5, 0.6, farthest // 2, farthest / 2 + 0.25, farthest, float("inf"), 2**70):
            exact = round_down(limit, oracles.state_dtype(case))
            check_traversal(mg.sssp(g, 0, cutoff=limit, method=method), case, [0], g.info.order, exact)


def test_cutoff_is_never_rounded_up(clusters):
    # Neither 0.1 nor 0.7 is a float32: the nearest to 0.7 is below it, the nearest to 0.1 above.
    case = make_case("cut", 3, [(0, 1, 0.1), (0, 2, 0.7)])
    with graph_of(case, clusters[1]) as g:
        assert np.asarray(mg.sssp(g, 0, cutoff=0.1).distances).tolist() == [0, np.inf, np.inf]
        assert np.asarray(mg.sssp(g, 0, cutoff=float(np.float32(0.1))).distances)[1] == np.float32(0.1)
        for limit in (0.7, np.float64(0.7), 1e300, 10**400):
            assert np.isfinite(np.asarray(mg.sssp(g, 0, cutoff=limit).distances)).all()


@pytest.mark.parametrize("num_ranks", [1, 4])
def test_results_of_many_roots_equal_single_searches(num_ranks, clusters):
    case = random_case(3)
    roots = [4, 0, 17, 4]
    with graph_of(case, clusters[num_ranks]) as g:
        for search, search_many in ((mg.bfs, mg.bfs_many), (mg.sssp, mg.sssp_many)):
            many = search_many(g, roots)
            singles = [search(g, root) for root in roots]
            assert len(many) == 4
            np.testing.assert_array_equal(many.distances, np.stack([r.distances for r in singles]))
            np.testing.assert_array_equal(many.predecessors, np.stack([r.predecessors for r in singles]))
            assert [r.sources for r in many] == [(4,), (0,), (17,), (4,)]
            assert many[-1].stats.num_reached == singles[0].stats.num_reached
        limited = mg.bfs_many(g, roots, depth_limit=1, return_predecessors=False)
        np.testing.assert_array_equal(limited[1].distances, oracles.bfs(case, [0], 1))
        assert limited[1].predecessors is None


@pytest.mark.parametrize("num_ranks", [1, 4])
@pytest.mark.parametrize("name", ["zero-cycle", "absorbed", "unreachable-part", "isolated", "two-components"])
def test_path_to_follows_the_predecessors(name, num_ranks, clusters):
    case = ZOO[name]
    with graph_of(case, clusters[num_ranks]) as g:
        for search in SEARCHES.values():
            result = search(g, [0, 2])
            chosen = np.asarray(result.predecessors)
            for target in range(case.num_vertices):
                assert result.path_to(target) == oracles.path_to(chosen, target)


@pytest.mark.parametrize(
    ("dtype", "largest", "state", "result"),
    [
        ("uint8", 200, "uint32", "int64"),
        ("uint16", 2**16 - 1, "uint32", "int64"),
        ("int32", 2**31 - 1, "int64", "int64"),
        ("uint32", 2**32 - 1, "int64", "int64"),
        ("int64", 2**60, "int64", "int64"),
        ("float32", 1.5, "float32", "float32"),
        ("float64", 1.5, "float64", "float64"),
    ],
)
def test_distance_dtypes_follow_the_weights(dtype, largest, state, result, clusters):
    case = make_case("line", 6, [(v, v + 1, largest) for v in range(5)], dtype)
    for num_ranks in (1, 3):
        with graph_of(case, clusters[num_ranks]) as g:
            assert state_dtype(g.info) == state
            for method in METHODS:
                found = mg.sssp(g, 0, method=method)
                assert found.distances.to_numpy().dtype == result
                assert found.distances.to_numpy().tolist() == [v * largest for v in range(6)]


@pytest.mark.parametrize(("arcs", "is_long"), [(266, False), (269, True)])
def test_integer_distances_are_searched_in_32_bits_first(arcs, is_long, clusters, monkeypatch):
    """Search a path of a length that just fits 32 bits, and a longer one; many vertices are isolated."""
    widths = []
    for name in ("sssp.near_far", "sssp.hybrid"):
        wrap_run(monkeypatch, name, lambda loop: lambda *a: (widths.append(a[4].itemsize), loop(*a))[1])
    heaviest = 16_000_000
    case = make_case("line", 400, [(v, v + 1, heaviest) for v in range(arcs)], np.int32)
    wanted = [v * heaviest if v <= arcs else -1 for v in range(400)]
    for num_ranks in (1, 3):
        with graph_of(case, clusters[num_ranks]) as g:
            assert state_dtype(g.info) == np.int64
            for cutoff, kept in (None, wanted), (2**33, wanted), (2**20, [0] + 399 * [-1]), (None, wanted):
                result = mg.sssp(g, 0, cutoff=cutoff)
                assert np.asarray(result.distances).tolist() == kept
                mg.validate(result)
            expected = [4, 8, 8, 8, 8] if is_long else [4, 4, 4, 4]
            assert widths == [width for width in expected for _ in range(num_ranks)]
            widths.clear()


def test_paths_too_long_for_64_bits_are_refused(clusters):
    case = make_case("line", 6, [(v, v + 1, 2**62) for v in range(5)], np.int64)
    with graph_of(case, clusters[1]) as g, pytest.raises(mg.InputError, match="beyond 64-bit integers"):
        mg.sssp(g, 0)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_hops_on_a_weighted_graph_ignore_weights(num_ranks, clusters):
    with graph_of(make_case("far", 3, [(0, 1, 9), (1, 2, 9), (0, 2, 100)]), clusters[num_ranks]) as g:
        assert mg.bfs(g, 0).distances.to_numpy().tolist() == [0, 1, 1]
        assert mg.sssp(g, 0).distances.to_numpy().tolist() == [0, 9, 18]


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_frontier_bfs_on_a_grid_scans_few_arcs_twice(num_ranks, order, clusters):
    with mg.grid(64, 64, cluster=clusters[num_ranks], order=order) as g:
        stats = mg.bfs(g, 64 * 32 + 32).stats
        assert 0.9 * g.num_vertices < stats.num_reached <= g.num_vertices
        # Each arc of a reached vertex is scanned once when it is pushed; an undirected edge has two arcs.
        assert sum(stats.arcs) <= 1.1 * 2 * stats.num_edges
        assert sum(stats.arcs) == sum(step["arcs"] for step in stats.supersteps)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_stats_record_method_reached_vertices_phases_and_supersteps(num_ranks, clusters):
    with mg.rmat(9, cluster=clusters[num_ranks]) as g:
        root = int(np.argmax(np.asarray(mg.bfs(g, 0).distances) >= 0))
        for search in SEARCHES.values():
            for requested, ran in (("auto", "frontier"), ("frontier", "frontier"), ("sweep", "sweep")):
                result = search(g, root, method=requested)
                stats = result.stats
                reached = np.asarray(result.predecessors) >= 0
                assert stats.method == ran
                assert (stats.reason == "requested") == (requested != "auto")
                assert stats.num_reached == reached.sum()
                assert set(stats.seconds) >= {"prepare", "traverse", "translate"}
                assert all(s >= 0 for s in stats.seconds.values())
                phases = {*stats.seconds} - {"prepare", "compile"}
                assert stats.total_s == pytest.approx(sum(stats.seconds[phase] for phase in phases))
                assert len(stats.supersteps) >= 1
                microseconds = sum(step["microseconds"] for step in stats.supersteps)
                assert 0 < microseconds <= 1e6 * stats.seconds["traverse"] * num_ranks
                assert 0 <= sum(step["bytes"] for step in stats.supersteps) <= sum(stats.bytes_sent)
                assert any(step["bytes"] for step in stats.supersteps) == (num_ranks > 1)
                assert len(stats.arcs) == len(stats.bytes_sent) == num_ranks
                assert all(sent > 0 for sent in stats.bytes_sent) == (num_ranks > 1)
                assert stats.teps == pytest.approx(stats.num_edges / stats.total_s)


def test_edges_of_a_component_are_counted_once(clusters):
    with graph_of(ZOO["two-components"], clusters[2]) as g:
        assert mg.bfs(g, 0).stats.num_edges == 2
        assert mg.bfs(g, 1).stats.num_edges == 3
    with graph_of(ZOO["unreachable-part"], clusters[2]) as g:
        assert mg.bfs(g, 0).stats.num_edges == 2
        assert mg.bfs(g, 3).stats.num_edges == 4
    with graph_of(ZOO["isolated"], clusters[2]) as g:
        alone = mg.bfs(g, 8).stats
        assert (alone.num_edges, alone.num_reached, alone.teps) == (0, 1, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: mg.bfs(g, 7), "source 7 is not a vertex: ids are 0..6"),
        (lambda g: mg.bfs(g, -1), "source -1 is not a vertex"),
        (lambda g: mg.bfs(g, []), "there is no source"),
        (lambda g: mg.bfs(g, 1.5), "source 1.5 is not an integer"),
        (lambda g: mg.bfs(g, [0, None]), "source None is not an integer"),
        (lambda g: mg.bfs(g, "0"), "source '0' is not an integer"),
        (lambda g: mg.bfs(g, b"0"), "source b'0' is not an integer"),
        (lambda g: mg.bfs(g, True), "source True is not an integer"),
        (lambda g: mg.bfs(g, 0, depth_limit=True), "depth_limit True is not an integer"),
        (lambda g: mg.bfs(g, 0, depth_limit=-1), "depth_limit is -1"),
        (lambda g: mg.bfs(g, 0, depth_limit=1.5), "depth_limit 1.5 is not an integer"),
        (lambda g: mg.bfs(g, 0, return_predecessors="no"), "return_predecessors 'no' is not True or False"),
        (lambda g: mg.sssp_many(g, [0], return_predecessors=0), "return_predecessors 0 is not True or False"),
        (lambda g: mg.minimum_spanning_forest(g, maximum="no"), "maximum 'no' is not True or False"),
        (lambda g: mg.bfs(g, 0, method="fast"), "method 'fast' is not one of auto, frontier, sweep"),
        (lambda g: mg.sssp(g, 0, cutoff=-1), "cutoff is -1"),
        (lambda g: mg.sssp(g, 0, cutoff=float("nan")), "cutoff is nan"),
        (lambda g: mg.sssp(g, 0, cutoff="1"), "cutoff is '1'"),
        (lambda g: mg.sssp_many(g, [0, 9]), "root 9 is not a vertex"),
        (lambda g: mg.bfs_many(g, []), "there is no root"),
        (lambda g: mg.bfs_many(g, [[0, 1]]), r"root \[0, 1\] is not an integer"),
        (lambda g: mg.bfs_many(g, 3), "roots 3 are not a list of vertices"),
        (lambda g: mg.bfs(g, 0).path_to(7), "target 7 is not a vertex"),
        (lambda g: mg.bfs(g, 0).path_to(0.5), "target 0.5 is not an integer"),
        (lambda g: mg.bfs(g, 0, return_predecessors=False).path_to(1), "return_predecessors=False"),
        (lambda g: mg.validate(mg.bfs(g, 0, return_predecessors=False)), "return_predecessors=False"),
    ],
)
def test_invalid_arguments_are_refused_with_their_value(call, message, clusters):
    with graph_of(ZOO["path"], clusters[1]) as g, pytest.raises(mg.UsageError, match=message):
        call(g)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_sum_of_weights_beyond_all_floats_is_handled(num_ranks, clusters):
    case = make_case("huge", 4, [(0, 1, 1e308), (1, 2, 1e307), (2, 3, 1.7e308), (0, 3, 1.75e308)], np.float64)
    with graph_of(case, clusters[num_ranks]) as g:
        assert g.info.sum_weights == np.finfo(np.float64).max
        for method in METHODS:
            check_traversal(mg.sssp(g, 0, method=method), case, [0], g.info.order)
        assert mg.minimum_spanning_forest(g).num_edges == 3


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_distance_may_be_the_largest_float(num_ranks, clusters):
    most = np.finfo(np.float32).max
    case = make_case("largest", 4, [(0, 1, most), (1, 2, 1), (0, 3, most)], np.float32)
    with graph_of(case, clusters[num_ranks]) as g:
        for method in METHODS:
            check_traversal(mg.sssp(g, 0, method=method), case, [0], g.info.order)


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("layout", ["rows", "compact"])
@pytest.mark.parametrize(("dtype", "heavy"), [(np.float32, 3e38), (np.float64, 1.5e308)])
def test_distance_beyond_all_floats_is_refused_without_a_cutoff(num_ranks, layout, dtype, heavy, clusters):
    case = make_case("overflow", 6, [(0, 1, heavy), (1, 2, heavy), (2, 3, 1), (4, 5, heavy)], dtype)
    with graph_of(case, clusters[num_ranks], layout=layout) as g:
        for method in METHODS if layout == "rows" else ("sweep",):
            with pytest.raises(mg.InputError, match=rf"longer than the largest {np.dtype(dtype)}, .*: scale"):
                mg.sssp(g, 0, method=method)
            # Beyond a cutoff nothing is reached, whatever its length.
            found = mg.sssp(g, 0, cutoff=case.weights[0], method=method)
            assert found.distances.to_numpy().tolist() == [0, case.weights[0], *[np.inf] * 4]
            mg.validate(found)
            assert mg.sssp(g, 2, cutoff=2, method=method).distances[3] == 1
            # An arc of this weight alone overflows nothing, and no path leads to the other vertices.
            mg.validate(mg.sssp(g, 4, method=method))


def test_sssp_refuses_missing_and_negative_weights(clusters):
    with graph_of(ZOO["path"].unweighted, clusters[1]) as g, pytest.raises(mg.UsageError, match="no weights: use bfs"):
        mg.sssp(g, 0)
    negative = make_case("negative", 2, [(0, 1, -3)])
    with graph_of(negative, clusters[2]) as g:
        assert mg.bfs(g, 0).distances[1] == 1
        with pytest.raises(mg.InputError, match=r"one is -3"):
            mg.sssp(g, 0)


def test_graph_without_vertices_has_no_source(clusters):
    with graph_of(ZOO["no-vertex"], clusters[2]) as g, pytest.raises(mg.UsageError, match="the graph has none"):
        mg.bfs(g, 0)


def test_graph_is_usable_after_a_failed_search(clusters):
    with graph_of(ZOO["path"], clusters[3]) as g:
        with pytest.raises(mg.UsageError):
            mg.bfs_many(g, [0, 100])
        assert mg.bfs(g, np.uint32(0)).distances[6] == 6
        assert mg.bfs(g, {0, 6}).distances[3] == 3
        assert mg.bfs(g, np.array([0, 6])).nearest_source[5] == 6


def test_depth_limit_beyond_all_vertices_has_no_effect(clusters):
    with graph_of(ZOO["path"], clusters[3]) as g:
        for method in METHODS:
            check_traversal(mg.bfs(g, 0, depth_limit=10**30, method=method), ZOO["path"], [0], g.info.order)


def test_distances_near_the_largest_float_cause_no_warning(clusters):
    weights = np.array([3e38, 3e38], np.float32)
    with mg.from_edges([0, 1], [1, 2], weights, cluster=clusters[1]) as g:
        assert mg.sssp(g, 1).distances.to_numpy().tolist() == [np.float32(3e38), 0.0, np.float32(3e38)]
        with pytest.raises(mg.InputError, match=r"longer than the largest float32, 3\.403e\+38: scale"):
            mg.sssp(g, 0)


@pytest.mark.parametrize("given", ["file.npz", 3, None, np.zeros(3)])
@pytest.mark.parametrize("search", [mg.bfs, mg.sssp, mg.bfs_many, mg.sssp_many])
def test_argument_that_is_no_graph_is_refused(search, given):
    with pytest.raises(mg.UsageError, match=r"is not a graph: make one with mg\.read"):
        search(given, [0])
