"""What every traversal takes and gives: its result on one rank, and the trace of its supersteps."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.types import Array

# Supersteps that a launch tells one by one; what comes after them is added up in the last.
TRACE_ROWS = 1 << 12


@dataclass
class Trace:
    """Times of phases and facts of supersteps; the backend is waited for where a phase ends."""

    backend: Backend
    comm: Communicator
    seconds: dict[str, float] = field(default_factory=dict)
    # Who starts the supersteps: "steps", the host; "fused", one kernel; "windows", one on each rank, which meet.
    form: str = "steps"

    def __post_init__(self) -> None:
        self._bytes_before = self._bytes_stepped = self.comm.bytes_sent
        self._stepped = time.perf_counter()
        self._began: float | None = None
        self._ended: float | None = None
        self._noted: list[dict] = []
        self._told: Callable[[], list[dict]] | None = None

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Add the time of a block to the phase `name`."""
        self._began = self._ended = None
        return _Phase(self, name)

    def begin_phase(self) -> None:
        """Begin the phase at hand here, where what it needs is known: it may be launched already."""
        self._began = self._began or time.perf_counter()

    def end_phase(self) -> None:
        """End the phase at hand here, where all was waited for that belongs to it: there may be launches behind."""
        self._ended = time.perf_counter()

    def superstep(self, method: str, frontier: int, arcs: int, microseconds: float | None = None, **more: int) -> None:
        """Note what one superstep did, and the bytes that this rank sent since the one before.

        Parameters
        ----------
        method
            What it did, in the word of its loop: push, heavy, pull, walk, sweep, split, scan, ...
        frontier
            Vertices over all ranks it started from; of a sweep, those it lowered.
        arcs
            Arcs that this rank looked at.
        microseconds
            How long it took; by default, the time since the one before, or since the phase began.
        **more
            What else is of interest, of this rank.
        """
        now, sent = time.perf_counter(), self.comm.bytes_sent
        if microseconds is None:
            microseconds = round(1e6 * (now - self._stepped), 1)
        facts = {"method": method, "frontier": frontier, "arcs": arcs, "microseconds": microseconds}
        self.supersteps.append({**facts, "bytes": sent - self._bytes_stepped, **more})
        self._stepped, self._bytes_stepped = now, sent

    def fused(self, told: Callable[[], list[dict]], form: str = "fused") -> None:
        """Note the supersteps of one launch, which `told` puts in words once somebody asks."""
        noted, self.form = self.supersteps, form
        # What supersteps behind the launch tell of is theirs alone.
        self._stepped, self._bytes_stepped = time.perf_counter(), self.comm.bytes_sent
        self._told = lambda: noted + told()

    @property
    def supersteps(self) -> list[dict]:
        """What every superstep did."""
        if self._told:
            self._noted, self._told = self._told(), None
        return self._noted

    @property
    def bytes_sent(self) -> int:
        """What this rank sent since the trace began."""
        return self.comm.bytes_sent - self._bytes_before


class _Phase(AbstractContextManager[None]):
    """A block that is timed; a class, as to enter a generator takes twice as long."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name

    def __enter__(self) -> None:
        self._started = self._trace._stepped = time.perf_counter()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            return
        ended = self._trace._ended
        if ended is None:
            self._trace.backend.synchronize()
            ended = time.perf_counter()
        began = self._trace._began or self._started
        seconds, name = self._trace.seconds, self._name
        seconds[name] = seconds.get(name, 0.0) + ended - began


@dataclass
class Traversal:
    """One rank's answer for its owned vertices, in its own order.

    `distances` hold `unreached_of(dtype)` and `predecessors`, which are positions, hold
    `none_of(dtype)` where a vertex is not reached. A source is its own predecessor. How many of them are
    reached, and their arcs, are there where the search has counted them, and so is of all ranks how many distances
    are so long that their dtype may not hold what is farther. `in_user_ids` are both, where they were translated right
    behind the search. `everywhere` are the distances of all states, where every rank knows them: until the next search.
    `sources` are the positions of those that a search was given by user id, without arcs or not. `num_rows` has
    the trace of a search breadth first in one launch: one for every level, up to `TRACE_ROWS`, but of walks.
    """

    distances: Array
    predecessors: Array | None
    num_reached: int | None = None
    reached_arcs: int | None = None
    in_user_ids: list[Array] | None = None
    num_beyond: int | None = None
    everywhere: Array | None = None
    sources: list[int] | None = None
    num_rows: int | None = None
