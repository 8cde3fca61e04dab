"""One conformance suite over threads, sockets and NCCL; failures are raised in time and name the rank."""

from __future__ import annotations

import os
import signal
import threading
import time

import comm_cases
import numpy as np
import pytest
from backends import gpu_count
from comm_cases import CASES, same
from comm_ranks import AMPLE_S, Gang, Raised, check, open_in_process, repeat, run_threads

from mgraph.comm.threads import open_threads
from mgraph.errors import CommAborted, CommMismatch, CommTimeout, UsageError

pytestmark = pytest.mark.timeout(180)

SIZES = (1, 2, 3, 4, 7)


# At least one size, so that a machine without a GPU lists the tests that it skips.
GPU_SIZES = [size for size in SIZES if size <= gpu_count()] or [1]


OPENED = [*(f"{t}-{p}" for t in ("threads", "sockets") for p in SIZES), "tls-2", "tls-3"]


@pytest.fixture(params=OPENED, scope="module")
def comms(request):
    """Communicators of ranks in this process, shared by all cases."""
    transport, size = request.param.split("-")
    comms = open_in_process(transport, int(size))
    yield comms
    check(run_threads(comms, lambda comm, xp: comm.close()))


@pytest.fixture(params=[2, 3], scope="module")
def process_gang(request):
    """Socket ranks in processes of their own."""
    gang = Gang("sockets", request.param, AMPLE_S)
    yield gang
    gang.close()


@pytest.fixture(params=GPU_SIZES, scope="module")
def nccl_gang(request):
    """One process and one GPU a rank."""
    gang = Gang("nccl", request.param, AMPLE_S)
    yield gang
    gang.close()


# Conformance.


@pytest.mark.covering
@pytest.mark.parametrize("case", [*CASES, comm_cases.allreduce_in_rank_order], ids=lambda case: case.__name__)
def test_verbs_in_one_process(comms, case):
    check(run_threads(comms, case))


@pytest.mark.covering
@pytest.mark.parametrize("case", [*CASES, comm_cases.allreduce_in_rank_order], ids=lambda case: case.__name__)
def test_verbs_between_processes(process_gang, case):
    check(process_gang.run(case))


