"""Test that a failed call leaves a usable graph, and nothing else."""

from __future__ import annotations

import gc
import importlib
import weakref
from functools import partial

import pytest
from dask_processes import wait_until
from emulator.backend import EmulatedBackend
from traversal_checks import check_traversal
from user_graphs import graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

PARTIAL = {
    "result_routing": ("mgraph.shard.result_routing.ResultRouting", False, "frontier"),
    "in_rows": ("mgraph.shard.rows.batch_arcs", True, "frontier"),
    "blocks": ("mgraph.shard.edge_blocks.block_batch", False, "sweep"),
}


@pytest.mark.parametrize("part", PARTIAL)
def test_derived_data_of_some_ranks_is_recomputed_after_a_failure(clusters, monkeypatch, part):
    place, directed, method = PARTIAL[part]
    case = random_case(7, directed=directed)
    module, _, name = place.rpartition(".")
    real = getattr(importlib.import_module(module), name)
    first = iter([True])
    cluster = clusters[2]
    with graph_of(case, cluster, order="degree") as g:

        def have():
            return sorted(bool(getattr(objects[g._key], part)) for objects in cluster._objects)

        def fail_on_one(*args):
            # After the last exchange: the first rank to call it fails once the other rank has its part.
            if next(first, False):
                wait_until(lambda: have() == [False, True])
                raise ZeroDivisionError
            return real(*args)

        monkeypatch.setattr(place, fail_on_one)
        with pytest.raises(ZeroDivisionError):
            mg.bfs(g, 0, method=method)
        assert have() == [False, True]
        check_traversal(mg.bfs(g, 0, method=method), case, [0], "degree")


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_failed_launch_leaves_no_uninitialized_array(num_ranks):
    launches = iter([True])

    class Failing(EmulatedBackend):
        def launch(self, kernel, args):
            if kernel.name == "first_targets" and next(launches, False):
                raise ZeroDivisionError
            super().launch(kernel, args)

    with (
        InProcessCluster(num_ranks, make_backend=lambda: Failing(block=32)) as cluster,
        mg.rmat(6, cluster=cluster) as g,
    ):
        with pytest.raises(ZeroDivisionError):
            mg.bfs(g, 0)
        found = mg.bfs(g, 0)
        assert found.distances.digest() == mg.bfs(g, 0, method="sweep").distances.digest()
        mg.validate(found)


@pytest.mark.ci
def test_idle_graph_releases_a_failed_communicator(monkeypatch):
    with InProcessCluster(2, make_backend=lambda: EmulatedBackend(block=32)) as cluster:
        idle = mg.rmat(7, cluster=cluster)
        other = graph_of(ZOO["path"], cluster)
        for find in (mg.connected_components, partial(mg.bfs, source=0), partial(mg.sssp, source=0)):
            assert find(idle).stats.supersteps
        communicators = [weakref.ref(rank.comm) for rank in cluster._ranks]
        assert all(comm().peer_buffers for comm in communicators)
        monkeypatch.setattr("mgraph.rank_jobs.traversal.search", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mg.bfs(other, 0)
        gc.collect()
        assert [comm() for comm in communicators] == [None, None]


def test_multi_source_levels_outlive_a_failed_search(clusters, monkeypatch):
    case = random_case(7, directed=True)
    with graph_of(case, clusters[2]) as g, mg.bfs_together(g, [0, 1]) as together:
        monkeypatch.setattr("mgraph.rank_jobs.traversal.search", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mg.bfs(g, 0)
        check_traversal(together.answer(1), case, [1], g.info.order)
