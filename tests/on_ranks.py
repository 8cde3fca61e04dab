"""Run a rank program on every shard, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard import Shard


def run_on_ranks(program: Callable, shards: Sequence[Shard], *args: Any, parts: Sequence | None = None) -> list:
    """Return [program(shard, comm, *part, *args) of every rank], where parts[r] is a tuple for rank r."""
    comms = open_threads(len(shards))
    parts = parts or [()] * len(shards)

    def run(shard: Shard, comm: Communicator, part: tuple) -> Any:
        try:
            return program(shard, comm, *part, *args)
        except BaseException:
            comm.abort()
            raise

    with ThreadPoolExecutor(len(shards)) as pool:
        futures = [pool.submit(run, *of_rank) for of_rank in zip(shards, comms, parts, strict=True)]
    # The rank that failed first, not those that were only told of it.
    errors = [future.exception() for future in futures if future.exception()]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]


class SharedMemory(Communicator):
    """The least that runs: host arrays, one barrier, a shared list with one place a rank."""

    def __init__(self, rank: int, table: list, meeting: threading.Barrier) -> None:
        self.rank, self.size, self.bytes_sent = rank, len(table), 0
        self._table, self._meeting = table, meeting

    def _exchange(self, mine: Any) -> list:
        self._table[self.rank] = mine
        self.barrier()
        everything = list(self._table)
        self.barrier()
        return everything

    def barrier(self) -> None:
        self._meeting.wait(timeout=30)

    def broadcast(self, x: np.ndarray, root: int) -> np.ndarray:
        x[...] = self._exchange(x.copy())[root]
        return x

    def allreduce(self, x: np.ndarray, op: str) -> np.ndarray:
        x[...] = {"min": np.minimum, "max": np.maximum, "sum": np.add}[op].reduce(self._exchange(x.copy()))
        return x

    def allgather(self, part: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[...] = np.concatenate(self._exchange(part.copy()))
        return out

    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [theirs[self.rank] for theirs in self._exchange([part.copy() for part in parts])]

    def close(self) -> None:
        """Nothing to end."""

    def abort(self, cause: str = "aborted") -> None:
        self._meeting.abort()


def open_threads(size: int) -> list[SharedMemory]:
    """Return the communicators of `size` threads."""
    table, meeting = [None] * size, threading.Barrier(size)
    return [SharedMemory(rank, table, meeting) for rank in range(size)]