@pytest.mark.gpu
@pytest.mark.parametrize("on_host", [False, True], ids=["device", "host"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_verbs_over_nccl(nccl_gang, case, on_host):
    check(nccl_gang.run(case, on_host=on_host))


@pytest.mark.ci
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_large_arrays_in_one_process(transport, size):
    comms = open_in_process(transport, size)
    check(run_threads(comms, comm_cases.large))
    check(run_threads(comms, lambda comm, xp: comm.close()))


@pytest.mark.ci
def test_large_arrays_between_processes(process_gang):
    check(process_gang.run(comm_cases.large))


@pytest.mark.gpu
def test_large_arrays_over_nccl(nccl_gang):
    check(nccl_gang.run(comm_cases.large, on_host=False))


def test_alltoallv_returns_aligned_arrays_that_own_their_memory():
    """Kernels are compiled for aligned arrays, and write to what they receive."""

    def sizes(comm, xp):
        for length in (1, 3, 70_001, 300_001):
            for part in comm.alltoallv([np.full(length, comm.rank, np.float64) for _ in range(comm.size)]):
                assert part.flags.carray
                assert part.flags.aligned
            same(part, np.full(length, comm.size - 1, np.float64))

    comms = open_in_process("sockets", 2)
    check(run_threads(comms, sizes))
    check(run_threads(comms, lambda comm, xp: comm.close()))


# Failures.


def wait_for_absent(comm, xp, absent: int):
    """Wait for a rank that calls no verb; return the error and the seconds until it was raised."""
    start = time.monotonic()
    if comm.rank == absent:
        return None
    with pytest.raises((CommAborted, CommTimeout)) as caught:
        repeat(comm.barrier)
    # Every later verb raises it too.
    with pytest.raises(type(caught.value)):
        comm.sum(1)
    return caught.value, time.monotonic() - start


@pytest.mark.covering
@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_missing_rank_is_named_at_the_deadline(transport, size):
    comms = open_in_process(transport, size, timeout_s=0.5)
    results = run_threads(comms, wait_for_absent, 1)
    for error, seconds in check([result for rank, result in enumerate(results) if rank != 1]):
        assert isinstance(error, CommTimeout)
        assert "rank 1 did not answer within 0.5 s" in str(error)
        assert 0.4 < seconds < 5
    for comm in comms:
        comm.close()


@pytest.mark.covering
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_abort_wakes_every_rank(transport, size):
    comms = open_in_process(transport, size)
    absent = size - 1 if size > 1 else None
    threading.Timer(0.3, comms[0].abort, ("the user pressed a key",)).start()
    if absent is None:
        time.sleep(0.5)
    results = run_threads(comms, wait_for_absent, absent)
    for error, seconds in check([result for rank, result in enumerate(results) if rank != absent]):
        assert isinstance(error, CommAborted)
        assert "the user pressed a key" in str(error)
        assert seconds < 5
    for comm in comms:
        comm.close()


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_every_rank_runs_each_callback_once_when_one_fails(transport, size):
    def record_callbacks(comm, xp):
        called = []
        comm.when_failed(lambda: called.append("early"))
        if comm.rank == 0:
            comm.barrier()  # all ranks have registered; some may not have returned from the barrier yet
            comm.abort("had enough")
        with pytest.raises(CommAborted, match="had enough"):
            repeat(comm.barrier)
        comm.when_failed(lambda: called.append("late"))
        comm.abort("again")
        comm.close()
        return called

    assert check(run_threads(open_in_process(transport, size), record_callbacks)) == [["early", "late"]] * size


MISMATCHES = {
    "op": (lambda comm: comm.allreduce(np.zeros(4), "min"), lambda comm: comm.allreduce(np.zeros(4), "max")),
    "dtype": (lambda comm: comm.allreduce(np.zeros(4), "min"), lambda comm: comm.allreduce(np.zeros(4, "f4"), "min")),
    "length": (lambda comm: comm.allreduce(np.zeros(4), "min"), lambda comm: comm.allreduce(np.zeros(5), "min")),
    "verb": (lambda comm: comm.barrier(), lambda comm: comm.allreduce(np.zeros(4), "min")),
    "root": (lambda comm: comm.broadcast(np.zeros(4), 0), lambda comm: comm.broadcast(np.zeros(4), 1)),
    "parts": (
        lambda comm: comm.alltoallv([np.zeros(4)] * comm.size),
        lambda comm: comm.alltoallv([np.zeros(4, np.int8)] * comm.size),
    ),
}


@pytest.mark.parametrize("how", MISMATCHES)
@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_different_calls_raise_a_mismatch_on_every_rank(transport, how):
    def disagree(comm, xp):
        call = MISMATCHES[how][comm.rank == 2]
        with pytest.raises(CommMismatch, match="every rank calls the same verbs"):
            repeat(call, comm)

    comms = open_in_process(transport, 3, timeout_s=20)
    check(run_threads(comms, disagree))
    for comm in comms:
        comm.close()


@pytest.mark.parametrize("transport", ["threads", "sockets", "tls"])
def test_verb_fails_after_another_rank_has_closed(transport):
    # A rank that waits in a verb for another fails too when one closes: here all have left it.
    have_left = threading.Barrier(3)

    def close_early(comm, xp):
        comm.barrier()
        have_left.wait()
        if comm.rank == 1:
            comm.close()
        else:
            with pytest.raises(CommAborted, match="rank 1 closed the communicator"):
                comm.barrier()

    comms = open_in_process(transport, 3)
    check(run_threads(comms, close_early))
    for comm in comms:
        comm.close()
    with pytest.raises(CommAborted):
        comms[1].barrier()


def test_zero_ranks_are_refused():
    with pytest.raises(UsageError, match="0 ranks"):
        open_threads(0)


def die(comm, xp, victim: int, nbytes: int):
    """Kill a rank while the others wait for it."""

    def wait() -> None:
        # The victim may die while others are still in the barrier that it has left.
        comm.barrier()
        if comm.rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        repeat(comm.allreduce, np.zeros(nbytes, np.uint8), "max")

    start = time.monotonic()
    with pytest.raises(CommAborted) as caught:
        wait()
    return str(caught.value), time.monotonic() - start


@pytest.mark.parametrize("nbytes", [8, pytest.param(8 << 20, marks=pytest.mark.ci)])
def test_killed_process_is_named_at_once(nbytes):
    gang = Gang("sockets", 3, AMPLE_S)
    try:
        results = gang.run(die, 1, nbytes)
    finally:
        gang.kill()
    assert isinstance(results[1], Raised)
    for cause, seconds in (check([results[0]])[0], check([results[2]])[0]):
        assert "rank 1 is gone" in cause
        assert seconds < 5
