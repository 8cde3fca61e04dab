"""Functions that cluster tests run on ranks; workers import this module."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.progress import Phase
from mgraph.backends.totals import total as total_of
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeChunk
from mgraph.errors import WouldNotFit
from mgraph.generate.rmat import Rmat
from mgraph.rank_jobs.table_rows import ResultRows

# The array that `keep_array` stored last.
_kept_arrays: list[weakref.ref] = []


def total(rank: Rank, *args: Any) -> tuple:
    """Return the rank, the number of ranks, and a sum over all ranks."""
    return rank.index, rank.size, rank.comm.sum(rank.index + 1)[0], args


def where(rank: Rank) -> tuple:
    return os.getpid(), threading.get_ident(), rank.backend.name, getattr(rank.backend, "threads", None)


def kinds_of_links(rank: Rank) -> list[str]:
    """Return the types of the sockets to the other ranks."""
    return [type(link.sock).__name__ for link in rank.comm._network._links.values()]


def kind_of_comm(rank: Rank) -> str:
    return type(rank.comm).__name__


def nothing(rank: Rank) -> None:
    pass


def echo(rank: Rank, value: Any) -> Any:
    """Return what the caller has sent."""
    return value


def length(rank: Rank, part: np.ndarray) -> tuple:
    return rank.index, part.nbytes, float(part[-1])


def keep(rank: Rank, key: str, value: Any) -> None:
    rank.objects[key] = value


def fill(rank: Rank, key: str, num_bytes: int) -> None:
    """Store an array of `num_bytes`, with all pages written."""
    rank.objects[key] = np.ones(num_bytes, np.uint8)


def keep_late(rank: Rank, graph: str, key: str, delay_s: float) -> None:
    """Store a result after the last verb, as every job does."""
    time.sleep(delay_s)
    rank.objects[key] = bytearray(1 << 20)


def keep_behind_a_failure(rank: Rank, key: str, delay_s: float) -> None:
    """Fail on rank 0 long before the others store an object."""
    rank.comm.barrier()
    if rank.index == 0:
        raise ZeroDivisionError
    time.sleep(delay_s)
    rank.objects[key] = 1


class Tracked:
    """An argument with a count of its living copies in each process."""

    living: ClassVar[weakref.WeakSet[Tracked]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.living.add(self)

    def __reduce__(self) -> tuple:
        return Tracked, ()


def hold_and_fail(rank: Rank, held: Tracked) -> None:
    """Fail on every rank."""
    raise ZeroDivisionError


def hold_in_a_verb(rank: Rank, held: Tracked) -> None:
    """Fail on rank 0 while the others wait for it."""
    if rank.index == 0:
        raise ZeroDivisionError
    rank.comm.barrier()


def hold_behind_a_failure(rank: Rank, held: Tracked) -> None:
    """Fail on rank 0 long before the others return."""
    rank.comm.barrier()
    if rank.index == 0:
        raise ZeroDivisionError
    time.sleep(0.5)


def keys_of_process(rank: Rank) -> list[str]:
    """Return the keys of all objects that this rank's worker stores, of any session."""
    from distributed.worker import Worker

    (worker,) = Worker._instances
    return [key for objects in worker.plugins["mgraph"]._objects.values() for key in objects]


def recall(rank: Rank, key: str) -> Any:
    return rank.objects[key]


def fail_on(rank: Rank, bad: int, delay_s: float = 0.0) -> None:
    """Fail on one rank while the others wait for it."""
    if rank.index == bad:
        time.sleep(delay_s)
        raise ZeroDivisionError(f"rank {bad} fails")
    rank.comm.barrier()


def leave_waiting(rank: Rank, seconds: float) -> None:
    """Make rank 0 wait for rank 1."""
    if rank.index == 1:
        time.sleep(seconds)
    rank.comm.barrier()


def keep_array(rank: Rank, key: str) -> None:
    """Store an array, and note it for `array_is_there`."""
    rank.objects[key] = array = np.ones(1000)
    _kept_arrays[:] = [weakref.ref(array)]


def array_is_there(rank: Rank) -> bool:
    return _kept_arrays[-1]() is not None


def stop_self(rank: Rank, victim: int) -> None:
    """Stop one rank's process while no other waits for it."""
    if rank.index == victim:
        os.kill(os.getpid(), signal.SIGSTOP)


def stop_behind(rank: Rank, victim: int) -> Any:
    """Stop one rank's process when its result is fetched."""
    return _Stopping(os.getpid()) if rank.index == victim else rank.index


class _Stopping:
    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __reduce__(self) -> tuple:
        os.kill(self.pid, signal.SIGSTOP)
        return int, ()


def fail_alike(rank: Rank) -> None:
    raise ZeroDivisionError("every rank fails")


