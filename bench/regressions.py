"""Compare the newest record of each cell in bench/results with those before it, and fail if it is slower beyond noise.

    python bench/regressions.py --since 2026-11-24

A cell is what was measured: machine, program, graph, algorithm and options. Its newest value is compared with the
median of those before. Noise is what these differ from their median, but at least the share in MEASURES. On a CPU,
where others use the cores too, the time is divided by that of GAP or SciPy in the same run.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import click
import record

Record = dict[str, Any]
# Facts that say what was measured. All others were found, or do not matter: roots are drawn anew in each run.
CELL = (
    *("machine", "bench", "graph", "algorithm", "method", "backend", "gpus", "ranks", "launcher", "layout"),
    *("weights", "size", "way", "order", "cores"),
)
# A cell is compared with its last records.
EARLIER = 5


class Measure(NamedTuple):
    """What counts of a record, less being better, and the least noise of it, as a share."""

    value: Callable[[Record], float | None]
    noise: float


def beside_rival(facts: Record) -> float | None:
    """Return the median time, or what it is of a rival's time on a CPU."""
    rival = facts.get("gap_ms") or facts.get("scipy_ms") if facts["backend"] == "cpu" else 1.0
    return facts["median_ms"] / rival if rival else None


# By program; records of bench/run.py and bench/cpu.py do not name theirs.
MEASURES = {
    "": Measure(beside_rival, 0.15),
    "shapes": Measure(lambda facts: facts["ratio"], 0.3),
    "call": Measure(lambda facts: facts["call_us"], 0.15),
    "energy": Measure(lambda facts: 1 / facts["mteps_per_w"], 0.1),
    "pagerank": Measure(lambda facts: facts["ms"], 0.15),
    "ingest": Measure(lambda facts: facts["best_s"], 0.3),
}


class Compared(NamedTuple):
    """A cell with the ratio of its newest value to the median of those before, and the ratio that noise explains."""

    ratio: float
    limit: float
    cell: str
    commit: str

    @property
    def is_slower(self) -> bool:
        return self.ratio > self.limit


def compare(records: Iterable[Record], since: str = "") -> list[Compared]:
    """Compare the newest record of each cell, if it is not older than a date, with those before; the worst first."""
    by_cell = defaultdict(list)
    for facts in sorted(records, key=lambda facts: facts["date"]):
        measure = MEASURES.get(facts.get("bench", ""))
        value = measure and measure.value(facts)
        if measure and value:
            cell = " ".join(str(facts[name]) for name in CELL if facts.get(name) not in (None, ""))
            by_cell[cell].append((value, measure.noise, facts))
    found = []
    for cell, values in by_cell.items():
        *earlier, (value, least, newest) = values
        if earlier and newest["date"] >= since:
            before = [value for value, *_ in earlier[-EARLIER:]]
            usual = statistics.median(before)
            noise = max(least, *(abs(one / usual - 1) for one in before))
            found.append(Compared(value / usual, 1 + noise, cell, newest["commit"]))
    return sorted(found, key=lambda one: one.limit / one.ratio)


@click.command(help=__doc__)
@click.option("--since", default="", metavar="DATE", help="Compare only cells measured since this date.")
@click.option(
    "--results", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path), default=record.RESULTS
)
def main(since: str, results: pathlib.Path) -> None:
    lines = [line for file in sorted(results.glob("*.jsonl")) for line in file.read_text().splitlines()]
    found = compare((facts for facts in map(json.loads, lines) if "graph" in facts), since)
    slower = [one for one in found if one.is_slower]
    for one in slower:
        print(f"{one.ratio:6.2f}x, noise explains {one.limit:.2f}x  {one.cell}  ({one.commit})")
    print(f"{len(found)} cells were measured again, {len(slower)} are slower beyond noise")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
