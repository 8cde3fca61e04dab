"""Prepared launches, and values that are computed once for each shard."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from backends import BACKENDS
from emulator.model.presence import tell_presence
from naive_shard import build_shards
from zoo import ZOO

import mgraph as mg
from mgraph.backends.base import Allocated, Bound
from mgraph.cluster.in_process import InProcessCluster
from mgraph.shard.rows_kernels import look_up
from mgraph.shard.shard import cached_on_shard


@pytest.mark.parametrize("name", ["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_prepared_launch_has_bound_arguments_and_new_memory_every_time(name):
    backend = BACKENDS[name].make()
    table = np.random.default_rng(1).permutation(300).astype(np.uint32)
    ids = [np.arange(300, dtype=np.uint32), np.arange(300, dtype=np.uint32)[::-1].copy()]
    # There is no other reference to the table.
    launch = backend.prepared(
        look_up, 0, 300, Bound(ids[0].dtype), backend.to_device(table), Allocated(300, table.dtype)
    )
    found = [launch(backend.to_device(some)) for some in (*ids, ids[0])]
    backend.synchronize()
    for (out,), some in zip(found, (*ids, ids[0]), strict=True):
        np.testing.assert_array_equal(backend.to_host(out), table[some])
    backend.close()


@pytest.mark.parametrize("name", ["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_full_fills_arrays_of_any_length_and_value(name):
    backend = BACKENDS[name].make()
    for dtype, value in (
        (np.uint8, 7),
        (np.uint32, 2**32 - 1),
        (np.int32, 2**31 - 1),
        (np.float32, np.inf),
        (np.int64, -1),
    ):
        for count in 0, 1, 1001:
            found = backend.to_host(backend.full(count, value, np.dtype(dtype)))
            np.testing.assert_array_equal(found, np.full(count, value, dtype), strict=True)
    backend.close()


@pytest.mark.parametrize("name", ["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_empty_prepared_launch_returns_its_memory(name):
    backend = BACKENDS[name].make()
    none = backend.xp.empty(0, np.uint32)
    (out,) = backend.prepared(look_up, 0, 0, none, none, Allocated(0, np.dtype(np.uint32)))()
    assert out.shape == (0,)
    assert out.dtype == np.uint32
    backend.close()


def test_cached_value_belongs_to_one_shard_and_is_freed_with_it():
    worked_out = []

    class Thing:
        pass

    @cached_on_shard
    def thing_of(shard, number):
        worked_out.append((shard, number))
        return Thing()

    shards = [*build_shards(ZOO["grid"], 1, "degree"), *build_shards(ZOO["grid"], 1, "degree")]
    things = [thing_of(shard, number) for shard in shards for number in (1, 2, 1)]
    assert len(worked_out) == len(set(map(id, things))) == 4
    assert things[0] is things[2] is not things[1]
    assert thing_of(shards[0], number=1) is not thing_of(shards[0], number=2)
    first = weakref.ref(things[0])
    things.clear(), worked_out.clear(), shards.clear()
    assert first() is None


@pytest.mark.parametrize("name", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_repeated_searches_of_one_graph_equal_those_on_the_cpu(name):
    """The first search prepares what later ones reuse; no search changes an earlier result."""
    clusters = [InProcessCluster(1, make_backend=BACKENDS[which].make) for which in (name, "cpu")]
    with clusters[0], clusters[1]:
        edges = np.random.default_rng(1).integers(0, 90, (2, 200))
        graphs = [mg.from_edges(*edges, num_vertices=100, order="degree", cluster=cluster) for cluster in clusters]
        searches = [
            (3, {}),
            (5, {"depth_limit": 1}),
            ([3, 9, 95], {}),
            (99, {}),
            (3, {"return_predecessors": False}),
            (9, {}),
        ]
        found = [[mg.bfs(g, source, **options) for source, options in searches] for g in graphs]
        assert found[0][0].stats.variant == "bfs.persistent"
        for result, wanted in zip(*found, strict=True):
            assert [c.to_numpy().tolist() for c in result.columns] == [c.to_numpy().tolist() for c in wanted.columns]
            # Each backend compiles at its own first launch of a kernel in this process.
            assert result.stats.seconds.keys() - {"compile"} == wanted.stats.seconds.keys() - {"compile"}
        shard = weakref.ref(clusters[0]._objects[0][graphs[0]._key])
        graphs[0].close()
        assert shard() is None


@pytest.mark.parametrize("name", ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_search_without_arcs_reaches_only_the_source(name):
    """No vertex has a state, and empty arrays on a device have no address."""
    cluster = InProcessCluster(1, make_backend=BACKENDS[name].make)
    with cluster, mg.from_edges([], [], num_vertices=5, order="degree", cluster=cluster) as g, mg.bfs(g, 2) as result:
        assert result.distances.to_numpy().tolist() == [-1, -1, 0, -1, -1]
        assert result.predecessors.to_numpy().tolist() == [-1, -1, 2, -1, -1]


@pytest.mark.parametrize("name", ["cpu", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_array_without_elements_is_not_none(name):
    backend = BACKENDS[name].make()
    for array, is_there in ((None, 0), (backend.xp.empty(0, np.int64), 1)):
        found = backend.xp.full(1, -1, np.int64)
        tell_presence[backend](0, 1, array, found)
        assert backend.to_host(found).tolist() == [is_there]
    backend.close()
