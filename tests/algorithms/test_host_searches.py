"""Searches in the layout host: equal to the oracles with none, some and all blocks on the device, on any ranks."""

from __future__ import annotations

import weakref

import dask
import numpy as np
import oracles
import pytest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from host_layout import RANKS_AND_SHARES, SHARES, resident_share
from naive_shard import build_shards, distance_parts, predecessor_parts
from on_ranks import run_on_ranks
from sweep_checks import TINY
from traversal_checks import check_sweeps, check_traversal
from user_graphs import GRAPHS, SEARCHES, STARTABLE
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.algorithms.common import reach, streamed_search
from mgraph.algorithms.common.streamed_search import bfs_streamed, sssp_streamed
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.predecessors.sweep import find_predecessors_by_sweep
from mgraph.api.graph import Graph
from mgraph.api.traversal import state_dtype
from mgraph.backends.host_memory import FreeMemory
from mgraph.cluster.in_process import InProcessCluster
from mgraph.ingest.build import build
from mgraph.planning.memory import plan_graph
from mgraph.shard.host_blocks import HostBlocks
from mgraph.store import blocks as stored_blocks
from mgraph.store.manifest import open_store

# Hundreds of supersteps, of which each streams the parts.
DEEP = ZOO["long-chain"]


def host_graph(case, cluster, order="auto"):
    return Graph.from_source(CaseEdges(case), cluster=cluster, order=order, layout="host")


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("case", [case for case in GRAPHS if case is not DEEP], ids=lambda case: case.name)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize(("num_ranks", "share"), RANKS_AND_SHARES)
def test_results_equal_the_oracles(case, order, num_ranks, share, clusters):
    with resident_share(share), host_graph(case, clusters[num_ranks], order) as g:
        check_sweeps(g, case, order)


def test_levels_beyond_8_bits_and_limits_equal_the_oracles(clusters):
    with resident_share(0.0), host_graph(DEEP, clusters[2]) as g:
        check_traversal(mg.bfs(g, 0), DEEP, [0], g.info.order)
        check_traversal(mg.bfs(g, 0, depth_limit=255), DEEP, [0], g.info.order, 255)
    case = ZOO["grid"]
    with resident_share(0.4), host_graph(case, clusters[3]) as g:
        check_traversal(mg.sssp(g, 0, cutoff=9), case, [0], g.info.order, 9)
        result = mg.sssp(g, [0, 70])
        chosen = np.asarray(result.predecessors)
        assert all(result.path_to(v) == oracles.path_to(chosen, v) for v in range(case.num_vertices))


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_predecessors_take_no_pass_of_their_own(num_ranks, clusters):
    case = random_case(4, 900)
    with resident_share(0.4), host_graph(case, clusters[num_ranks], "degree") as g:
        for search in SEARCHES.values():
            with search(g, 1) as result:
                check_traversal(result, case, [1], "degree")
                assert "predecessors" not in result.stats.seconds


def test_results_do_not_depend_on_how_often_blocks_are_swept(clusters, monkeypatch):
    case = random_case(3, 400)
    monkeypatch.setattr(reach, "EARLY_SHARE", 0)
    for name in ("RESIDENT_SWEEPS", "SWEEPS_WITHOUT_STREAM", "LEVEL_SWEEPS", "WEIGHT_SWEEPS"):
        monkeypatch.setattr(streamed_search, name, 1)
        for num_ranks in (1, 3):
            with resident_share(0.4), host_graph(case, clusters[num_ranks], "degree") as g:
                for search in SEARCHES.values():
                    check_traversal(search(g, 1), case, [1], "degree")


@pytest.mark.ci
def test_passes_over_host_memory_are_few(clusters):
    """Counted as bytes over the link, predecessors included; a level of BFS or a sweep of SSSP alone may need all."""
    with dask.config.set({"mgraph.device-memory": "24 MB"}), mg.rmat(18, cluster=clusters[1], layout="host") as g:
        (blocks,) = clusters[1].run(lambda rank: next(iter(rank.objects[g._key].blocks.values())))
        for search, most in ((mg.bfs, 2), (mg.sssp, 5)):
            for source in (0, 1, 2):
                with search(g, source) as result:
                    mg.validate(result)
                    assert sum(result.stats.link_bytes) <= most * blocks.host_bytes


def test_weights_are_not_streamed_for_levels(clusters):
    case = random_case(4, 900)
    with resident_share(0.0), host_graph(case, clusters[1], "degree") as g:
        (blocks,) = clusters[1].run(lambda rank: next(iter(rank.objects[g._key].blocks.values())))
        without = sum(len(part.bytes(weighted=False)) for part in blocks.parts)
        assert without < blocks.host_bytes
        assert mg.connected_components(g).stats.link_bytes == [without]
        assert all(step["link_bytes"] <= without for step in mg.bfs(g, 1).stats.supersteps)


