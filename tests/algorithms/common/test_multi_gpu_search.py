"""Persistent multi-GPU searches translate their sources as the verbs do, and search from there."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import oracles
import pytest
from comm_ranks import check
from emulator.backend import EmulatedBackend
from naive_shard import as_seen, build_shards, distance_parts
from naive_shard import positions_of as naive_positions
from on_ranks import run_on_ranks
from zoo import make_case

import mgraph as mg
from mgraph.algorithms import run_variant
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu, require_bfs_buffers
from mgraph.algorithms.common import multi_gpu_search as multi_gpu_search
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.sssp.persistent_multi_gpu import require_sssp_buffers, sssp_multi_gpu
from mgraph.api.traversal import state_dtype
from mgraph.backends.create import make_backend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.shard.in_rows import require_in_rows
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL

pytestmark = pytest.mark.interleavings

# Every third vertex has no arcs.
THIRDS = make_case("thirds", 45, [(v, v + 1) for v in range(0, 45, 3)])
FEW = make_case("few", 3, [(0, 2)])


def search_from(shard, comm, lists):
    """Return, for each list of user ids, their positions and the distances of both searches."""
    found = []
    dtype = state_dtype(shard.info)
    for users in lists:
        assert require_bfs_buffers(shard, comm)
        near = bfs_multi_gpu(shard, comm, users, Trace(shard.backend, comm))
        assert require_sssp_buffers(shard, comm, dtype)
        far = sssp_multi_gpu(shard, comm, users, Trace(shard.backend, comm), dtype)
        assert near.sources == far.sources
        found.append((near.sources, near.distances, far.distances))
    return found


def emulate(shard, comm, seed, lists):
    block = 32 << seed % 2
    blocks = 1 + (seed + comm.rank) % 3
    backend = EmulatedBackend(seed=10 * seed + comm.rank, block=block, blocks=blocks)
    return search_from(replace(shard, backend=backend), comm, lists)


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("case", [THIRDS, FEW], ids=lambda case: case.name)
def test_searches_translate_their_sources(case, num_ranks, order, monkeypatch):
    """Search from one vertex, from as many as one barrier translates, from one more, and from all (by verbs)."""
    n = case.num_vertices
    monkeypatch.setattr(multi_gpu_search, "MAX_SHARED_SOURCES", n - 1)
    all_vertices = np.random.default_rng(num_ranks).permutation(n).tolist()
    lists = [[0], [n - 1], [all_vertices[0]], all_vertices[:4], all_vertices[:5], all_vertices]
    shards = build_shards(case, num_ranks, order)
    by_rank = run_on_ranks(emulate, shards, num_ranks, lists)
    for k, users in enumerate(dict.fromkeys(map(tuple, lists))):
        levels = distance_parts(shards, oracles.bfs(case, users), LEVEL)
        paths = distance_parts(shards, oracles.sssp(case, users), state_dtype(shards[0].info))
        for of_rank, near, far in zip(by_rank, levels, paths, strict=True):
            positions, *distances = of_rank[lists.index(list(users))]
            assert positions == naive_positions(shards)[list(users)].tolist(), k
            np.testing.assert_array_equal(as_seen(distances[0]), near)
            np.testing.assert_array_equal(distances[1], far)


@pytest.mark.parametrize("users", [[3], [3, 8, 1, 0, 5]], ids=["one", "several"])
def test_lost_rank_ends_the_wait_of_the_others(users):
    def search_without_rank_1(shard, comm):
        shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
        assert require_bfs_buffers(shard, comm)
        if comm.rank == 1:
            threading.Timer(0.3, comm.abort, ("rank 1 is gone",)).start()
            return
        with pytest.raises(CommAborted, match="rank 1 is gone"):
            bfs_multi_gpu(shard, comm, users, Trace(shard.backend, comm))

    run_on_ranks(search_without_rank_1, build_shards(THIRDS, 3, "degree"))


def test_search_with_an_ended_wait_raises():
    """The abort word alone is set: the communicator has no error to raise."""

    def end_the_waits(shard, comm):
        shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
        assert require_bfs_buffers(shard, comm)
        comm.peer_buffers.bound[0][:] = 1
        if comm.rank == 1:
            comm.barrier()
            return
        with pytest.raises(CommAborted, match="was ended while its ranks waited"):
            bfs_multi_gpu(shard, comm, [3], Trace(shard.backend, comm))

    run_on_ranks(end_the_waits, build_shards(THIRDS, 2, "degree"))


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_only_persistent_multi_gpu_searches_translate_their_sources(monkeypatch, order):
    by_verbs = []
    backends = iter(range(2))

    def noted(shard, comm, users):
        by_verbs.append(users)
        return positions_of(shard, comm, users)

    monkeypatch.setattr(run_variant, "positions_of", noted)
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    ends = THIRDS.sources, THIRDS.targets
    with cluster, mg.from_edges(*ends, num_vertices=45, order=order, cluster=cluster) as g:
        for method, sources, num_calls in ("frontier", [4, 5, 9, 30, 43], 0), ("sweep", 7, 2), ("frontier", 7, 2):
            with mg.bfs(g, sources, method=method) as found:
                wanted = oracles.bfs(THIRDS, np.atleast_1d(sources).tolist())
                np.testing.assert_array_equal(found.distances.to_numpy(), wanted)
            assert len(by_verbs) == num_calls


def find_on_gpus(comm, xp, spec, lists):
    shard = build(parse_spec(spec), make_backend("cuda"), comm)
    require_in_rows(shard, comm)
    return [
        (found, positions_of(shard, comm, users))
        for users, (found, *_) in zip(lists, search_from(shard, comm, lists), strict=True)
    ]


@pytest.mark.gpus
@pytest.mark.parametrize("spec", ["rmat:14", "grid:60x70"])
def test_gpus_translate_sources_as_the_verbs_do(gang, spec):
    all_vertices = np.random.default_rng(0).permutation(4200).tolist()
    lists = [*([user] for user in all_vertices[:20]), all_vertices[:4], all_vertices[:5], all_vertices]
    results = check(gang.run(find_on_gpus, spec, lists, on_host=False))
    for ours, theirs in results[0]:
        assert ours == theirs
    assert all(result == results[0] for result in results)
