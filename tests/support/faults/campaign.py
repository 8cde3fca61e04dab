"""Inject faults at random times of random phases, and check invariants after each."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from killer import PROMPTLY_S

from faults import leftovers
from faults.processes import ClientProcess, Monitor, Run

# A campaign stops after this many problems.
ENOUGH_PROBLEMS = 4
BETWEEN = "between calls"


def draws(chance: random.Random, names: list[str], count: int) -> Iterator[tuple[str, float]]:
    """Draw phases and fractions of their duration; every phase is drawn once before any is repeated."""
    left: list[str] = []
    for _ in range(count):
        if not left:
            left = chance.sample(names, len(names))
        # Up to a little more than the duration, since a phase may take longer this time.
        yield left.pop(), 1.1 * chance.random()


@dataclass
class Tally:
    """The counts and findings of a campaign.

    Attributes
    ----------
    kind
        The name of the campaign.
    faults
        By phase, the number of faults.
    outcomes
        By outcome, how often it followed a fault.
    worst_s
        The longest time from a fault to its error.
    problems
        Violations, each with the fault before it.
    """

    kind: str
    seed: str
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    worst_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    def add(self, phase: str, outcome: str, seconds: float | None = None) -> None:
        self.faults[phase] += 1
        self.outcomes[outcome] += 1
        if seconds is not None:
            self.worst_s = max(self.worst_s, seconds)
            if seconds > PROMPTLY_S:
                self.problems.append(f"{phase}: {outcome} {seconds:.1f} s after the fault")

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "kind": self.kind,
            "faults": dict(self.faults),
            "outcomes": dict(self.outcomes),
            "worst_s": round(self.worst_s, 3),
            "problems": self.problems,
        }

    @contextlib.contextmanager
    def noting(self, run: Run) -> Iterator[None]:
        """Record as problems: hangs, clients that died, processes and files left after the campaign."""
        try:
            yield
        except AssertionError as error:
            self.problems.append(f"{type(error).__name__}: {error}")
        if left := run.end():
            self.problems.append(f"{len(left)} processes were still there at the end")
        if count := leftovers.of_folders(run.scratch)["temporary files"]:
            self.problems.append(f"{count} temporary files were still there at the end")

    def check(self) -> None:
        """Fail with all problems, and with the options that repeat the same faults."""
        listed = "\n".join(f"- {problem}" for problem in self.problems)
        assert not self.problems, f"{self.kind}, drawn by {self.seed}, {sum(self.faults.values())} faults:\n{listed}"


class Settled:
    """Resources between calls: counted before the first fault, and after each fault until they are no more."""

    def __init__(self, run: Run, count: Callable[[], dict[str, int]], slack: Mapping[str, int]) -> None:
        self._run = run
        self._count = count
        self._slack = slack
        self._shared = leftovers.SharedMemory(run.mark)
        self._before = self._all()

    def _all(self) -> dict[str, int]:
        memory = {"shared memory": self._shared.left()}
        return self._count() | leftovers.of_folders(self._run.scratch, self._run.folder / "out") | memory

    def left(self) -> dict[str, str]:
        """Return the resources that are still more than before after `settle_s`; each leftover is reported once."""
        deadline = time.monotonic() + self._run.settle_s
        while more := leftovers.grown(self._before, now := self._all(), self._slack):
            if time.monotonic() > deadline:
                self._before |= {name: now[name] for name in more}
                return more
            time.sleep(0.1)
        return {}


class Outputs:
    """The files that clients write: each must be a complete old or new version."""

    def __init__(self, run: Run) -> None:
        self._out = run.folder / "out"
        self.known: dict[str, set[bytes]] = {}
        self.learn()

    def _paths(self) -> list[pathlib.Path]:
        return [path for path in self._out.iterdir() if not path.name.startswith(".")]

    def _contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self._paths()}

    def times(self) -> dict[str, int]:
        """Return the time of each file's last change."""
        return {path.name: path.stat().st_mtime_ns for path in self._paths()}

    def learn(self) -> None:
        """Record the present versions as complete."""
        for name, text in self._contents().items():
            self.known.setdefault(name, set()).add(text)

    def wrong(self) -> list[str]:
        """Describe the files that are missing or incomplete."""
        contents = self._contents()
        lost = [f"{name} is gone" for name in self.known.keys() - contents.keys()]
        incomplete = [
            f"{name} is neither old nor new" for name, text in contents.items() if text not in self.known.get(name, ())
        ]
        return lost + incomplete