def test_scores_equal_those_of_the_compact_layout(clusters):
    case = random_case(1, 200)
    for share in SHARES:
        with (
            resident_share(share),
            host_graph(case, clusters[2], "degree") as g,
            Graph.from_source(CaseEdges(case), cluster=clusters[2], order="degree", layout="compact") as compact,
        ):
            for scores in (mg.pagerank, mg.hits):
                for found, wanted in zip(scores(g).columns, scores(compact).columns, strict=True):
                    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_parts_out_of_reach_are_skipped(clusters):
    """A chain in natural order is reached window by window: a sweep needs the parts around its frontier."""
    with resident_share(0.0), host_graph(DEEP, clusters[1], "natural") as g:
        for search in (mg.bfs, mg.sssp):
            stats = search(g, 0).stats
            (blocks,) = clusters[1].run(lambda rank: next(iter(rank.objects[g._key].blocks.values())))
            for step in stats.supersteps:
                assert step["host_parts"] + step["skipped_parts"] == len(blocks.parts)
                assert (step["link_bytes"] > 0) == (step["host_parts"] > 0)
            # Three hundred levels, a pass for each if no part were skipped.
            assert sum(stats.link_bytes) < 20 * blocks.host_bytes
            assert stats.link_bytes == [sum(step["link_bytes"] for step in stats.supersteps)]


def test_parts_on_the_device_out_of_reach_are_not_swept(clusters):
    with resident_share(1.0), host_graph(DEEP, clusters[1], "natural") as g:
        for search in (mg.bfs, mg.sssp):
            # As many sweeps as levels, three hundred, each of a few parts.
            assert sum(step["edges"] for step in search(g, 0).stats.supersteps) < 20 * g.num_edges


def emulated_program(_, comm, case, share):
    """Return what a rank finds on the emulator, and the shape of its blocks."""
    backend = EmulatedBackend(seed=comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order="degree", layout="host")
    (blocks,) = shard.blocks.values()
    assert isinstance(blocks, HostBlocks)
    assert bool(blocks.parts) == (share < 1)
    trace = Trace(backend, comm)
    found = [bfs_streamed(shard, comm, [0], trace), sssp_streamed(shard, comm, [0], trace, state_dtype(shard.info))]
    parents = [find_predecessors_by_sweep(shard, comm, [0], one.distances) for one in found]
    for one, own in zip(found, parents, strict=True):
        np.testing.assert_array_equal(backend.to_host(one.predecessors), backend.to_host(own))
    return [backend.to_host(one.distances) for one in found], [backend.to_host(one) for one in parents]


@pytest.mark.covering(every=2)
@pytest.mark.interleavings
@pytest.mark.parametrize("share", SHARES)
def test_results_on_the_emulator_equal_those_of_a_cpu(share, clusters):
    case = random_case(0, num_vertices=120)
    positions = oracles.positions(case, "degree")
    source = int(np.argmin(positions))
    for num_ranks in (1, 2):
        with resident_share(share):
            results = run_on_ranks(emulated_program, [None] * num_ranks, case, share)
        naive = build_shards(case, num_ranks, "degree")
        for k, weighted in enumerate((False, True)):
            dist = oracles.sssp(case, [source]) if weighted else oracles.bfs(case, [source])
            dtype = results[0][0][k].dtype
            chosen = oracles.predecessors(case, dist, [source], positions, weighted=weighted)
            for rank, (distances, parents) in enumerate(results):
                np.testing.assert_array_equal(distances[k], distance_parts(naive, dist, dtype)[rank])
                np.testing.assert_array_equal(parents[k], predecessor_parts(naive, chosen)[rank])


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_results_on_a_gpu_equal_the_oracles(num_ranks):
    with InProcessCluster(num_ranks, backend="cuda") as cluster:
        for case in STARTABLE:
            for share in SHARES:
                with resident_share(share), host_graph(case, cluster, "degree") as g:
                    for search in SEARCHES.values():
                        result = search(g, 0)
                        check_traversal(result, case, [0], "degree")
                        mg.validate(result)
                    found = mg.connected_components(g)
                    np.testing.assert_array_equal(np.asarray(found.labels), oracles.components(case))
                    mg.validate(found)
                    if not case.directed:
                        mg.validate(mg.minimum_spanning_forest(g))


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("is_copied", [False, True])
def test_graph_saved_by_a_gpu_is_searched_by_it(num_ranks, is_copied, tmp_path, monkeypatch):
    case = random_case(0, 200)
    if is_copied:
        monkeypatch.setattr(stored_blocks, "choose_shape", lambda backend, state_bytes: TINY)
    with InProcessCluster(num_ranks, backend="cuda") as cluster:
        for share in SHARES:
            with resident_share(share), host_graph(case, cluster, "degree") as g:
                g.save(tmp_path / f"{share}")
                for layout in ("host", "compact"):
                    with mg.load(tmp_path / f"{share}", cluster=cluster, layout=layout) as loaded:
                        assert loaded.info.layout == layout
                        check_traversal(mg.sssp(loaded, 0), case, [0], "degree")


