"""What a soak has seen: counts, times and memory, and its report."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from killer import PROMPTLY_S
from rich.console import Console
from rich.table import Table

# A process that lives long may have grown by so much: allocators keep what they freed.
GROWTH_MIB = 64.0


@dataclass
class Tally:
    """The counts and findings of a soak.

    Attributes
    ----------
    faults, jobs, outcomes
        How often each fault was injected; how many jobs of each name, and outcomes of jobs, were reported.
    to_error_s
        By cause, the seconds from a SIGKILL to each error of a call that it ended, where nothing was stopped meanwhile.
    memory_mib
        By process, of each cluster: MiB when it was warm, and at the end.
    leftovers
        What was more at the end of faults than before them; nothing, if all is well.
    problems
        Violations.
    """

    faults: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    to_error_s: dict[str, list[float]] = field(default_factory=lambda: {"worker": [], "scheduler": []})
    memory_mib: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    leftovers: Counter[str] = field(default_factory=Counter)
    num_clusters: int = 0
    num_pauses: int = 0
    problems: list[str] = field(default_factory=list)

    def add_time(self, cause: str, seconds: float) -> None:
        """Record the time from a SIGKILL to an error."""
        self.to_error_s[cause].append(seconds)
        if seconds > PROMPTLY_S:
            self.problems.append(f"the error after a killed {cause} came after {seconds:.1f} s")

    def add_memory(self, process: str, first: float, last: float) -> None:
        """Record the memory of a process, when it was warm and at the end."""
        self.memory_mib.setdefault(process, []).append((round(first, 1), round(last, 1)))
        if last - first > GROWTH_MIB:
            self.problems.append(f"{process}: its memory grew from {first:.0f} to {last:.0f} MiB")

    def facts(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "cores": len(os.sched_getaffinity(0)),
            "clusters": self.num_clusters,
            "pauses": self.num_pauses,
            "faults": dict(sorted(self.faults.items())),
            "jobs": dict(sorted(self.jobs.items())),
            "outcomes": dict(sorted(self.outcomes.items())),
            "to_error_s": {cause: _spread(seconds) for cause, seconds in self.to_error_s.items() if seconds},
            "memory_mib": self.memory_mib,
            "leftovers": dict(self.leftovers),
            "problems": [problem.partition("\n")[0] for problem in self.problems],
        }

    def line(self) -> str:
        """Return what is known now in one line."""
        outcomes = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        num_faults = self.faults.total()
        return f"{self.jobs.total()} jobs ({outcomes}), {num_faults} faults, {len(self.problems)} problems"

    def print_table(self) -> None:
        """Print the report, and then every problem in full."""
        table = Table("what", "count", title="soak")
        for head, counts in (("fault", self.faults), ("job", self.jobs), ("outcome", self.outcomes)):
            for name, count in sorted(counts.items()):
                table.add_row(f"{head}: {name}", str(count))
        for cause, seconds in self.to_error_s.items():
            if seconds:
                times = _spread(seconds)
                text = f"{times['median']} s, at worst {times['max']} s, of {times['count']}"
                table.add_row(f"error after a killed {cause}", text)
        for process, grown in self.memory_mib.items():
            table.add_row(f"memory of {process}, MiB", ", ".join(f"{first:.0f} to {last:.0f}" for first, last in grown))
        left = ", ".join(f"{name} {count}" for name, count in self.leftovers.items())
        table.add_row("left behind", left or "nothing")
        table.add_row("problems", str(len(self.problems)))
        console = Console()
        console.print(table)
        for problem in self.problems:
            console.print(f"- {problem}", markup=False, highlight=False)


def _spread(seconds: list[float]) -> dict[str, float]:
    return {
        "count": len(seconds),
        "median": round(statistics.median(seconds), 3),
        "max": round(max(seconds), 3),
    }
