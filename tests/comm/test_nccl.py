"""Failures over NCCL are raised in time, although its verbs cannot be observed, and the device stays usable."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest
from comm_ranks import AMPLE_S, Gang, Raised, check, open_nccl_alone

from mgraph.errors import CommAborted, CommTimeout, RendezvousTimeout

pytestmark = pytest.mark.timeout(180)


def hang_and_abort(comm, xp, victim: int):
    """Kill a rank while the other waits on the host, and abort from another thread, as a cluster does."""
    comm.barrier()
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Timer(1.0, comm.abort, (f"rank {victim} was lost",)).start()
    start = time.monotonic()
    with pytest.raises(CommAborted, match=f"rank {victim} was lost"):
        comm.barrier()
    seconds = time.monotonic() - start
    assert int(xp.arange(1000).sum()) == 499500, "the device is not usable after the abort"
    return seconds


def hang_in_the_stream(comm, xp, victim: int):
    """Kill a rank while the program waits on its stream, which only the end of the stream can wake."""
    comm.barrier()
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Timer(1.0, comm.abort, (f"rank {victim} was lost",)).start()
    start = time.monotonic()
    comm.allreduce(xp.zeros(1 << 20, np.int32), "min")
    xp.cuda.get_current_stream().synchronize()
    seconds = time.monotonic() - start
    with pytest.raises(CommAborted, match=f"rank {victim} was lost"):
        comm.barrier()
    return seconds


def hang_until_the_deadline(comm, xp, absent: int, on_stream: bool):
    """Wait for a rank that lives but calls no verb: the verb's deadline ends it, or the watchdog."""
    comm.barrier()
    if comm.rank == absent:
        time.sleep(10)
        return None
    start = time.monotonic()
    if on_stream:
        comm.allreduce(xp.zeros(1 << 20, np.int32), "min")
        xp.cuda.get_current_stream().synchronize()
    with pytest.raises(CommTimeout, match="not all of the"):
        comm.barrier()
    return time.monotonic() - start


@pytest.mark.gpus
@pytest.mark.parametrize("case", [hang_and_abort, hang_in_the_stream], ids=lambda case: case.__name__)
def test_abort_ends_nccl_verbs_after_a_peer_was_killed(case):
    gang = Gang("nccl", 2, AMPLE_S)
    try:
        results = gang.run(case, 1, on_host=False)
    finally:
        gang.kill()
    assert isinstance(results[1], Raised)
    assert check([results[0]])[0] < 10


@pytest.mark.gpus
@pytest.mark.parametrize("on_stream", [False, True], ids=["host", "stream"])
def test_deadline_ends_nccl_verbs_without_an_absent_peer(on_stream):
    # Opening takes a few seconds, under the same deadline.
    gang = Gang("nccl", 2, 20.0)
    try:
        results = gang.run(hang_until_the_deadline, 1, on_stream, on_host=False)
    finally:
        gang.kill()
    assert 15 < check([results[0]])[0] < 30


@pytest.mark.gpu
def test_opening_nccl_without_a_peer_ends_at_the_deadline():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=open_nccl_alone, args=(theirs, 5.0))
    process.start()
    assert ours.poll(60)
    error, total = ours.recv()
    process.join(30)
    assert process.exitcode == 0
    assert isinstance(error, RendezvousTimeout)
    assert "did not connect 2 ranks within 5 s" in str(error)
    assert total == 6, "the device is not usable after the failure"
