"""The processes of a campaign: clients, commands and clusters; one that hangs is reported with all stacks."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import queue
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from dask_processes import ENVIRONMENT, dask_process, scheduler_by_hand, wait_until

from faults import leftovers, stacks

# From a fault to its error, and from a call to its result; the machine may be busy with other tests.
DEADLINE_S = 60.0
# Until a client is ready: it runs every phase some times, and with empty caches compiles their kernels.
READY_S = 4 * DEADLINE_S
# Resources that are freed in the background are gone after this time.
SETTLE_S = 15.0


class Hung(AssertionError):
    """A call did not end; the message has the stacks of all processes."""


class Died(AssertionError):
    """A client ended by itself; the message has the end of its stderr."""


class Run:
    """The folders and the environment of a campaign's processes.

    Attributes
    ----------
    folder
        Contains the inputs, and the outputs in out/.
    scratch
        The TMPDIR of all processes.
    """

    def __init__(
        self, folder: pathlib.Path, deadline_s: float = DEADLINE_S, settle_s: float = SETTLE_S, ending_s: float = 10.0
    ) -> None:
        self.folder = folder
        self.deadline_s = deadline_s
        self.settle_s = settle_s
        self.ending_s = ending_s
        self.mark = secrets.token_hex(8)
        self.scratch = folder / "tmp"
        self.stacks = folder / "stacks"
        for made in (self.scratch, self.stacks):
            made.mkdir()
        variables = {"TMPDIR": self.scratch, leftovers.MARK: self.mark, stacks.FOLDER: self.stacks}
        self.environment = ENVIRONMENT | {name: str(value) for name, value in variables.items()}
        self.environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}

    def stacks_of_all(self) -> str:
        return stacks.collect(self.stacks, leftovers.marked(self.mark))

    def end(self) -> list[int]:
        """Wait until all processes have ended; kill and return those that do not end."""
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not leftovers.marked(self.mark), self.ending_s)
        left = leftovers.marked(self.mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        return left


class ClientProcess:
    """A process of `faults.client`, or of another module that speaks as it does."""

    def __init__(self, run: Run, module: str = "faults.client", **options: Any) -> None:
        self.run = run
        self._written = run.folder / f"client-{secrets.token_hex(4)}.err"
        with open(self._written, "w") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps({"folder": str(run.folder), **options})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                env=run.environment,
                # `python -m` searches its working directory first, which must contain no module.
                cwd=run.scratch,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.ready = self.receive("ready", READY_S)
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self.process.pid

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def request(self, key: str, **what: Any) -> Any:
        """Send a request and return the reply, or its value if `key` is its only key."""
        self.send(**what)
        return self.receive(key)

    def send(self, **what: Any) -> None:
        assert self.process.stdin is not None
        try:
            print(json.dumps(what), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise self._died() from None

    @property
    def silent(self) -> bool:
        """Whether no line of the client waits to be received."""
        return self._lines.empty()

    def receive(self, about: str, deadline_s: float | None = None) -> Any:
        """Return the next reply, which must have the key `about`; raise Hung after the deadline."""
        within_s = self.run.deadline_s if deadline_s is None else deadline_s
        try:
            reply = self.next(within_s)
        except queue.Empty:
            raise Hung(f"no {about!r} within {within_s:g} s\n{self.run.stacks_of_all()}") from None
        assert about in reply, reply
        return reply if len(reply) > 1 else reply[about]

    def next(self, timeout_s: float = 0.0) -> dict[str, Any]:
        """Return the next reply; raise queue.Empty if there is none in time."""
        line = self._lines.get(timeout=timeout_s) if timeout_s else self._lines.get_nowait()
        if not line:
            raise self._died()
        return json.loads(line)

    def _died(self) -> Died:
        code = self.process.wait()
        return Died(f"the client ended with {code}:\n{self._written.read_text()[-3000:]}")

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self._close()

    def end(self) -> None:
        """Make the client close everything and end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(self.run.deadline_s)
        except subprocess.TimeoutExpired:
            raise Hung(f"a client that closed everything did not end\n{self.run.stacks_of_all()}") from None
        if code:
            raise self._died()
        self._close()

    def _close(self) -> None:
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@contextlib.contextmanager
def client_process(run: Run, **options: Any) -> Iterator[ClientProcess]:
    """Run a client for the duration of the context."""
    process = ClientProcess(run, **options)
    try:
        yield process
        process.end()
    except BaseException:
        process.kill()
        raise