class Strikes:
    """Faults of one kind on a client's calls, and the checks after each."""

    def __init__(self, run: Run, process: ClientProcess, tally: Tally, monitor: Monitor | None = None) -> None:
        self.process = process
        self.tally = tally
        self.problems = tally.problems
        self.seconds = process.ready["seconds"]
        self.outputs = Outputs(run)
        self.settled = Settled(
            run, counts_of(process, monitor), leftovers.DASK_SLACK if monitor else leftovers.NO_SLACK
        )

    def strike(self, phase: str, part: float, blow: Callable[[], None]) -> dict[str, Any]:
        """Start a phase, run `blow` after a fraction `part` of its duration, and return the outcome."""
        self.process.send(do="phase", name=phase)
        self.process.receive("begins")
        time.sleep(part * self.seconds[phase])
        hit = self.process.silent
        at = time.time()
        blow()
        reply = self.process.receive("outcome")
        self.judge(phase, reply)
        if reply["outcome"] == "answered":
            # The machine may have been busier during the first measurement.
            self.seconds[phase] = reply["seconds"]
        return reply | {"hit": hit, "to_error_s": reply["at"] - at if hit else 0.0}

    def judge(self, phase: str, reply: dict[str, Any]) -> None:
        """Record a wrong result or an error of another library as a problem."""
        if reply["outcome"] == "wrong":
            self.problems.append(f"{phase}: a wrong result")
        elif reply["outcome"] == "foreign":
            self.problems.append(f"{phase}: no error of mgraph: {reply['error']}")

    def check(self, phase: str, again: str) -> dict[str, Any]:
        """Check the next call, the output files, and leftovers."""
        reply = self.check_call(phase, again)
        found = self.outputs.wrong() + [f"{name} left behind: {more}" for name, more in self.settled.left().items()]
        self.problems += [f"after a fault in {phase}: {wrong}" for wrong in found]
        return reply

    def check_call(self, phase: str, again: str, lost: bool = False) -> dict[str, Any]:
        """Check that the next calls, one of them the phase `again`, give the same results as before any fault."""
        reply = self.process.request("wrong", do="check", name=again, lost=lost)
        self.problems += [f"after a fault in {phase}: {wrong}" for wrong in reply["wrong"]]
        return reply

    @property
    def enough(self) -> bool:
        return len(self.problems) >= ENOUGH_PROBLEMS


def interrupt(strikes: Strikes, chance: random.Random, count: int, names: list[str] | None = None) -> None:
    """Send SIGINTs to the client."""
    names = names or list(strikes.seconds)
    for phase, part in draws(chance, names, count):
        reply = strikes.strike(phase, part, partial(os.kill, strikes.process.pid, signal.SIGINT))
        late = strikes.check(phase, chance.choice(names))["late"]
        # A KeyboardInterrupt that Python dropped, in a finalizer, still counts for its phase.
        strikes.tally.add(BETWEEN if late else phase, reply["outcome"], None if late else reply["to_error_s"])
        if strikes.enough:
            break


def kill_workers(strikes: Strikes, monitor: Monitor, chance: random.Random, count: int) -> None:
    """Send SIGKILLs to workers, mostly to those of the client's gang; nannies restart them."""
    names = list(strikes.seconds)
    for phase, part in draws(chance, names, count):
        monitor.wait_for_workers()
        workers = monitor.workers()
        worker = chance.choice(monitor.members() if chance.random() < 0.8 else sorted(workers))
        reply = strikes.strike(phase, part, partial(os.kill, workers[worker], signal.SIGKILL))
        failed = reply["outcome"] != "answered"
        strikes.tally.add(phase if reply["hit"] else BETWEEN, reply["outcome"], reply["to_error_s"] if failed else None)
        monitor.wait_for_loss(worker)
        # The next call runs while the nanny starts another worker; leftovers are counted after that.
        strikes.check_call(phase, "sssp", lost=True)
        monitor.wait_for_workers(without=worker)
        strikes.check(phase, chance.choice(names))
        if strikes.enough:
            break


def counts_of(process: ClientProcess, monitor: Monitor | None = None) -> Callable[[], dict[str, int]]:
    """Return a function that counts the resources of the client, and of its cluster if it has one."""

    def count() -> dict[str, int]:
        client = {f"client: {name}": number for name, number in process.request("left", do="left").items()}
        return client | (monitor.count() if monitor else {})

    return count


def kill_clients(run: Run, monitor: Monitor, tally: Tally, chance: random.Random, count: int, **options: Any) -> None:
    """Send SIGKILLs to clients: scheduler and workers free their resources and serve the next client."""
    first = ClientProcess(run, **options)
    known = first.ready
    first.end()
    outputs = Outputs(run)
    settled = Settled(run, monitor.count, leftovers.DASK_SLACK)
    process = ClientProcess(run, known=known, **options)
    try:
        for phase, part in draws(chance, list(known["seconds"]), count):
            process.send(do="phase", name=phase)
            process.receive("begins")
            time.sleep(part * known["seconds"][phase])
            tally.add(phase if process.silent else BETWEEN, "killed")
            process.kill()
            found = [f"{name} left behind: {more}" for name, more in settled.left().items()] + outputs.wrong()
            process = ClientProcess(run, known=known, **options)
            found += process.request("wrong", do="check", name="bfs", lost=False)["wrong"]
            tally.problems += [f"after a client was killed in {phase}: {wrong}" for wrong in found]
            if len(tally.problems) >= ENOUGH_PROBLEMS:
                break
        process.end()
    except BaseException:
        process.kill()
        raise
