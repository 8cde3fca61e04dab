"""A rank that runs out of memory despite the plan raises the named error, and the cluster remains usable."""

from __future__ import annotations

import dataclasses

import pytest
import rank_programs as programs
from dask_processes import held, wait_until
from rank_programs import Unallocatable

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.cluster.base import Cluster

MESSAGE = (
    r"building rmat10 needs more memory than there is \(Unable to allocate .*\): `mgraph plan` shows how much it needs"
)


def check_out_of_memory(cluster: Cluster, on_rank: int | None = None) -> None:
    with pytest.raises(mg.WouldNotFit, match=MESSAGE):
        Graph.from_source(dataclasses.replace(Unallocatable(10), on_rank=on_rank), cluster=cluster)
    with mg.rmat(10, cluster=cluster) as g:
        assert mg.bfs(g, 0).stats.num_reached > 1


def test_build_beyond_memory_is_refused_in_process():
    with mg.connect(backend="cpu") as cluster:
        check_out_of_memory(cluster)
        wait_until(lambda: [len(objects) for objects in cluster._objects] == [0])


@pytest.mark.parametrize("rank", [0, 1])
def test_build_beyond_the_memory_of_one_worker_is_refused(client, rank):
    with mg.connect(client, num_ranks=2) as cluster:
        # Then every call is direct.
        cluster.run(programs.nothing)
        check_out_of_memory(cluster, rank)
        wait_until(lambda: set(client.run(held).values()) == {0})


@pytest.mark.ci
@pytest.mark.parametrize("rank", [0, 1])
def test_search_beyond_the_memory_of_one_worker_fails_alone(client, rank):
    with mg.connect(client, num_ranks=2) as cluster, mg.rmat(10, cluster=cluster) as g:
        before = mg.bfs(g, 1).distances.digest()
        worker = sorted(client.nthreads())[rank]
        client.run(programs.exhaust_next_search, workers=[worker])
        with pytest.raises(mg.WouldNotFit, match="Unable to allocate"):
            mg.bfs(g, 1)
        assert mg.bfs(g, 1).distances.digest() == before
        wait_until(lambda: set(client.run(held).values()) == {1})
