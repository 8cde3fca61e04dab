"""Summaries of all campaigns of a session, as text and as a line of bench/results."""

from __future__ import annotations

import datetime
import importlib.util
import json
import pathlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

RECORD = pathlib.Path(__file__).parents[3] / "bench" / "record.py"


def summary(tallies: Sequence[dict[str, Any]], seed: int) -> str:
    """Format the number of faults by phase, and their outcomes."""
    lines = []
    for tally in tallies:
        for head, counts in (("hit", tally["faults"]), ("ended", tally["outcomes"])):
            listed = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
            lines.append(f"{tally['kind']}: {head} {listed}")
        lines.append(f"{tally['kind']}: at worst {tally['worst_s']} s to the end, {len(tally['problems'])} problems")
    return "\n".join([*lines, f"{total(tallies)} faults, drawn by --fault-seed {seed}"])


def total(tallies: Sequence[dict[str, Any]]) -> int:
    return sum(sum(tally["faults"].values()) for tally in tallies)


def append_line(path: str, facts: dict[str, Any]) -> None:
    """Append a line in the benchmarks' format: date, commit and machine, the facts, versions."""
    spec = importlib.util.spec_from_file_location("record", RECORD)
    assert spec is not None and spec.loader is not None
    record = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(record)
    head = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": record.commit(),
        "machine": record.machine("cpu"),
    }
    with open(path, "a") as file:
        file.write(json.dumps(head | facts | {"versions": record.versions()}) + "\n")


def append(path: str, tallies: Sequence[dict[str, Any]], seed: int) -> None:
    """Append a line for one session, its campaigns added up by kind."""
    faults: dict[str, Counter[str]] = {}
    for tally in tallies:
        kind = tally["kind"].partition("[")[0].removeprefix("test_")
        faults.setdefault(kind, Counter()).update(tally["faults"])
    facts = {
        "bench": "faults",
        "seed": seed,
        "count": total(tallies),
        "faults": {kind: dict(sorted(counts.items())) for kind, counts in faults.items()},
        "outcomes": dict(sum((Counter(tally["outcomes"]) for tally in tallies), Counter())),
        "worst_s": max(tally["worst_s"] for tally in tallies),
        "problems": [problem.splitlines()[0] for tally in tallies for problem in tally["problems"]],
    }
    append_line(path, facts)