@dataclass(frozen=True)
class Unallocatable(Rmat):
    """A graph that fits by its plan; its edges need more memory than any machine has, perhaps on one rank alone."""

    on_rank: int | None = None

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        # Ranks have equal shares of the chunks, in their order.
        if self.on_rank is None or (k >= num_chunks // 2) == self.on_rank:
            np.empty(1 << 58, np.int64)
        return super().chunk(k, num_chunks, backend)


def exhaust_next_search() -> None:
    """Make the next search of this process ask for more memory than any machine has."""
    from mgraph.rank_jobs import traversal

    real = traversal.search

    def search(*args: Any) -> None:
        traversal.search = real
        np.empty(1 << 58, np.int64)

    traversal.search = search


class TooLarge(WouldNotFit):
    """An error with its own arguments and two built-in bases."""

    def __init__(self, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(f"{needed_bytes} bytes are needed and {free_bytes} are free")
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class Unsendable(Exception):
    """An error that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def raise_error(rank: Rank, kind: type[Exception], args: tuple, cause: type[Exception]) -> None:
    """Raise an error with a cause on rank 0, while rank 1 waits for it."""
    if rank.index == 0:
        try:
            raise cause
        except cause as caught:
            raise kind(*args) from caught
    rank.comm.barrier()


@dataclass(frozen=True)
class TooLargeForOneRank(Rmat):
    """A graph that turns out not to fit while it is read, if one rank reads all of it."""

    marker: str = ""

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        # Threads of a rank read chunks 0 and 1 at once: each marks its own first, so that one of them sees both marks.
        marks = [pathlib.Path(f"{self.marker}-{os.getpid()}-{chunk}") for chunk in range(2)]
        if k < 2:
            marks[k].touch()
            if all(mark.exists() for mark in marks):
                for mark in marks:
                    mark.unlink(missing_ok=True)
                raise WouldNotFit("more than its size predicts")
        return super().chunk(k, num_chunks, backend)


def linger(rank: Rank, log: str, name: str, seconds: float) -> None:
    """Log the begin and the end of this call, with verbs between them."""
    write(log, f"{name} begins on {rank.index}")
    rank.comm.barrier()
    time.sleep(seconds)
    rank.comm.barrier()
    write(log, f"{name} ends on {rank.index}")


def nap(marker: str, seconds: float = 60.0) -> None:
    """Wait outside of verbs until the test writes the file `marker`-over."""
    pathlib.Path(f"{marker}-begun").write_text("")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not os.path.exists(f"{marker}-over"):
        time.sleep(0.02)


def wait_for(rank: Rank, late: int, marker: str) -> int:
    """Wait in a verb on all ranks but `late`, which computes."""
    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    if rank.index == late:
        nap(marker)
    return rank.comm.sum(1)[0]


def compute(rank: Rank, marker: str) -> None:
    """Compute on all ranks, in no verb."""
    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    nap(marker)


@dataclass(frozen=True)
class LingeringRows(ResultRows):
    """Rows of a result that say when the first are there, and make the last only when the test is over."""

    marker: str = ""

    def times(self, rank: Rank, key: str) -> int:
        return 2 * super().times(rank, key)

    def own(self, rank: Rank, key: str, names: Sequence[str]) -> Iterator[Any]:
        rows = list(super().own(rank, key, names))
        yield from rows
        pathlib.Path(f"{self.marker}-{rank.index}").write_text("")
        nap(self.marker)
        yield from rows


def launch_on_and_on(rank: Rank, marker: str) -> None:
    """Launch kernels without a verb between them, until they are stopped."""
    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    values = np.arange(1 << 16)
    while True:
        total_of(rank.backend, values)


def interrupt_caller(rank: Rank, pid: int, marker: str) -> None:
    """Interrupt the calling process, as Ctrl-C does, while the ranks wait for one that calls no verb."""
    import signal

    pathlib.Path(f"{marker}-{rank.index}").write_text("")
    if rank.index == 0:
        time.sleep(0.3)
        os.kill(pid, signal.SIGINT)
        time.sleep(1.0)
    else:
        rank.comm.barrier()


def rest_in_steps(rank: Rank, steps: int, seconds: float) -> None:
    """Do nothing for so many seconds, in a phase of so many steps."""
    rank.backend.phase = phase = Phase("resting", steps)
    for _ in phase.steps(range(steps)):
        time.sleep(seconds / steps)


def write(log: str, line: str) -> None:
    with open(log, "a") as lines:
        lines.write(f"{time.time()} {line}\n")


def wait_once(rank: Rank, graph: str, marker: str) -> int:
    """Wait for a rank that never comes, in the first call alone; then return the vertices of the shard."""
    first = pathlib.Path(f"{marker}-{rank.size}-{rank.index}")
    if not os.path.exists(f"{marker}-over"):
        first.write_text("")
        if rank.index == 0:
            rank.comm.barrier()
        time.sleep(60)
    return rank.objects[graph].info.num_vertices
