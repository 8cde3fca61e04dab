"""A cluster of a soak: its processes, what its clients report, and what is counted while no fault is injected."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from dask_processes import dask_process, wait_until

from faults import leftovers
from faults.processes import ClientProcess, Hung, Monitor, Run
from faults.soak_tally import Tally

# The time that ranks of the soak's clients wait for each other.
VERB_TIMEOUT_S = 5.0
# A call may wait for workers, for a stopped client's lease, or for a stopped worker; then it must have ended.
HANG_S = 90.0
# Nothing of these may be there while all clients have closed what they had.
NONE_LEFT = ("leases", "calls", "keys of calls", "tasks", "objects", "data", "handlers' tasks")
# What else may be more than before the first fault: Dask keeps connections.
SLACK = {"sockets": 12, "eventpolls": 2}
# The most sockets of one process for each worker and client that it may be connected to, beside one for each thread of
# the clients: every one that waits for a lease has a connection, which Dask keeps.
SOCKETS_EACH = 8
# The memory of a process is compared with that at its third pause: before, it loads and compiles what it uses. A pause
# after fewer answers than these, on a busy machine, does not count.
WARM_PAUSES = 2
PAUSE_ANSWERS = 100
MIB = 1 << 20


class SoakClient:
    """A client's process, when it last said something, and what it had at its first pause."""

    def __init__(self, process: ClientProcess, threads: int) -> None:
        self.process = process
        self.threads = threads
        self.heard = time.monotonic()
        self.before: dict[str, int] | None = None


