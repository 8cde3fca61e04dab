"""Faults on the command line: checks its exit code, and the file that it writes."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from dataclasses import dataclass

from faults import leftovers
from faults.campaign import ENOUGH_PROBLEMS, Outputs, Settled, Tally, draws
from faults.processes import Command, Monitor, Run

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
COMMANDS = {
    "bfs": "bfs edges.wel.gz -s 0 --validate --overwrite -o out/answer.csv",
    "sssp": "sssp rmat:14 -s 1 --workers 2 --overwrite -o out/answer.npz",
    "components": "components edges.npz --workers 3 --overwrite -o out/answer.parquet",
    "msf": "msf rmat:14 --validate --overwrite -o out/edges.csv",
    "run": "run job.toml --overwrite",
    "generate": "generate rmat:14 out/edges.csv --overwrite",
}


@dataclass(frozen=True)
class Ended:
    """The end of a command that received a signal."""

    number: signal.Signals
    phase: str
    code: int
    last: str = ""


def judge(ended: Ended, is_new: bool) -> list[str]:
    """Describe the fault of an exit code and its output."""
    wrong = []
    number = ended.number
    codes = {CODES[number]}
    if ended.phase == "starting":
        # Before the command line installs its handlers, the signal's default action or Python's traceback is correct.
        codes |= {-number, 1}
    if is_new:
        # The output is complete; a signal during the exit of Python is handled by Python.
        codes |= {0, -signal.SIGINT, -number}
    if ended.code not in codes:
        wrong.append(f"exit code {ended.code} after {number.name}, not one of {sorted(codes)}: {ended.last}")
    expected = {130: "mgraph: interrupted", 143: "mgraph: terminated"}.get(ended.code)
    if expected not in (None, ended.last):
        wrong.append(f"exit code {ended.code} with {ended.last!r} for its last line")
    return wrong


def timeline(run: Run, arguments: list[str]) -> dict[str, float]:
    """Run a command without a fault; return the seconds of its phases, by the first word of their lines."""
    command = Command(run, *arguments)
    assert command.end() == 0, command.lines
    ends = [at for at, _ in command.lines[1:]] + [time.monotonic()]
    return {line.split()[0]: end - at for (at, line), end in zip(command.lines, ends, strict=True)}


def strike_commands(
    run: Run, tally: Tally, chance: random.Random, names: list[str], count: int, monitor: Monitor | None = None
) -> None:
    """Send the signals to commands, in all their phases."""
    cluster = [] if monitor is None else ["--scheduler-file", monitor.file, "--workers", "2"]
    arguments = {name: COMMANDS[name].split() + cluster for name in names}
    outputs = Outputs(run)
    phases = {}
    for name in names:
        phases |= {f"{name}: {phase}": (name, phase, s) for phase, s in timeline(run, arguments[name]).items()}
        outputs.learn()
    settled = Settled(run, monitor.count if monitor else dict, leftovers.DASK_SLACK)
    for i, (drawn, part) in enumerate(draws(chance, list(phases), count)):
        name, phase, seconds = phases[drawn]
        number = SIGNALS[i % len(SIGNALS)]
        before = outputs.times()
        command = Command(run, *arguments[name])
        command.reach(phase)
        time.sleep(part * seconds)
        in_phase = command.lines[-1][1].split()[0]
        at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            command.process.send_signal(number)
        code = command.end()
        tally.add(f"{name}: {in_phase}", f"exit code {code}", time.monotonic() - at)
        is_new = outputs.times() != before
        found = judge(Ended(number, in_phase, code, command.lines[-1][1]), is_new) + outputs.wrong()
        found += [f"{what} left behind: {more}" for what, more in settled.left().items()]
        tally.problems += [f"after {number.name} in {drawn}: {wrong}" for wrong in found]
        if len(tally.problems) >= ENOUGH_PROBLEMS:
            break
