"""Searches in the layout split: equal to the oracles with none, some and all arcs on the device, on any ranks."""

from __future__ import annotations

import dask
import numpy as np
import oracles
import pytest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from on_ranks import run_on_ranks
from split_layout import SHARES, device_share
from traversal_checks import check_traversal
from user_graphs import GRAPHS, SEARCHES, STARTABLE
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.algorithms.bfs import persistent_kernels as bfs_kernel
from mgraph.algorithms.common.cost_model import bfs_costs, sssp_costs
from mgraph.algorithms.sssp import persistent_kernels as sssp_kernel
from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.graph import Graph
from mgraph.api.traversal import state_dtype
from mgraph.backends.rates_file import H200
from mgraph.cluster.base import Rank
from mgraph.cluster.in_process import InProcessCluster
from mgraph.formatting import readable_bytes
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.uniform import Uniform
from mgraph.ingest.build import build
from mgraph.planning.memory import plan_graph
from mgraph.planning.parts import HOSTED, LIGHTEST
from mgraph.rank_jobs import traversal
from mgraph.shard import lightest_arcs
from mgraph.types import LEVEL


def split_graph(case, cluster, order="auto"):
    return Graph.from_source(CaseEdges(case), cluster=cluster, order=order, layout="split")


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
@pytest.mark.parametrize(("num_ranks", "share"), [(1, 0.0), (2, 0.4), (3, 1.0)])
def test_searches_equal_the_oracles(case, num_ranks, share, clusters):
    with device_share(share), split_graph(case, clusters[num_ranks]) as g:
        assert "split" in repr(g)
        for source in [0, case.num_vertices - 1] if case.num_vertices else []:
            for search in SEARCHES.values() if case.weights is not None else [mg.bfs]:
                with search(g, source) as result:
                    assert result.stats.method == "frontier"
                    check_traversal(result, case, [source], g.info.order)
                    mg.validate(result)


@pytest.mark.parametrize("case", [random_case(0, 300), random_case(1, 300), ZOO["dag"]], ids=lambda case: case.name)
def test_all_that_runs_on_rows_runs_on_split_rows(case, clusters):
    calls = [mg.connected_components, mg.core_numbers, mg.pagerank, mg.hits]
    if case.directed:
        calls += [mg.strongly_connected_components]
    elif case.weights is not None:
        calls += [mg.minimum_spanning_forest]
    with (
        device_share(0.4),
        split_graph(case, clusters[2]) as g,
        Graph.from_source(CaseEdges(case), cluster=clusters[2]) as rows,
    ):
        assert sum(one["host_bytes"] for one in g.build_stats) > 0
        for column, other in zip(g.edges.to_numpy(), rows.edges.to_numpy(), strict=True):
            np.testing.assert_array_equal(column, other)
        np.testing.assert_array_equal(mg.bfs_together(g, [0, 1]).distances, mg.bfs_together(rows, [0, 1]).distances)
        for call in calls:
            with call(g) as found, call(rows) as wanted:
                for column, other in zip(found.columns, wanted.columns, strict=True):
                    np.testing.assert_array_equal(np.asarray(column), np.asarray(other))


def emulated_program(_, comm, case, source):
    """Return the variants that ran on the emulator, and what they found."""
    backend = EmulatedBackend(seed=comm.rank, block=64, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order="degree", layout="split")
    assert shard.rows.host_arcs > 0
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard})
    found = []
    for algorithm, dtype in (("bfs", LEVEL), ("sssp", state_dtype(shard.info))):
        spec = TraversalSpec(algorithm, "auto", (source,), dtype)
        (stats,) = traversal.traverse(rank, "graph", [algorithm], [spec])
        columns = rank.objects[algorithm].columns
        found.append((stats["variant"], columns["distances"], columns["predecessors"]))
    return found, shard.lightest_arcs


@pytest.mark.parametrize(("num_ranks", "variant"), [(1, "persistent"), (2, "persistent_multi_gpu")])
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize(("directed", "lightest_on"), [(True, "device"), (False, "device"), (False, "host")])
def test_persistent_searches_equal_the_oracles(directed, lightest_on, share, num_ranks, variant, monkeypatch):
    case = random_case(0, num_vertices=150, directed=directed)
    source = int(case.sources[0])
    if lightest_on == "host":
        monkeypatch.setattr(lightest_arcs, "SEARCH_BYTES", 1 << 40)
    with device_share(share):
        found_of_ranks = run_on_ranks(emulated_program, [None] * num_ranks, case, source)
    for _, lightest in [] if directed else found_of_ranks:
        assert (lightest.host_arcs > 0) == (lightest_on == "host")
    results = [found for found, _ in found_of_ranks]
    positions = oracles.positions(case, "degree")
    for k, weighted in enumerate((False, True)):
        dist = oracles.sssp(case, [source]) if weighted else oracles.bfs(case, [source])
        chosen = oracles.predecessors(case, dist, [source], positions, weighted=weighted)
        assert {found[k][0] for found in results} == {f"{'sssp' if weighted else 'bfs'}.{variant}"}
        np.testing.assert_array_equal(np.concatenate([found[k][2] for found in results]), chosen)
        hops = np.concatenate([found[k][1] for found in results])
        is_reached = np.isfinite(dist)
        np.testing.assert_array_equal(hops[is_reached], dist[is_reached])