def test_failed_search_leaves_the_graph_usable(clusters, monkeypatch):
    case = random_case(0, 200)
    with resident_share(0.4), host_graph(case, clusters[2], "degree") as g:
        stream = HostBlocks.stream

        def breaks(self, chosen, **how):
            for k, part in enumerate(stream(self, chosen, **how)):
                if k == 1:
                    raise RuntimeError("the link is gone")
                yield part

        monkeypatch.setattr(HostBlocks, "stream", breaks)
        with pytest.raises(Exception, match="the link is gone"):
            mg.bfs(g, 0)
        monkeypatch.undo()
        check_traversal(mg.bfs(g, 0), case, [0], "degree")


def test_memory_of_the_host_is_freed_with_the_graph(clusters):
    with resident_share(0.0), host_graph(random_case(0, 200), clusters[1]) as g:
        (blocks,) = clusters[1].run(lambda rank: next(iter(rank.objects[g._key].blocks.values())))
        parts = [weakref.ref(part.memory) for part in blocks.parts]
        assert parts
        mg.bfs(g, 0)
        del blocks
    assert not any(part() is not None for part in parts)


def test_saved_graph_is_searched_in_every_layout_of_blocks(clusters, tmp_path):
    case = random_case(0, 200)
    with resident_share(0.4), host_graph(case, clusters[2]) as g:
        g.save(tmp_path / "saved")
    for num_ranks, layout in ((1, "auto"), (2, "host"), (3, "compact")):
        with resident_share(0.4), mg.load(tmp_path / "saved", cluster=clusters[num_ranks], layout=layout) as g:
            assert g.info.layout == ("compact" if layout == "compact" else "host")
            for search in (mg.bfs, mg.sssp):
                check_traversal(search(g, 0), case, [0], "degree")


def test_what_needs_rows_is_refused(clusters):
    with resident_share(0.4), host_graph(ZOO["path"], clusters[2]) as g:
        assert "host" in repr(g)
        with pytest.raises(mg.UsageError, match="bfs_together needs rows, and path has the layout host"):
            mg.bfs_together(g, [0, 1])
        assert "edge blocks only" in mg.bfs(g, 0).stats.reason


@pytest.mark.ci
def test_auto_layout_is_host_where_neither_rows_nor_compact_fit_the_device(clusters):
    with mg.rmat(18, cluster=clusters[1]) as rows:
        wanted = [np.asarray(column) for column in mg.sssp(rows, 1)]
    found = []
    # As planned, rows take 64 MB with a search, compact blocks 31 MB, and the layout host 16 MB at least.
    for limit in ("1 GB", "40 MB", "24 MB"):
        with dask.config.set({"mgraph.device-memory": limit}), mg.rmat(18, cluster=clusters[1], layout="auto") as g:
            found.append(g.info.layout)
            for column, want in zip(mg.sssp(g, 1), wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(column), want)
    assert found == ["rows", "compact", "host"]
    with (
        dask.config.set({"mgraph.device-memory": "3 MB"}),
        pytest.raises(mg.WouldNotFit, match=r"the setting mgraph\.device-memory is"),
    ):
        mg.rmat(18, cluster=clusters[1], layout="auto")


@pytest.mark.ci
def test_saved_compact_graph_that_would_not_fit_is_loaded_as_host(clusters, tmp_path):
    with mg.rmat(20, cluster=clusters[1], layout="compact") as g:
        wanted = [np.asarray(column) for column in mg.sssp(g, 1)]
        g.save(tmp_path / "saved")
    found = []
    # As planned, compact blocks take 145 MB with a search.
    for limit in ("1 GB", "110 MB"):
        with dask.config.set({"mgraph.device-memory": limit}), mg.load(tmp_path / "saved", cluster=clusters[1]) as g:
            found.append(g.info.layout)
            for column, want in zip(mg.sssp(g, 1), wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(column), want)
    assert found == ["compact", "host"]
    store = open_store(tmp_path / "saved")
    free = FreeMemory(110_000_000, "", 1 << 30)
    planned = [plan_graph(store, 1, "cuda", free, layout) for layout in ("auto", "rows")]
    assert [plan.layout for plan in planned] == ["host", "compact"]
    assert planned[0].fits
    assert "the layout host" in planned[1].advice()
    with (
        dask.config.set({"mgraph.device-memory": "110 MB"}),
        pytest.raises(mg.WouldNotFit, match="loading rmat20 takes"),
    ):
        mg.load(tmp_path / "saved", cluster=clusters[1], layout="compact")
