"""Results of a traversal on one rank, and the trace of its supersteps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from mgraph.algorithms.common.checkpoints import Checkpoints
from mgraph.backends.base import Backend
from mgraph.backends.compile_clock import CLOCK
from mgraph.backends.progress import Phase
from mgraph.comm.base import Communicator
from mgraph.types import Array

# Supersteps of a launch that have a trace record each; later ones are accumulated in the last.
TRACE_RECORDS = 1 << 12


def watched_and_listed(until: Sequence[int]) -> tuple[int, Sequence[int]]:
    """Return the target that a persistent search watches first, -1 for none, and all where they are several."""
    return (until[0] if until else -1), (until if len(until) > 1 else ())


@dataclass
class Trace:
    """Times of phases and records of supersteps; a phase ends when the backend is idle.

    Compiling kernels is a phase of its own and no part of another.

    Attributes
    ----------
    shows
        Whether its phases are what the rank is seen doing; not those of one of many searches, which are counted.
    checkpoints
        What keeps the state of the search from time to time.
    """

    backend: Backend
    comm: Communicator
    shows: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)

    def __post_init__(self) -> None:
        self._bytes_before = self._bytes_stepped = self.comm.bytes_sent
        self._streamed_before = self.backend.link.streamed_bytes
        self._stepped = time.perf_counter() - CLOCK.seconds
        self._began: float | None = None
        self._ended: float | None = None
        self._noted: list[dict] = []
        self._unread: Callable[[], list[dict]] | None = None

    def phase(self, name: str, vertices: int = 0) -> AbstractContextManager[None]:
        """Add the time of a block to the phase `name`.

        `vertices`: their number, if each is on at most one frontier; progress then counts vertices instead of arcs.
        """
        self._began = self._ended = None
        if self.shows:
            # The frontier is that of all ranks, the arcs are those of this one.
            steps = (vertices, "vertices", 1 / self.comm.size) if vertices else (0, "arcs")
            self.backend.phase = Phase(name, *steps)
        return _Phase(self, name)

    def begin_phase(self) -> None:
        """Begin the current phase here, where its inputs are known: it may be launched already."""
        self._began = self._began or time.perf_counter()

    def end_phase(self) -> None:
        """End the current phase here, where its launches are done: later ones may be in flight."""
        self._ended = time.perf_counter()

    def move_seconds(self, phase: str, to: str, seconds: float) -> None:
        """Count seconds of a phase in another one."""
        if seconds:
            self.seconds[phase] -= seconds
            self.seconds[to] = self.seconds.get(to, 0.0) + seconds

    def superstep(self, method: str, frontier: int, arcs: int, microseconds: float | None = None, **more: int) -> None:
        """Record one superstep, and the bytes that this rank sent since the one before.

        Parameters
        ----------
        method
            What it did, as its loop calls it: push, heavy, pull, chunked, sweep, split, scan, ...
        frontier
            Vertices over all ranks that it started from; in a sweep, those it lowered.
        arcs
            Arcs that this rank scanned.
        microseconds
            How long it took; by default, the time since the one before, or since the phase began.
        **more
            Further numbers, of this rank.
        """
        now = time.perf_counter() - CLOCK.seconds
        sent = self.comm.bytes_sent
        if microseconds is None:
            microseconds = round(1e6 * (now - self._stepped), 1)
        self.supersteps.append(
            {
                "method": method,
                "frontier": frontier,
                "arcs": arcs,
                "microseconds": microseconds,
                "bytes": sent - self._bytes_stepped,
                **more,
            }
        )
        self._stepped = now
        self._bytes_stepped = sent
        if self.shows and (phase := self.backend.phase):
            phase.advance(frontier if phase.total else arcs)

    def add_persistent(self, records: Callable[[], list[dict]]) -> None:
        """Record the supersteps of one launch; `records` formats them when they are read."""
        noted = self.supersteps
        # Supersteps after the launch count time and bytes from here.
        self._stepped = time.perf_counter() - CLOCK.seconds
        self._bytes_stepped = self.comm.bytes_sent
        self._unread = lambda: noted + records()

    @property
    def supersteps(self) -> list[dict]:
        """The records of all supersteps."""
        if self._unread:
            self._noted = self._unread()
            self._unread = None
        return self._noted

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank sent since the trace began."""
        return self.comm.bytes_sent - self._bytes_before

    def stats(self) -> dict[str, Any]:
        """Return what a job reports of this rank: seconds of phases, supersteps, bytes sent and streamed."""
        return {
            "seconds": self.seconds,
            "supersteps": self.supersteps,
            "bytes_sent": self.bytes_sent,
            "link_bytes": self.backend.link.streamed_bytes - self._streamed_before,
        }


class _Phase(AbstractContextManager[None]):
    """A timed block; a class, since entering a generator takes twice as long."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace = trace
        self._name = name

    def __enter__(self) -> None:
        self._started = time.perf_counter()
        self._compiled = CLOCK.seconds
        self._trace._stepped = self._started - self._compiled

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            return
        ended = self._trace._ended
        if ended is None:
            self._trace.backend.synchronize()
            ended = time.perf_counter()
        took = ended - (self._trace._began or self._started)
        seconds = self._trace.seconds
        if compiled := CLOCK.seconds - self._compiled:
            # Perhaps before the phase began, where its inputs became known.
            took = min(took, max(0.0, ended - self._started - compiled))
            seconds["compile"] = seconds.get("compile", 0.0) + compiled
        name = self._name
        seconds[name] = seconds.get(name, 0.0) + took


@dataclass
class Traversal:
    """One rank's result for its owned vertices, in their order on the rank.

    Attributes
    ----------
    distances, predecessors
        `unreached_of(dtype)` and `none_of(dtype)` where a vertex is not reached. Predecessors are positions; a source
        is its own predecessor.
    num_reached, reached_arcs
        Reached vertices and their arcs, where the search counted them.
    in_user_ids
        The arrays that the request wants in user ids, where their translation was launched right after the search.
    num_beyond
        How many distances, over all ranks, are so long that their dtype may not hold longer ones, where counted.
    all_distances
        The distances of all states, where every rank has them; valid until the next search.
    sources
        Positions of the sources of a search that was given user ids, with or without arcs.
    variant
        The name of the variant that found it, once it is returned.
    reached
        The states of the reached vertices in any order, where the search of one CPU rank has listed them; where these
        are few, an array of their own.
    words
        Level and parent of each vertex in one word, `level << 32 | parent`, where the search of one CPU rank has them
        so, and after them that of an unreached vertex; `distances` and `predecessors` are then views of them.
    """

    distances: Array
    predecessors: Array | None
    num_reached: int | None = None
    reached_arcs: int | None = None
    in_user_ids: list[Array] | None = None
    num_beyond: int | None = None
    all_distances: Array | None = None
    sources: list[int] | None = None
    variant: str = ""
    reached: Array | None = None
    words: Array | None = None