@pytest.mark.ci
def test_limit_of_device_memory_moves_rows_to_the_host(clusters):
    """As a user tries it: the same rank with ever less memory for the device."""
    with mg.rmat(16, cluster=clusters[3], layout="rows") as rows:
        wanted = mg.bfs(rows, 1).predecessors.digest()
        whole = [one["bytes"] for one in rows.build_stats]
    hosted = []
    for limit in ("1 GB", "6 MB", "5 MB"):
        with dask.config.set({"mgraph.device-memory": limit}), mg.rmat(16, cluster=clusters[3], layout="split") as g:
            assert mg.bfs(g, 1).predecessors.digest() == wanted
            assert [one["bytes"] + one["host_bytes"] for one in g.build_stats] == whole
            hosted.append(max(one["host_bytes"] for one in g.build_stats))
    assert 0 == hosted[0] < hosted[1] < hosted[2]
    with (
        dask.config.set({"mgraph.device-memory": "1 MB"}),
        pytest.raises(mg.WouldNotFit, match=r"is free: use .*; the setting mgraph.device-memory is"),
    ):
        mg.rmat(16, cluster=clusters[3], layout="split")


def test_plan_counts_what_the_device_and_the_host_hold():
    source = Rmat(26)
    rows = plan_graph(source, 1, "cuda", 1 << 40)
    for memory in (9 << 30, 8 << 30, 29 << 28):
        split = plan_graph(source, 1, "cuda", memory, "split")
        assert split.fits
        assert split.parts["graph"] + split.parts[HOSTED] == rows.parts["graph"]
        beside = max(taken for part, taken in split.parts.items() if part.endswith((" run", " runs")))
        assert split.parts["graph"] + beside + split.parts[LIGHTEST] <= memory
        auto = plan_graph(source, 1, "cuda", memory, "auto")
        assert (auto.layout, auto.parts) == ("split", split.parts)
    for no_hubs, layout in ((Uniform(1 << 26, 16), "compact"), (Grid(1 << 13, 1 << 13), "split")):
        rows = plan_graph(no_hubs, 1, "cuda", 1 << 40)
        assert plan_graph(no_hubs, 1, "cuda", rows.needed_bytes - (64 << 20), "auto").layout == layout
    assert plan_graph(source, 1, "cuda", 1 << 40, "split").parts[HOSTED] == 0
    assert plan_graph(source, 1, "cpu", 12 << 30, "auto").layout == "compact"
    few = plan_graph(source, 1, "cuda", 2 << 30, "split")
    assert not few.fits
    advice = plan_graph(source, 1, "cuda", 8 << 30).advice()
    needed = plan_graph(source, 1, "cuda", 8 << 30, "split")
    sizes = [readable_bytes(size) for size in (needed.needed_bytes, needed.parts[HOSTED])]
    assert f"the layout split ({sizes[0]} and {sizes[1]} of host memory)" in advice


def test_arcs_in_host_memory_make_pushes_alone_dearer():
    for costs, kernel, pushes in (
        (bfs_costs, "bfs", {"queueing", "proposing"}),
        (sssp_costs, "sssp", {"pushing"}),
    ):
        names = {"bfs": bfs_kernel, "sssp": sssp_kernel}[kernel].COSTS
        num = 1 << 24
        near = costs(H200, num, 4)
        far = costs(H200, num, 4, 0.5)
        offset = len(near) - len(names)
        changed = {name for name, a, b in zip(names, near[offset:], far[offset:], strict=True) if a != b}
        assert changed == pushes
        assert all(b > a for a, b in zip(near[offset:], far[offset:], strict=True) if a != b)


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("share", SHARES)
def test_results_on_a_gpu_equal_the_oracles(num_ranks, share):
    with device_share(share), InProcessCluster(num_ranks, backend="cuda") as cluster:
        for case in STARTABLE:
            with split_graph(case, cluster) as g:
                for search in SEARCHES.values() if case.weights is not None else [mg.bfs]:
                    with search(g, 0) as result:
                        check_traversal(result, case, [0], g.info.order)
                        mg.validate(result)
                with mg.connected_components(g) as found:
                    mg.validate(found)
