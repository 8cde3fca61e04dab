"""Partitions of Dask's collections: computed once, read where they lie, never through the client."""

from __future__ import annotations

import threading

import dask
import dask.array
import dask.dataframe
import numpy as np
import pandas
import pytest
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import InputError

M = 2000
U, V = np.random.default_rng(5).integers(0, 300, (2, M))
W = np.arange(M) % 7 + 0.5
# How often each partition was computed, in this process: its workers are threads.
_counts: dict[int, int] = {}
_counting = threading.Lock()


def partition(k: int) -> pandas.DataFrame:
    """Return an eighth of the edges, and count the call."""
    with _counting:
        _counts[k] = _counts.get(k, 0) + 1
    part = slice(k * M // 8, (k + 1) * M // 8)
    return pandas.DataFrame({"cost": W[part], "dst": V[part], "src": U[part]})


def failing(k: int) -> pandas.DataFrame:
    if k == 3:
        raise ZeroDivisionError("division of nothing")
    return partition(k)


def frame(make=partition):
    meta = pandas.DataFrame({"cost": [0.5], "dst": [0], "src": [0]})[:0]
    return dask.dataframe.from_delayed([dask.delayed(make)(k) for k in range(8)], meta=meta)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["in-process", "dask"])
def cluster(request):
    if request.param == "in-process":
        with InProcessCluster(2) as ranks:
            yield ranks
    else:
        with DaskCluster(request.getfixturevalue("client"), 2, backend="cpu") as ranks:
            yield ranks


@pytest.fixture(scope="module")
def expected():
    with mg.from_edges(U, V, W, num_vertices=300, cluster=InProcessCluster(1)) as g, mg.sssp(g, 1) as result:
        return g.info, np.asarray(result.distances)


def check(graph, expected):
    with graph as g, mg.sssp(g, 1) as result:
        assert g.info == expected[0]
        np.testing.assert_array_equal(result.distances, expected[1])


def test_a_frame_is_computed_once(cluster, expected):
    _counts.clear()
    check(mg.from_dask(frame(), weight="cost", num_vertices=300, cluster=cluster), expected)
    assert _counts == dict.fromkeys(range(8), 1)


def test_arrays_and_series_are_read_by_partitions(cluster, expected):
    u, v, w = (dask.array.from_array(values, chunks=300) for values in (U, V, W))
    how = {"num_vertices": 300, "cluster": cluster}
    check(mg.from_dask(u, v.rechunk(500), w, **how), expected)
    check(mg.from_dask(dask.array.stack([u, v], axis=1), None, w, **how), expected)
    table = frame()
    check(mg.from_dask(table["src"], table["dst"], table["cost"], **how), expected)


def test_pairs_and_shuffled_frames_are_read(cluster):
    pairs = dask.array.from_array(np.stack([U, V], axis=1), chunks=(300, 1))
    plain = InProcessCluster(1)
    with (
        mg.from_edges(U, V, cluster=plain) as h,
        mg.from_dask(pairs, cluster=cluster) as g,
        mg.from_dask(frame().shuffle("src"), weight=False, cluster=cluster) as shuffled,
    ):
        assert g.info == h.info == shuffled.info


def test_a_failed_partition_is_named(cluster):
    with pytest.raises(InputError, match=r"dask: .*partition.* cannot be computed: ZeroDivisionError: division of not"):
        mg.from_dask(frame(failing), weight="cost", cluster=cluster)


def test_a_wrong_id_is_named_by_its_partition(cluster):
    u = dask.array.from_array(np.where(np.arange(M) == 700, 1000, U), chunks=300)
    with pytest.raises(InputError, match=r"dask: partition 2, row 100: vertex 1000 is not in 0\.\.299"):
        mg.from_dask(u, dask.array.from_array(V, chunks=300), num_vertices=300, cluster=cluster)


def test_partitions_do_not_pass_through_the_client(client, monkeypatch, expected):
    gathered = []
    real = client.gather
    monkeypatch.setattr(client, "gather", lambda futures, **how: gathered.append(real(futures, **how)) or gathered[-1])
    monkeypatch.setattr(client, "scatter", lambda *_: pytest.fail("a partition was sent by the client"))
    with DaskCluster(client, 2, backend="cpu") as ranks:
        persisted = client.persist(frame())
        check(mg.from_dask(persisted, weight="cost", num_vertices=300, cluster=ranks), expected)
    assert not any(isinstance(value, pandas.DataFrame) for values in gathered for value in np.ravel(values))


def test_partitions_are_freed_after_the_build(client, expected):
    with DaskCluster(client, 2, backend="cpu") as ranks:
        g = mg.from_dask(frame(), weight="cost", num_vertices=300, cluster=ranks)
        kept = [key for worker in client.cluster.workers.values() for key in worker.data if "from-delayed" in str(key)]
        assert not kept
        check(g, expected)
