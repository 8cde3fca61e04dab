"""What rank 0 of a Dask cluster does: asked through the scheduler, by a client that shows it, or an event of Dask's.

Ranks count their steps in any case, and a worker's event loop reads the numbers: when it is asked, and for calls of
more than EVENT_S once in this time, for those who follow the topic.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from distributed import Client, Worker
from distributed.client import ClosedClientError
from tornado.ioloop import PeriodicCallback

from mgraph.backends.base import Backend
from mgraph.backends.progress import Phase, seen_phase
from mgraph.cluster.messages import Ticket

# The time between two questions, at least.
PERIOD_S = 0.3
# The topic of the events, and the time between two.
TOPIC = "mgraph-progress"
EVENT_S = 1.0


class _Running(NamedTuple):
    """A call, its backend, and what this did before."""

    job: str
    ticket: Ticket
    rank: int
    backend: Backend
    before: Phase | None


class SeenCall:
    """The call that a worker's rank runs, as its event loop sees it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._running: _Running | None = None
        # Stopped with the worker.
        worker.periodic_callbacks[TOPIC] = events = PeriodicCallback(self._log_event, EVENT_S * 1000)
        events.start()

    @contextmanager
    def call_of(self, job: str, ticket: Ticket, rank: int, backend: Backend) -> Iterator[None]:
        """Let a call be seen in the block."""
        self._running = _Running(job, ticket, rank, backend, backend.phase)
        try:
            yield
        finally:
            self._running = None

    def report(self, gang: str, session: str) -> tuple | None:
        """Return what the rank does in a call of the session, None if that is unknown.

        With its steps until now, its age, and a number that no other phase has.
        """
        running = self._running
        if running is None or (running.ticket.gang, running.ticket.session) != (gang, session):
            return None
        if (phase := _phase_of(running)) is None:
            return None
        age = time.monotonic() - phase.began
        return phase.name, phase.total, phase.unit, phase.per_step, phase.done, age, phase.began

    def _log_event(self) -> None:
        """Log what rank 0 does, unless it is unknown or new."""
        running = self._running
        if running is None or running.rank or (phase := _phase_of(running)) is None:
            return
        seconds = time.monotonic() - phase.began
        if seconds >= EVENT_S:
            # Sent as plain numbers: loops may count in NumPy's.
            steps = {"done": int(phase.done), "total": int(phase.total), "seconds": round(seconds, 1)}
            self._worker.log_event(TOPIC, {"job": running.job, "phase": phase.name, **steps})


def _phase_of(running: _Running) -> Phase | None:
    """Return the phase of a call, None before its first one."""
    phase = seen_phase(running.backend.phase)
    return None if phase is running.before else phase


class Watch:
    """A function that returns what is known, and asks for more without waiting for the reply."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session
        self._phase: Phase | None = None
        self._number: float | None = None
        self._is_asking = False
        self._asked = 0.0

    def __call__(self) -> Phase | None:
        now = time.monotonic()
        if not self._is_asking and now - self._asked > PERIOD_S:
            self._is_asking = True
            self._asked = now
            # The loop ends with the client.
            with suppress(RuntimeError):
                self._client.loop.add_callback(self._ask)
        return self._phase

    async def _ask(self) -> None:
        try:
            # None if the client was closed.
            if (scheduler := self._client.scheduler) is not None:
                self._keep(await scheduler.mgraph_phase(session=self._session))
        except (OSError, ClosedClientError, asyncio.CancelledError):
            # A lost worker or scheduler fails the call itself.
            self._phase = None
        finally:
            self._is_asking = False

    def _keep(self, facts: tuple | None) -> None:
        """Keep a reply; the phase of the one before is the same object as long as it goes on."""
        if facts is None:
            self._phase = self._number = None
            return
        name, total, unit, per_step, done, age, number = facts
        if self._phase is None or number != self._number:
            self._phase = Phase(name, total, unit, per_step, began=time.monotonic() - age)
            self._number = number
        self._phase.done = done