class Monitor:
    """A scheduler and its workers in separate processes, observed by a client of its own."""

    def __init__(self, run: Run, client: Any, file: str, num_workers: int) -> None:
        self.run = run
        self.client = client
        self.file = file
        self.num_workers = num_workers

    def wait_for_workers(self, without: str = "") -> None:
        """Wait until there are `num_workers` workers, `without` not among them."""
        self._wait(lambda: len(self.workers()) == self.num_workers and without not in self.workers())

    def wait_for_loss(self, worker: str) -> None:
        """Wait until the scheduler has removed a worker."""
        self._wait(lambda: worker not in self.workers())

    def _wait(self, condition: Callable[[], bool]) -> None:
        try:
            wait_until(condition, self.run.deadline_s)
        except AssertionError:
            raise Hung(f"the workers are {self.workers()}\n{self.run.stacks_of_all()}") from None

    def workers(self) -> dict[str, int]:
        """Return the pid of every worker that can be a rank, by its address."""
        return self.client.run_on_scheduler(leftovers.places)

    def members(self) -> list[str]:
        """Return the workers of all gangs."""
        return self.client.run_on_scheduler(leftovers.members)

    def count(self) -> dict[str, int]:
        scheduler = self.client.run_on_scheduler(leftovers.of_scheduler)
        workers = leftovers.of_workers(self.client.run(leftovers.of_worker))
        counts = {f"scheduler: {name}": number for name, number in scheduler.items()}
        return counts | {f"workers: {name}": number for name, number in workers.items()}


@contextlib.contextmanager
def monitored(run: Run, num_workers: int = 3) -> Iterator[Monitor]:
    """Start a scheduler and workers with nannies; yield their monitor."""
    from distributed import Client

    preload = "--preload", "faults.stacks", "--preload-nanny", "faults.forked"
    options = "--nworkers", str(num_workers), "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", *preload
    with (
        scheduler_by_hand(run.folder, run.environment) as (_, file),
        dask_process("worker", "--scheduler-file", file, *options, environment=run.environment),
        Client(scheduler_file=file, set_as_default=False) as client,
    ):
        client.wait_for_workers(num_workers, timeout=run.deadline_s)
        yield Monitor(run, client, file, num_workers)


class Command:
    """A process of the `mgraph` command, and the times of the lines that it writes."""

    def __init__(self, run: Run, *arguments: str) -> None:
        # Background jobs of a shell inherit an ignored SIGINT.
        unignored = "env", "--default-signal=INT,TERM", sys.executable, "-m", "faults.command"
        self.process = subprocess.Popen(
            [*unignored, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=run.environment,
            cwd=run.folder,
            text=True,
        )
        self.run = run
        self.lines: list[tuple[float, str]] = [(time.monotonic(), "starting")]
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append((time.monotonic(), line.rstrip()))
                self._changed.notify_all()

    def reach(self, phase: str) -> None:
        """Wait until the command writes a line that begins with `phase`, or ends."""
        deadline = time.monotonic() + self.run.deadline_s
        with self._changed:
            while self.process.poll() is None and all(not line.startswith(phase) for _, line in self.lines):
                self._changed.wait(0.05)
                if time.monotonic() > deadline:
                    raise self._hung()

    def end(self) -> int:
        """Wait until the command ends; return its exit code."""
        try:
            code = self.process.wait(self.run.deadline_s)
        except subprocess.TimeoutExpired:
            raise self._hung() from None
        self._close()
        return code

    def _close(self) -> None:
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def _hung(self) -> Hung:
        hung = Hung(f"{self.process.args} wrote {self.lines} and no more\n{self.run.stacks_of_all()}")
        self.process.kill()
        self.process.wait()
        self._close()
        return hung
