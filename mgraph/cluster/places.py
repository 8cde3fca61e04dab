"""Which workers can be ranks: those that have the plugin, those that cannot, and how many are waited for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from distributed import Scheduler
from distributed.protocol import pickle

from mgraph.cluster.gangs import Place
from mgraph.cluster.messages import PLUGIN
from mgraph.cluster.worker_plugin import RankPlugin
from mgraph.errors import ClusterError
from mgraph.formatting import counted

# How long a session that says how many ranks it wants waits for workers that do not answer.
INSTALL_S = 5.0
# How often heartbeats are looked at.
TICK_S = 1.0


class Places:
    """The workers of a scheduler that can be ranks."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        # Why a worker cannot be a rank, as far as it is known.
        self._unfit: dict[str, str] = {}
        self._waited_for: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def install(self, scheduler: Scheduler) -> None:
        """Send the plugin to all workers, in the background: one that is stopped does not answer."""
        self._scheduler, self._changed = scheduler, asyncio.Condition()
        plugin = pickle.dumps(RankPlugin())
        # Workers that come later get it when they register.
        scheduler.worker_plugins[PLUGIN] = plugin
        message = {"op": "plugin-add", "plugin": plugin, "name": PLUGIN}
        self._installing = {w: asyncio.create_task(self._install(w, message)) for w in scheduler.workers}
        # The event loop does not keep tasks.
        self._tasks = set(self._installing.values())

    async def _install(self, worker: str, message: dict[str, Any]) -> None:
        answers = await self._scheduler.broadcast(msg=message, workers=[worker], on_error="return")
        answer = answers[worker]
        if worker not in self._scheduler.workers:
            return
        if isinstance(answer, BaseException):
            self._unfit[worker] = f"{type(answer).__name__}: {answer}"
        elif answer["status"] != "OK":
            self._unfit[worker] = answer["exception_text"]

    async def settle(self, timeout_s: float) -> None:
        """Wait until each worker has answered whether it can be a rank; one that does not is noted as unfit."""
        if self._installing:
            await asyncio.wait(self._installing.values(), timeout=timeout_s)
            for worker in [worker for worker, task in self._installing.items() if not task.done()]:
                if worker in self._scheduler.workers and worker not in self._places:
                    self._unfit[worker] = f"it did not answer within {timeout_s:g} s: stopped, or busy"
            self._installing = {}

    async def add(self, place: Place) -> None:
        """Take note of a worker that can be a rank."""
        self._places[place.worker] = place
        self._unfit.pop(place.worker, None)
        async with self._changed:
            self._changed.notify_all()

    def remove(self, worker: str) -> None:
        """Forget a worker."""
        self._places.pop(worker, None)
        self._unfit.pop(worker, None)

    @property
    def waited_for(self) -> int:
        """The most workers that a session waits for."""
        return max(self._waited_for, default=0)

    async def wait_for(self, count: int, timeout_s: float) -> list[Place]:
        """Return the workers that can be ranks, in the order of ranks, when there are enough."""
        self._waited_for.append(count)
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: len(self._places) >= count)
        except TimeoutError:
            raise ClusterError(
                f"{counted(count, 'worker')} wanted, {len(self._places)} there after {timeout_s:g} s: start more"
                + (f"; {self._describe_unfit()}" if self._unfit else "")
            ) from None
        finally:
            self._waited_for.remove(count)
        return sorted(self._places.values())

    def require_all(self) -> None:
        """Raise ClusterError where a worker cannot be a rank."""
        if self._unfit:
            raise ClusterError(f"{self._describe_unfit()}: install it there, or give num_ranks to do without")

    def _describe_unfit(self) -> str:
        reasons = ", ".join(f"{worker} ({why})" for worker, why in self._unfit.items())
        return f"mgraph does not work on {reasons}"


class Heartbeats:
    """How long workers have been silent, as far as this process was there to hear them."""

    def __init__(self) -> None:
        self._looked_at = time.monotonic()
        self._silent: dict[str, tuple[float, float]] = {}

    def look(self, last_seen: dict[str, float]) -> None:
        """Take note of when each worker was last heard of, by any clock: only its changes count."""
        now = time.monotonic()
        # Where this process itself did not run, heartbeats wait to be read: that is no silence.
        elapsed_s, self._looked_at = min(now - self._looked_at, 2 * TICK_S), now
        before = self._silent
        self._silent = {
            worker: (seen, before[worker][1] + elapsed_s if before.get(worker, (None,))[0] == seen else 0.0)
            for worker, seen in last_seen.items()
        }

    def silent_s(self, worker: str) -> float:
        """Return for how many seconds nothing was heard of a worker."""
        return self._silent.get(worker, (0.0, 0.0))[1]
