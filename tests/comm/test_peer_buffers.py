"""Peer buffers: kernels of all ranks write into each other's memory, and are aborted when a rank fails."""

from __future__ import annotations

import peer_cases
import pytest
import rank_programs as programs
from comm_ranks import Gang, Raised, check, run_threads
from emulator.backend import EmulatedBackend
from killer import Killer, exist

import mgraph as mg
from mgraph.backends.create import make_backend
from mgraph.comm.peer_memory import MAX_RANKS, require_peer_buffers
from mgraph.comm.threads import open_threads
from mgraph.errors import CommAborted, GangLost

pytestmark = pytest.mark.interleavings

SIZES = [1, 2, 3, 4]


@pytest.mark.parametrize("size", SIZES)
def test_ranks_write_into_each_others_buffers(size):
    comms = open_threads(size, timeout_s=60)
    for results in zip(*check(run_threads(comms, peer_cases.twice)), strict=True):
        rounds = len(results[0]["sums"])
        peer_cases.check_rounds(list(results), rounds)


@pytest.mark.parametrize("size", [2, 4])
def test_abort_ends_the_wait_for_a_rank(size):
    comms = open_threads(size, timeout_s=60)
    assert check(run_threads(comms, peer_cases.leave_early))[0] == 0
    with pytest.raises(CommAborted, match="left early"):
        comms[0].barrier()


def test_abort_reaches_the_word_of_open_buffers():
    (comm,) = open_threads(1)
    backend = EmulatedBackend()
    peer_buffers = require_peer_buffers(comm, backend, 64)
    assert peer_buffers.bound[0].tolist() == [0]
    comm.abort()
    assert peer_buffers.bound[0].tolist() == [1]
    late = []
    comm.when_failed(lambda: late.append(1))
    assert late == [1]


def unreachable(comm, xp):
    backend = EmulatedBackend()
    if comm.rank == 1:
        backend.reach = lambda name, num_bytes: None
    return (
        require_peer_buffers(comm, backend, 64),
        comm.peer_buffers,
        comm.may_have_peer_memory,
        len(backend.peer_buffers),
    )


def test_no_rank_has_buffers_if_one_pair_lacks_peer_access():
    assert check(run_threads(open_threads(3, timeout_s=60), unreachable)) == [(None, None, False, 1)] * 3


def test_no_rank_has_buffers_beyond_the_capacity_of_a_head():
    results = check(run_threads(open_threads(MAX_RANKS + 1, timeout_s=60), unreachable))
    assert results == [(None, None, True, 0)] * (MAX_RANKS + 1)


def share_a_gpu(comm, xp):
    return require_peer_buffers(comm, make_backend("cuda"), 64)


@pytest.mark.gpu
def test_ranks_on_one_gpu_get_no_peer_buffers():
    """Their kernels might wait for each other without running at the same time."""
    assert check(run_threads(open_threads(2, timeout_s=60), share_a_gpu)) == [None, None]


@pytest.mark.gpu
def test_one_rank_on_a_gpu():
    import cupy

    (comm,) = open_threads(1)
    for result in peer_cases.twice(comm, cupy):
        peer_cases.check_rounds([result], len(result["sums"]))


@pytest.mark.gpus
def test_gpus_write_into_each_others_buffers(gang):
    for results in zip(*check(gang.run(peer_cases.twice, on_host=False)), strict=True):
        peer_cases.check_rounds(list(results), len(results[0]["sums"]))


@pytest.mark.gpus
def test_abort_ends_the_wait_for_a_gpu(gang):
    assert check(gang.run(peer_cases.leave_early, 1.0, on_host=False))[0] == 0


@pytest.mark.gpus
def test_gpu_still_works_after_another_rank_is_killed_in_a_launch():
    gang = Gang("nccl", 2, 60.0)
    try:
        results = gang.run(peer_cases.die_in_a_launch, on_host=False)
    finally:
        gang.kill()
    assert isinstance(results[1], Raised)
    passed, seconds = check([results[0]])[0]
    assert passed == 0
    assert seconds < 5


@pytest.mark.gpus
@pytest.mark.parametrize("loop", ["barrier", "bfs", "sssp"])
def test_worker_killed_in_a_launch_is_named_and_the_next_call_works(tmp_path, loop):
    marker = str(tmp_path / "m")
    case = (peer_cases.loop_until_lost,) if loop == "barrier" else (peer_cases.search_until_lost, loop)
    with mg.connect(num_ranks=2, backend="cuda") as cluster:
        killer = Killer(cluster.run(programs.where)[1][0], exist(f"{marker}-0", f"{marker}-1"))
        with pytest.raises(GangLost) as lost:
            cluster.run(case[0], marker, *case[1:])
        killer.check_prompt()
        assert lost.value.rank == 1
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
