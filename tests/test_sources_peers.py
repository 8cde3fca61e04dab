"""Sources looked up through windows: where the verbs find them, on every rank, and searches go on from there."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import oracles
import pytest
from comm_ranks import check
from emulator.backend import EmulatedBackend
from naive_shard import build_shards, distance_parts
from naive_shard import positions_of as naive_positions
from on_ranks import run_on_ranks
from zoo import make_case, random_case

import mgraph as mg
from mgraph import jobs
from mgraph.algorithms.bfs_peers import bfs_peers, require_bfs_windows
from mgraph.algorithms.sources_peers import sources_peers
from mgraph.algorithms.sssp_peers import require_sssp_windows, sssp_peers
from mgraph.algorithms.traversal import Trace
from mgraph.build.build import build
from mgraph.cluster.in_process import InProcessCluster
from mgraph.comm.peers import require_windows
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.kernels.backend import make_backend
from mgraph.translate import positions_of
from mgraph.traversals import state_dtype
from mgraph.types import LEVEL

# Every third vertex has no arcs.
THIRDS = make_case("thirds", 45, [(v, v + 1) for v in range(0, 45, 3)])
FEW = make_case("few", 3, [(0, 2)])


def find_both(shard, comm, lists):
    """Return what is found of each list of user ids through windows, and by verbs."""
    assert require_windows(comm, shard.backend, 64)
    return [(sources_peers(shard, comm, users), positions_of(shard, comm, users)) for users in lists]


def emulate_both(shard, comm, seed, lists):
    block, blocks = 32 << seed % 2, 1 + (seed + comm.rank) % 3
    backend = EmulatedBackend(seed=10 * seed + comm.rank, block=block, blocks=blocks)
    return find_both(replace(shard, backend=backend), comm, lists)


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("case", [THIRDS, FEW], ids=lambda case: case.name)
def test_sources_are_where_the_verbs_find_them(case, num_ranks, order):
    """One, again another, one without arcs, as many as meet at once, one more, and all, for which blocks are many."""
    n = case.num_vertices
    everyone = np.random.default_rng(num_ranks).permutation(n).tolist()
    lists = [[0], [n - 1], [everyone[0]], everyone[:4], everyone[:5], everyone]
    shards = build_shards(case, num_ranks, order)
    for found in run_on_ranks(emulate_both, shards, num_ranks, lists):
        for users, (ours, theirs) in zip(lists, found, strict=True):
            assert ours == theirs == naive_positions(shards)[users].tolist()


def search_from_each(shard, comm, users):
    """Return the levels from each of the user ids, searched breadth first and for shortest paths in turn."""
    shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
    levels, dtype = [], state_dtype(shard.info)
    for user in users:
        assert require_bfs_windows(shard, comm)
        sources = sources_peers(shard, comm, [user])
        levels.append(bfs_peers(shard, comm, sources, Trace(shard.backend, comm)).distances)
        assert require_sssp_windows(shard, comm, dtype)
        assert sources_peers(shard, comm, [user]) == sources
        sssp_peers(shard, comm, sources, Trace(shard.backend, comm), dtype)
    return levels


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_searches_go_on_in_the_same_windows(num_ranks):
    case, users = random_case(1, 120), [5, 77, 5]
    shards = build_shards(case, num_ranks, "degree")
    found = run_on_ranks(search_from_each, shards, users)
    for user, levels in zip(users, zip(*found, strict=True), strict=True):
        for ours, wanted in zip(levels, distance_parts(shards, oracles.bfs(case, [user]), LEVEL), strict=True):
            np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("users", [[3], [3, 8, 1, 0, 5]], ids=["one", "several"])
def test_a_rank_that_is_gone_ends_the_wait_of_the_others(users):
    def come_alone(shard, comm):
        shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
        assert require_windows(comm, shard.backend, 64)
        if comm.rank == 1:
            threading.Timer(0.3, comm.abort, ("rank 1 is gone",)).start()
            return
        with pytest.raises(CommAborted, match="rank 1 is gone"):
            sources_peers(shard, comm, users)

    run_on_ranks(come_alone, build_shards(THIRDS, 3, "degree"))


def test_what_is_not_done_is_refused():
    """Also where nothing failed that the communicator knows of."""

    def end_the_waits(shard, comm):
        shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
        require_windows(comm, shard.backend, 64).given[0][:] = 1
        if comm.rank == 1:
            comm.barrier()
            return
        with pytest.raises(CommAborted, match="was ended while its ranks waited"):
            sources_peers(shard, comm, [3])

    run_on_ranks(end_the_waits, build_shards(THIRDS, 2, "degree"))


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_every_search_of_ranks_with_windows_begins_through_them(monkeypatch, order):
    by_verbs, backends = [], iter(range(2))

    def noted(shard, comm, users):
        by_verbs.append(users)
        return positions_of(shard, comm, users)

    monkeypatch.setattr(jobs, "positions_of", noted)
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    ends = THIRDS.sources, THIRDS.targets
    with cluster, mg.from_edges(*ends, num_vertices=45, order=order, cluster=cluster) as g:
        # The first finds no windows, and needs none.
        for method, sources, asked in ("sweep", 7, 2), ("frontier", [4, 5, 9, 30, 43], 2), ("sweep", 7, 2):
            with mg.bfs(g, sources, method=method) as found:
                wanted = oracles.bfs(THIRDS, np.atleast_1d(sources).tolist())
                np.testing.assert_array_equal(found.distances.to_numpy(), wanted)
            assert len(by_verbs) == asked


def find_both_on_gpus(comm, xp, spec, lists):
    return find_both(build(parse_spec(spec), make_backend("cuda"), comm), comm, lists)


@pytest.mark.gpus
@pytest.mark.parametrize("spec", ["rmat:14", "grid:60x70"])
def test_gpus_find_sources_where_the_verbs_do(gang, spec):
    everyone = np.random.default_rng(0).permutation(4200).tolist()
    lists = [*([user] for user in everyone[:20]), everyone[:4], everyone[:5], everyone]
    answers = check(gang.run(find_both_on_gpus, spec, lists, on_host=False))
    for ours, theirs in answers[0]:
        assert ours == theirs
    assert all(answer == answers[0] for answer in answers)
