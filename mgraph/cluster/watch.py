"""What rank 0 of a Dask cluster does: asked through the scheduler, by a client that shows it.

Nothing is sent while nobody looks: ranks count their steps in any case, and a worker's event loop reads the numbers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from distributed import Client
from distributed.client import ClosedClientError

from mgraph.backends.base import Backend
from mgraph.backends.progress import Phase
from mgraph.cluster.messages import Ticket

# The time between two questions, at least.
PERIOD_S = 0.3


class SeenCall:
    """The call that a worker's rank runs, as its event loop sees it."""

    def __init__(self) -> None:
        # The gang and session of the call, its backend, and what this did before.
        self._running: tuple[tuple[str, str], Backend, Phase | None] | None = None

    @contextmanager
    def call_of(self, ticket: Ticket, backend: Backend) -> Iterator[None]:
        """Let a call be seen in the block."""
        self._running = (ticket.gang, ticket.session), backend, backend.phase
        try:
            yield
        finally:
            self._running = None

    def report(self, gang: str, session: str) -> tuple | None:
        """Return what the rank does in a call of the session, None if that is unknown.

        With its steps until now, its age, and a number that no other phase has.
        """
        running = self._running
        if running is None or running[0] != (gang, session):
            return None
        phase = running[1].phase
        if phase is None or phase is running[2]:
            return None
        age = time.monotonic() - phase.began
        return phase.name, phase.total, phase.unit, phase.per_step, phase.done, age, phase.began


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
