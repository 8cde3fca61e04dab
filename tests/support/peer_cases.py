"""Programs of ranks that share peer buffers; spawned processes import this module."""

from __future__ import annotations

import functools
import os
import pathlib
import signal
import threading
import time
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from emulator.model.primitives import pass_on

from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu, require_bfs_buffers
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.sssp.persistent_multi_gpu import require_sssp_buffers, sssp_multi_gpu
from mgraph.api.traversal import state_dtype
from mgraph.backends.base import Backend
from mgraph.backends.create import make_backend
from mgraph.cluster.base import Rank
from mgraph.comm.base import Communicator
from mgraph.comm.peer_memory import PeerBuffers, require_peer_buffers, wait_for_ranks
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build

N = 96
ROUNDS = 7


@functools.cache
def _backend_of(thread: int, name: str, rank: int) -> Backend:
    from emulator.backend import EmulatedBackend

    return EmulatedBackend(seed=rank, block=32, blocks=1 + rank) if name == "numpy" else make_backend("cuda")


def open_both(comm: Communicator, xp: ModuleType) -> tuple[Backend, PeerBuffers]:
    backend = _backend_of(threading.get_ident(), xp.__name__, comm.rank)
    buffers = require_peer_buffers(comm, backend, 3 * N * 4)
    assert buffers is not None
    return backend, buffers


def pass_rounds(comm: Communicator, xp: ModuleType, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return this rank's peer buffer and what the kernel received, after some rounds."""
    backend, buffers = open_both(comm, xp)
    buffers.own.view(np.uint32)[2 * N : 3 * N] = 2**32 - 1
    out = xp.zeros(2 * rounds + 1, np.int64)
    pass_on[backend](0, N, *buffers.bound, rounds, out)
    comm.wait()
    words = backend.to_host(buffers.own)[: 3 * N * 4].view(np.uint32).reshape(3, N)
    received = backend.to_host(out)
    return {
        "data": words[rounds % 2],
        "least": words[2],
        "sums": received[:-1:2],
        "blocks": received[1::2],
        "passed": received[-1],
    }


def check_rounds(results: list[dict[str, Any]], rounds: int = ROUNDS) -> None:
    size = len(results)
    data = np.arange(N) + np.arange(size)[:, None]
    for k in range(rounds):
        data = np.roll(data + np.arange(size)[:, None], 1, axis=0)
        for result in results:
            assert result["sums"][k] == data.sum()
    for rank, result in enumerate(results):
        np.testing.assert_array_equal(result["data"], data[rank])
        np.testing.assert_array_equal(result["least"], np.arange(N) + (rank - 1) % size)
        assert result["passed"] == 1
        assert (result["blocks"] == result["blocks"][0]).all()


def twice(comm: Communicator, xp: ModuleType) -> list[dict[str, Any]]:
    """Launch twice over the same peer buffers, for different numbers of rounds, and once over larger ones."""
    results = [pass_rounds(comm, xp, 3), pass_rounds(comm, xp)]
    before = comm.peer_buffers
    grown = require_peer_buffers(comm, open_both(comm, xp)[0], 2 * before.own.nbytes)
    assert grown is comm.peer_buffers is not before
    return [*results, pass_rounds(comm, xp, 4)]


def leave_early(comm: Communicator, xp: ModuleType, abort_after_s: float = 0.0) -> int:
    """Run rank 0 for more barriers than the others, until an abort; return whether it passed all."""
    backend, buffers = open_both(comm, xp)
    rounds = 5 if comm.rank == 0 else 2
    out = xp.full(2 * rounds + 1, -1, np.int64)
    if comm.rank == 0 and abort_after_s:
        threading.Timer(abort_after_s, comm.abort, ("rank 1 has left early",)).start()
    pass_on[backend](0, N, *buffers.bound, rounds, out)
    if comm.rank == 1 and not abort_after_s:
        comm.abort("rank 1 has left early")
    backend.synchronize()
    return int(backend.to_host(out)[-1])


def die_in_a_launch(comm: Communicator, xp: ModuleType) -> tuple[int, float]:
    """Kill rank 1 while both ranks write into each other's memory; rank 0 aborts a second later, as a cluster does."""
    backend, buffers = open_both(comm, xp)
    rounds = 10_000_000
    out = xp.full(2 * rounds + 1, -1, np.int64)
    comm.barrier()
    if comm.rank == 1:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        threading.Timer(1.5, comm.abort, ("rank 1 was lost",)).start()
    pass_on[backend](0, N, *buffers.bound, rounds, out)
    with pytest.raises(CommAborted, match="rank 1 was lost"):
        comm.wait()
    started = time.monotonic()
    backend.synchronize()
    seconds = time.monotonic() - started
    assert int(xp.arange(1000).sum()) == 499500, "the device still works"
    return int(backend.to_host(out[-1:])[0]), seconds


def loop_until_lost(rank: Rank, marker: str) -> None:
    """Write into the other ranks' memory, with a barrier each round, until the gang is lost."""
    buffers = require_peer_buffers(rank.comm, rank.backend, 3 * N * 4)
    rounds = 10_000_000
    xp = rank.backend.xp
    out = xp.zeros(2 * rounds + 1, np.int64)
    rank.comm.barrier()
    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    pass_on[rank.backend](0, N, *buffers.bound, rounds, out)
    wait_for_ranks(rank.comm, rank.backend)


def search_until_lost(rank: Rank, marker: str, algorithm: str) -> None:
    """Search through peer buffers repeatedly until the gang is lost."""
    comm = rank.comm
    backend = rank.backend
    shard = build(parse_spec("rmat:14"), backend, comm)
    dtype = state_dtype(shard.info)
    trace = Trace(backend, comm)
    assert require_bfs_buffers(shard, comm) if algorithm == "bfs" else require_sssp_buffers(shard, comm, dtype)
    comm.barrier()
    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    while True:
        bfs_multi_gpu(shard, comm, [0], trace) if algorithm == "bfs" else sssp_multi_gpu(shard, comm, [0], trace, dtype)
