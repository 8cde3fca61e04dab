"""A build that runs out of memory despite its plan raises the named error, and the cluster remains usable."""

from __future__ import annotations

import pytest
from dask_processes import wait_until
from distributed import Client, LocalCluster
from rank_programs import Unallocatable

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.cluster.base import Cluster

MESSAGE = (
    r"building rmat10 needs more memory than there is \(Unable to allocate .*\): `mgraph plan` shows how much it needs"
)


def check_out_of_memory(cluster: Cluster) -> None:
    with pytest.raises(mg.WouldNotFit, match=MESSAGE):
        Graph.from_source(Unallocatable(10), cluster=cluster)
    with mg.rmat(10, cluster=cluster) as g:
        assert mg.bfs(g, 0).stats.num_reached > 1


def test_build_beyond_memory_is_refused_in_process():
    with mg.connect(backend="cpu") as cluster:
        check_out_of_memory(cluster)
        wait_until(lambda: [len(objects) for objects in cluster._objects] == [0])


def test_build_beyond_memory_is_refused_on_a_worker():
    workers = LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=":0")
    with workers, Client(workers, set_as_default=False) as client, mg.connect(client) as cluster:
        check_out_of_memory(cluster)
