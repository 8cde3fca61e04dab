"""The workers that can be ranks, those that cannot, and how many sessions wait for."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from distributed import Scheduler
from distributed.protocol import pickle

from mgraph.cluster.gangs import Place
from mgraph.cluster.messages import PLUGIN
from mgraph.cluster.worker_plugin import RankPlugin
from mgraph.errors import ClusterError
from mgraph.formatting import counted

# How long a session with a given number of ranks waits for workers that do not answer.
INSTALL_S = 5.0
# Period at which heartbeats are checked.
TICK_S = 1.0


class Places:
    """The workers of a scheduler that can be ranks."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        # By worker that cannot be a rank: why, as far as known.
        self._unfit: dict[str, str] = {}
        # For each waiting session, the number of workers that it needs.
        self._needed: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def install(self, scheduler: Scheduler) -> None:
        """Send the plugin to all workers in the background, since a stopped worker does not answer."""
        self._scheduler = scheduler
        self._changed = asyncio.Condition()
        plugin = pickle.dumps(RankPlugin())
        # Workers that join later receive it when they register.
        scheduler.worker_plugins[PLUGIN] = plugin
        message = {"op": "plugin-add", "plugin": plugin, "name": PLUGIN}
        self._installing = {w: asyncio.create_task(self._install(w, message)) for w in scheduler.workers}
        # The event loop holds only weak references to tasks.
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

    async def finish_install(self, timeout_s: float) -> None:
        """Wait until the plugin is installed on each worker; workers that do not answer are unfit."""
        if self._installing:
            await asyncio.wait(self._installing.values(), timeout=timeout_s)
            for worker in [worker for worker, task in self._installing.items() if not task.done()]:
                if worker in self._scheduler.workers and worker not in self._places:
                    self._unfit[worker] = f"it did not answer within {timeout_s:g} s: stopped, or busy"
            self._installing = {}

    async def add(self, place: Place) -> None:
        """Add a worker that can be a rank."""
        self._places[place.worker] = place
        self._unfit.pop(place.worker, None)
        async with self._changed:
            self._changed.notify_all()

    def remove(self, worker: str) -> None:
        """Remove a worker."""
        self._places.pop(worker, None)
        self._unfit.pop(worker, None)

    @property
    def num_needed(self) -> int:
        """The largest number of workers that a session waits for."""
        return max(self._needed, default=0)

    def describe_wait(self) -> str:
        """Describe what a session waits for; nothing if none does any more."""
        unfit = f"; {self._describe_unfit()}" if self._unfit else ""
        installing = sum(not task.done() for task in self._installing.values())
        if installing:
            return f"{counted(installing, 'worker')} of {len(self._installing)} to answer{unfit}"
        if not self._needed:
            return ""
        return f"{counted(self.num_needed, 'worker')}, and {len(self._places)} can be ranks{unfit}"

    async def wait_for(self, count: int, timeout_s: float) -> list[Place]:
        """Wait for `count` workers that can be ranks; return all, in the order of ranks."""
        self._needed.append(count)
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: len(self._places) >= count)
        except TimeoutError:
            raise ClusterError(
                f"{counted(count, 'worker')} needed, {len(self._places)} present after {timeout_s:g} s: start more"
                + (f"; {self._describe_unfit()}" if self._unfit else "")
            ) from None
        finally:
            self._needed.remove(count)
        return sorted(self._places.values())

    async def count_present(self, count: int, timeout_s: float) -> int:
        """Wait for `count` workers that can be ranks; return how many there are in the end, at most as many."""
        with suppress(ClusterError):
            await self.wait_for(count, timeout_s)
        return min(count, len(self))

    def require_all(self) -> None:
        """Raise ClusterError if a worker cannot be a rank."""
        if self._unfit:
            raise ClusterError(f"{self._describe_unfit()}: install dask-mgraph there, or give num_ranks to do without")

    def _describe_unfit(self) -> str:
        reasons = ", ".join(f"{worker} ({why})" for worker, why in self._unfit.items())
        return f"mgraph does not work on {reasons}"


class Heartbeats:
    """Measures for how long each worker has sent no heartbeat while this process was running."""

    def __init__(self) -> None:
        self._updated_at = time.monotonic()
        # By worker: time of the last heartbeat, and seconds of silence since.
        self._silent: dict[str, tuple[float, float]] = {}

    def update(self, last_seen: dict[str, float]) -> None:
        """Record the time of each worker's last heartbeat; any clock serves, as only changes count."""
        now = time.monotonic()
        # If this process was suspended, heartbeats wait unread: cap the silence that one update can add.
        elapsed_s = min(now - self._updated_at, 2 * TICK_S)
        self._updated_at = now
        before = self._silent
        self._silent = {
            worker: (seen, before[worker][1] + elapsed_s if before.get(worker, (None,))[0] == seen else 0.0)
            for worker, seen in last_seen.items()
        }

    def silent_s(self, worker: str) -> float:
        """Return the seconds since a worker's last heartbeat."""
        return self._silent.get(worker, (0.0, 0.0))[1]