class SoakCluster:
    """A cluster that lives under faults, with its clients."""

    def __init__(self, run: Run, monitor: Monitor, chance: random.Random, tally: Tally) -> None:
        self.run = run
        self.monitor = monitor
        self.chance = chance
        self.tally = tally
        self.clients: list[SoakClient] = []
        self.scheduler: int = monitor.client.run_on_scheduler(os.getpid)
        self._most_ranks = monitor.num_workers
        self._num_started = 0
        self._seed = chance.random()
        self._added = contextlib.ExitStack()
        # When a worker was killed, by its address; when processes were stopped, and for how long.
        self._kills: dict[str, float] = {}
        self._stops: list[tuple[float, float]] = []
        self._resuming: list[threading.Timer] = []
        self._shared = leftovers.SharedMemory(run.mark)
        self._before: dict[str, int] | None = None
        self._num_clients = 0
        # By kind and process: its memory at every pause that counts, and how many answers there were at the last one.
        self._memory: dict[str, dict[int, list[float]]] = {}
        self._num_answered = tally.outcomes["answered"]

    # What faults do.

    def draw_worker(self) -> tuple[str, int]:
        """Draw a worker: its address and process id."""
        workers = self.monitor.workers() or self._wait_for_workers()
        return self.chance.choice(sorted(workers.items()))

    def draw_client(self) -> SoakClient | None:
        """Draw a client that is not the first, which lives as long as the cluster."""
        return self.chance.choice(self.clients[1:]) if self.clients[1:] else None

    def kill(self, pid: int, worker: str) -> None:
        """Kill a worker, and note when."""
        self._kills[worker] = time.time()
        _signal(pid, signal.SIGKILL)

    def stop(self, pid: int, seconds: float) -> None:
        """Stop a process for some seconds."""
        self._stops.append((time.time(), seconds))
        _signal(pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, _signal, (pid, signal.SIGCONT))
        timer.daemon = True
        timer.start()
        self._resuming.append(timer)

    def start_client(self) -> None:
        """Start a client with some ranks and threads; the first has all ranks."""
        threads = self.chance.choice([1, 1, 2, 8])
        self._num_started += 1
        process = ClientProcess(
            self.run,
            "faults.soak_client",
            scheduler_file=self.monitor.file,
            ranks=self.chance.randint(1, self._most_ranks) if self.clients else self._most_ranks,
            seed=f"{self._seed} {self._num_started}",
            threads=threads,
            out=str(self.run.folder / "out" / f"answer-{self._num_started}"),
            verb_timeout_s=VERB_TIMEOUT_S,
        )
        self.clients.append(SoakClient(process, threads))

    def kill_client(self, client: SoakClient) -> None:
        """Kill a client."""
        self.clients.remove(client)
        client.process.kill()

    def add_worker(self) -> None:
        """Start a worker of the same kind beside those that are there."""
        options = "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--preload", "faults.stacks"
        command = "worker", "--scheduler-file", self.monitor.file, *options
        self._added.enter_context(dask_process(*command, environment=self.run.environment))
        self.monitor.num_workers += 1

    @property
    def can_retire(self) -> bool:
        return self.monitor.num_workers > self._most_ranks

    def retire_worker(self) -> None:
        """Retire a worker, with its nanny."""
        worker, _ = self.draw_worker()
        if self.monitor.client.retire_workers([worker], close_workers=True, remove=True):
            self.monitor.num_workers -= 1

    def restart(self) -> None:
        """Restart all workers."""
        self._resume_all()
        self._wait_for_workers()
        self.monitor.client.restart(timeout=self.run.deadline_s)

    # What clients report.

    def watch(self, seconds: float, show: Callable[[], None]) -> None:
        """Read what the clients report for some seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read_all()
            show()
            time.sleep(0.05)

    def _read_all(self) -> None:
        for client in self.clients:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._note(client, client.process.next())
            if time.monotonic() - client.heard > HANG_S:
                silent = f"a client of {client.threads} threads has ended no call within {HANG_S:g} s"
                raise Hung(f"{silent}\n{self.run.stacks_of_all()}")

    def _note(self, client: SoakClient, reply: dict[str, Any]) -> dict[str, Any]:
        """Count what a client reports, and record what is wrong."""
        client.heard = time.monotonic()
        if (name := reply.get("job")) is None:
            return reply
        outcome = reply["outcome"]
        self.tally.jobs[name] += 1
        self.tally.outcomes[outcome] += 1
        if outcome in ("wrong", "foreign"):
            self.tally.problems.append(f"{name}: {outcome}: {reply['error']}")
        if name == "check" and outcome != "answered":
            self.tally.problems.append(f"a call without a fault ended with {reply['error']}")
        killed = self._kills.get(reply.get("worker") or "", math.inf)
        if outcome == "named" and reply["began"] < killed < reply["at"] and not self._was_stopped(killed, reply["at"]):
            self.tally.add_time("worker", reply["at"] - killed)
        return reply

    def _was_stopped(self, begin: float, end: float) -> bool:
        """Return whether any process was stopped in this time, or has just gone on."""
        return any(at < end and begin < at + seconds + 1.0 for at, seconds in self._stops)

    # What holds while no fault is injected.

    def pause(self) -> None:
        """Wait until the faults are over; the next calls must succeed, and nothing may be left behind."""
        self._resume_all()
        self._wait_for_workers()
        self.tally.num_pauses += 1
        for client in self.clients:
            client.process.send(do="pause")
        for client in self.clients:
            self._check_client(client, self._receive(client, "paused"))
        self._check_left()
        self._measure()
        for client in self.clients:
            client.process.send(do="go on")
            client.heard = time.monotonic()

    def _receive(self, client: SoakClient, key: str) -> dict[str, int]:
        """Return a reply of this key; job lines come before it."""
        while True:
            try:
                reply = self._note(client, client.process.next(self.run.deadline_s))
            except queue.Empty:
                raise Hung(f"no {key!r} within {self.run.deadline_s:g} s\n{self.run.stacks_of_all()}") from None
            if key in reply:
                return reply[key]

    def _check_client(self, client: SoakClient, counts: dict[str, int]) -> None:
        if client.before is None:
            client.before = counts
        self._add_left("client", leftovers.grown(client.before, counts, SLACK))

    def _check_left(self) -> None:
        """Count what is left on scheduler and workers, in files and in shared memory."""
        last: dict[str, str] = {}

        def is_clean() -> bool:
            nonlocal last
            counts = self.monitor.count()
            last = {name: str(n) for name, n in counts.items() if n and name.partition(": ")[2] in NONE_LEFT}
            counts["shared memory"] = self._shared.left()
            counts |= leftovers.of_folders(self.run.scratch, self.run.folder / "out")
            if self._before is None:
                self._before = counts
                self._num_clients = len(self.clients)
            # A session of one connection for each client.
            num_clients = len(self.clients)
            more = num_clients - self._num_clients
            allowed = {name: self._before[name] + more for name in ("scheduler: sessions", "scheduler: clients")}
            # Each client has a session, and each session at most a gang of all workers.
            allowed["scheduler: gangs"] = num_clients
            of_gangs = "workers: networks", "workers: gangs with objects"
            allowed |= dict.fromkeys(of_gangs, num_clients * self.monitor.num_workers)
            # In each gang a rank shares a segment with every other one.
            allowed["workers: descriptors segments"] = num_clients * (self.monitor.num_workers - 1)
            sockets = SOCKETS_EACH * (self.monitor.num_workers + num_clients)
            sockets += sum(client.threads for client in self.clients)
            allowed |= {f"{where}: descriptors sockets": sockets for where in ("scheduler", "workers")}
            last |= leftovers.grown(self._before | allowed, counts, SLACK)
            return not last

        with contextlib.suppress(AssertionError):
            wait_until(is_clean, self.run.settle_s)
        self._add_left("cluster", last)
        for path in (self.run.folder / "out").glob("*.npz"):
            try:
                with np.load(path) as archive:
                    dict(archive)
            except Exception as error:
                self.tally.problems.append(f"{path.name} is not whole: {error!r}")

    def _add_left(self, where: str, left: dict[str, str]) -> None:
        for name, more in left.items():
            self.tally.leftovers[f"{where}: {name}"] += 1
            self.tally.problems.append(f"{where}: {name} left behind: {more}")

    def _measure(self) -> None:
        """Record the memory of all processes that may live as long as the cluster, if enough was answered since."""
        num_answered = self.tally.outcomes["answered"]
        if num_answered - self._num_answered < PAUSE_ANSWERS:
            return
        self._num_answered = num_answered
        living = {"scheduler": [self.scheduler], "first client": [self.clients[0].process.pid]}
        living["workers"] = list(self.monitor.workers().values())
        for name, pids in living.items():
            for pid in pids:
                found = self._memory.setdefault(name, {}).setdefault(pid, [])
                found.append(psutil.Process(pid).memory_info().rss / MIB)

    def _wait_for_workers(self) -> dict[str, int]:
        self.monitor.wait_for_workers()
        return self.monitor.workers()

    def _resume_all(self) -> None:
        """Wait until all stopped processes go on."""
        while self._resuming:
            self._resuming.pop().join()

    # The end.

    def kill_scheduler(self) -> None:
        """Kill the scheduler: every client must know."""
        at = time.time()
        _signal(self.scheduler, signal.SIGKILL)
        for client in self.clients:
            reply: dict[str, Any] = {}
            while reply.get("outcome", "answered") == "answered":
                try:
                    reply = self._note(client, client.process.next(self.run.deadline_s))
                except queue.Empty:
                    silent = f"no error after the scheduler was killed\n{self.run.stacks_of_all()}"
                    raise Hung(silent) from None
            self.tally.add_time("scheduler", reply["at"] - at)

    def end(self, *, has_scheduler: bool) -> None:
        """Make all clients end; record the memory that was measured."""
        for client in self.clients:
            client.process.end()
        self.clients.clear()
        if has_scheduler:
            self._check_left()
        for name, found in self._memory.items():
            for values in (values for values in found.values() if len(values) > WARM_PAUSES + 1):
                self.tally.add_memory(name, values[WARM_PAUSES], values[-1])

    def close(self) -> None:
        """Kill the clients that are left, and end the workers that were added."""
        for timer in self._resuming:
            timer.cancel()
        for client in self.clients:
            client.process.kill()
        for pid in leftovers.marked(self.run.mark):
            _signal(pid, signal.SIGCONT)
        self._added.close()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
