"""Fails calls on paused workers: Dask begins no task on a worker until it has freed memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from distributed import Scheduler
from distributed.core import Status
from distributed.scheduler import WorkerState

from mgraph.cluster.gangs import Call
from mgraph.cluster.worker_memory import NO_LIMIT
from mgraph.errors import ClusterError
from mgraph.formatting import readable_bytes

# The previous call may have caused the pause: then the worker resumes at Dask's next check, every 0.1 s.
RESUME_S = 1.0
POLL_S = 0.05


class Pauses:
    """The scheduler plugin's view of paused workers.

    Attributes
    ----------
    scheduler
        Set when the plugin starts.
    """

    scheduler: Scheduler

    def __init__(
        self,
        call_of: dict[str, Call],
        fail_task: Callable[[str, Exception], None],
        ask_holders: Callable[[str], None],
    ) -> None:
        self._call_of = call_of
        self._fail_task = fail_task
        self._ask_holders = ask_holders
        # By worker that its nanny ended: why.
        self._ended: dict[str, str] = {}

    async def refuse(self, workers: tuple[str, ...]) -> None:
        """Raise ClusterError if one of the workers is paused and does not resume within RESUME_S."""
        deadline = time.monotonic() + RESUME_S
        while paused := next(filter(self.is_paused, workers), None):
            if time.monotonic() > deadline:
                raise self.error(paused)
            await asyncio.sleep(POLL_S)

    def is_paused(self, worker: str) -> bool:
        """Return whether Dask has paused a worker."""
        return worker in self.scheduler.workers and self.scheduler.workers[worker].status == Status.paused

    def error(self, worker: str) -> ClusterError:
        """Return the error of a call that waits for a paused worker."""
        return ClusterError(_describe(self.scheduler.workers[worker]))

    def on_event(self, topic: str, event: Any) -> None:
        """Record workers that are ended by their nanny, and check the tasks on paused workers."""
        if topic == "worker-restart-memory":
            used = readable_bytes(event["rss"])
            self._ended[event["worker"]] = f"its nanny ended it, as it used {used}, too much of its limit: {NO_LIMIT}"
        elif isinstance(event, dict) and event.get("action") == "worker-status-change" and event["status"] == "paused":
            # The next call needs a lease again, and is refused if the worker stays paused.
            self._ask_holders(topic)
            self.scheduler.loop.call_later(RESUME_S, self._request_waiting, topic)

    def end_waiting(self, key: str, worker: str) -> None:
        """Fail a task of a call that a paused worker has received and not begun."""
        if key in self._call_of and self.is_paused(worker):
            self._fail_task(key, self.error(worker))

    def cause_of_end(self, worker: str) -> str | None:
        """Return why a lost worker was ended by its nanny, or None."""
        return self._ended.pop(worker, None)

    def _request_waiting(self, worker: str) -> None:
        """Request from a still paused worker which of its tasks of calls have not begun."""
        if self.is_paused(worker):
            tasks = self.scheduler.workers[worker].processing
            if keys := [task.key for task in tasks if task.key in self._call_of]:
                self.scheduler.worker_send(worker, {"op": "mgraph-waiting", "keys": keys})


def _describe(worker: WorkerState) -> str:
    used = readable_bytes(worker.metrics.get("memory", 0))
    limit = worker.memory_limit
    of = f" of its memory limit, {readable_bytes(limit)}" if limit else ""
    return (
        f"worker {worker.address} is paused by Dask, so that no call begins on it: it uses {used}{of}; "
        f"close graphs and results, give workers more memory, or {NO_LIMIT}"
    )
