"""Searches of compact graphs: results equal those over rows, for any number of ranks and any communicator."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import scipy.sparse
from backends import gpu_count
from builds import CaseEdges, build_compact_on, shrink_passes
from hypothesis import given
from naive_shard import build_shards, distance_parts, predecessor_parts
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from socket_cluster import SocketCluster
from strategies import graphs_and_sources, orders, rank_counts
from sweep_checks import TINY
from tiers import by_tier, examples
from traversal_checks import check_sweeps, check_traversal
from user_graphs import GRAPHS, ORDERS, SEARCHES, STARTABLE
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.algorithms.predecessors.sweep import find_predecessors_by_sweep
from mgraph.api.graph import Graph
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.rmat import Rmat
from mgraph.planning.memory import plan_graph
from mgraph.rank_jobs.traversal import have_arcs, vertex_of_most_arcs
from mgraph.shard.light_units import require_light_units
from mgraph.types import none_of, unreached_of
from mgraph.validation.traversal import validate_traversal

# Hundreds of supersteps on seven ranks are slow and test no more than those on three.
DEEP = ZOO["long-chain"]


def compact_graph(case, cluster, order="auto", layout="compact"):
    return Graph.from_source(CaseEdges(case), cluster=cluster, order=order, layout=layout)


@pytest.mark.covering(every=6)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_results_equal_the_oracles_for_any_number_of_ranks(case, clusters):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        cluster = clusters[num_ranks]
        if case is DEEP and num_ranks > 3:
            continue
        for order in ORDERS:
            with compact_graph(case, cluster, order) as g:
                check_sweeps(g, case, order)


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_results_over_sockets_equal_the_oracles(num_ranks):
    with SocketCluster(num_ranks) as cluster:
        for case in STARTABLE:
            if case is DEEP and num_ranks > 2:
                continue
            with compact_graph(case, cluster, "degree") as g:
                for search in SEARCHES.values():
                    check_traversal(search(g, 0), case, [0], "degree")


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_results_on_a_gpu_equal_the_oracles(num_ranks, order):
    with InProcessCluster(num_ranks, backend="cuda") as cluster:
        for case in STARTABLE:
            with compact_graph(case, cluster, order) as g:
                for search in SEARCHES.values():
                    result = search(g, 0)
                    check_traversal(result, case, [0], order)
                    mg.validate(result)


@pytest.mark.gpus
@pytest.mark.timeout(300)
def test_results_over_nccl_equal_the_oracles():
    for num_ranks in range(2, min(gpu_count(), 4) + 1):
        with mg.connect(num_ranks=num_ranks, backend="cuda") as cluster:
            for case in STARTABLE:
                with compact_graph(case, cluster, "degree") as g:
                    for search in SEARCHES.values():
                        check_traversal(search(g, 0), case, [0], "degree")


@examples(60)
@given(graphs_and_sources(), rank_counts, orders)
def test_predecessors_of_drawn_graphs_equal_the_oracle(drawn, num_ranks, order):
    """Most drawn weights are zero, or absorbed by the rounding of a sum."""
    case, sources = drawn
    shards = build_compact_on(case, num_ranks, order, TINY)
    naive = build_shards(case, num_ranks, order)
    positions = oracles.positions(case, order)
    for weighted in (False, True):
        dist = oracles.sssp(case, sources) if weighted else oracles.bfs(case, sources)
        parts = distance_parts(naive, dist, dist.dtype if weighted else np.int32)
        with_state = [int(p) for p in positions[sources] if p < shards[0].partition.num_positions]

        def program(shard, comm, part, starts=with_state):
            if comm.rank != 1:
                require_light_units(shard, *shard.blocks.values())
            return find_predecessors_by_sweep(shard, comm, starts, part)

        results = run_on_ranks(program, shards, parts=[(part,) for part in parts])
        wanted = predecessor_parts(naive, oracles.predecessors(case, dist, sources, positions, weighted=weighted))
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_violations_equal_those_over_rows(seed, num_ranks):
    """Validate correct results and results with a few values changed: rules, counts and vertices are the same."""
    case = random_case(seed, 250)
    compact = build_compact_on(case, num_ranks)
    plain = build_shards(case, num_ranks)
    positions = oracles.positions(case, "degree")
    random = np.random.default_rng(seed)
    dist = oracles.sssp(case, [3])
    chosen = oracles.predecessors(case, dist, [3], positions, weighted=True)
    dtype = oracles.state_dtype(case) if oracles.state_dtype(case).kind == "f" else np.dtype(np.int64)
    for spoiled in range(4):
        parts = [part.copy() for part in distance_parts(plain, dist, dtype)]
        parents = [part.copy() for part in predecessor_parts(plain, chosen)]
        for of_rank, above in zip(parts, parents, strict=True):
            for _ in range(spoiled):
                place = random.integers(len(of_rank))
                of_rank[place] = random.choice([0, 1, unreached_of(dtype), of_rank[random.integers(len(of_rank))]])
                above[place] = random.choice([none_of(above.dtype), above[random.integers(len(above))]])

        def program(shard, comm, distances, predecessors):
            return validate_traversal(shard, comm, [int(positions[3])], distances, predecessors, weighted=True)

        both = [run_on_ranks(program, s, parts=list(zip(parts, parents, strict=True))) for s in (compact, plain)]
        assert both[0] == both[1]
        assert bool(both[0][0]) == bool(spoiled) or spoiled == 1


def test_info_and_stats_equal_those_of_rows(clusters):
    for case in (random_case(0), random_case(1), ZOO["unreachable-part"], ZOO["isolated"]):
        for order in ORDERS:
            for cluster in clusters.values():
                with compact_graph(case, cluster, order) as g, compact_graph(case, cluster, order, "rows") as rows:
                    assert g.info.layout == "compact"
                    assert rows.info.layout == "rows"
                    for name in ("num_edges", "num_arcs", "num_parallel", "num_loops", "max_degree", "num_isolated"):
                        assert getattr(g.info, name) == getattr(rows.info, name)
                    users = list(range(case.num_vertices))
                    assert cluster.run(have_arcs, g._key, users) == cluster.run(have_arcs, rows._key, users)
                    ends = rows.edges.to_numpy()[: 1 if case.directed else 2]
                    most = int(np.bincount(np.concatenate(ends), minlength=case.num_vertices).argmax())
                    assert cluster.run(vertex_of_most_arcs, g._key) == [most] * cluster.num_ranks
                    assert cluster.run(vertex_of_most_arcs, rows._key) == [most] * cluster.num_ranks
                    for search in SEARCHES.values():
                        one = search(g, 0).stats
                        other = search(rows, 0).stats
                        assert (one.num_reached, one.num_edges) == (other.num_reached, other.num_edges)


def test_limits_paths_and_several_roots_equal_the_oracles(clusters):
    case = ZOO["grid"]
    with compact_graph(case, clusters[3]) as g:
        check_traversal(mg.bfs(g, 0, depth_limit=3), case, [0], g.info.order, 3)
        check_traversal(mg.sssp(g, 0, cutoff=9), case, [0], g.info.order, 9)
        assert [r.stats.method for r in mg.bfs_many(g, [0, 5])] == ["sweep", "sweep"]
        result = mg.sssp(g, [0, 70])
        chosen = np.asarray(result.predecessors)
        assert all(result.path_to(v) == oracles.path_to(chosen, v) for v in range(case.num_vertices))


@pytest.mark.parametrize("largest", [255, 65535, 2**32 - 1, 2**40])
def test_integer_weights_have_the_narrowest_dtype(largest, clusters):
    case = make_case("line", 6, [(v, v + 1, largest) for v in range(5)], np.int64)
    with compact_graph(case, clusters[1]) as g:
        assert np.dtype(g.info.weight_dtype).itemsize == max(np.min_scalar_type(largest).itemsize, 1)
        assert mg.sssp(g, 0).distances[5] == 5 * largest


def test_algorithms_that_need_rows_are_refused(clusters):
    with compact_graph(ZOO["path"], clusters[2]) as g:
        assert "compact" in repr(g)
        for search in (mg.bfs, mg.sssp):
            with pytest.raises(mg.UsageError, match=r"'frontier' needs rows, .* compact layout: .* \(--layout rows on"):
                search(g, 0, method="frontier")
            assert "edge blocks only" in search(g, 0).stats.reason
        with pytest.raises(mg.UsageError, match="core_numbers needs rows"):
            mg.core_numbers(g)
    with pytest.raises(mg.UsageError, match="layout 'dense' is not one of rows, split, compact, host, auto"):
        mg.rmat(5, layout="dense")


def test_auto_layout_is_compact_if_rows_would_not_fit(clusters, monkeypatch):
    rows, compact = (plan_graph(Rmat(17), 1, "cpu", 1 << 40, layout=name) for name in ("rows", "compact"))
    few = (rows.parts["while it is built"] + compact.parts["while it is built"]) // 2
    for free, layout in ((1 << 40, "rows"), (few, "compact")):
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=free: free)
        with mg.rmat(17, cluster=clusters[1], layout="auto") as g:
            assert g.info.layout == layout
            mg.validate(mg.bfs(g, 1))
    with pytest.raises(mg.WouldNotFit, match="or fewer edges; the compact layout would fit"):
        mg.rmat(17, cluster=clusters[1])
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: int(0.8 * compact.parts["while it is built"]))
    # Nor would the layout host fit this host.
    monkeypatch.setattr("mgraph.ingest.host_plan.memory_of_host", lambda backend, comm: FreeMemory(0))
    for layout in ("compact", "auto"):
        with pytest.raises(mg.WouldNotFit, match=r"building the compact graph takes .* use \d+ ranks with"):
            mg.rmat(17, cluster=clusters[1], layout=layout)


@pytest.mark.parametrize("how", ["from_edges", "from_csr", "from_scipy", "grid", "read"])
def test_every_constructor_has_a_layout_argument(how, clusters, tmp_path):
    u = np.arange(5)
    v = np.arange(1, 6)
    np.savez(tmp_path / "a.npz", sources=u, targets=v)
    make = {
        "from_edges": lambda **given: mg.from_edges(u, v, **given),
        "from_csr": lambda **given: mg.from_csr(np.array([0, 1, 2, 2]), np.array([1, 2]), **given),
        "from_scipy": lambda **given: mg.from_scipy(scipy.sparse.coo_array((np.ones(5), (u, v)), (6, 6)), **given),
        "grid": lambda **given: mg.grid(5, 5, **given),
        "read": lambda **given: mg.read(tmp_path / "a.npz", **given),
    }[how]
    with make(cluster=clusters[2], layout="compact") as g:
        assert g.info.layout == "compact"
        mg.validate(mg.bfs(g, 0))


def test_results_do_not_depend_on_the_number_of_passes(clusters, monkeypatch):
    shrink_passes(monkeypatch)
    for case in (random_case(4, 200), random_case(5, 200)):
        with compact_graph(case, clusters[3], "degree") as g:
            for search in SEARCHES.values():
                check_traversal(search(g, 1), case, [1], "degree")
