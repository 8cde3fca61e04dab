"""Run every algorithm on small graphs under the tools of compute-sanitizer.

    python bench/sanitize.py LOGS

Under one tool after another, several processes run all algorithms and validate their results (bench/every_kernel.py).
They allocate without a pool: a tool cannot check bounds inside a pool's large allocations. A report in a kernel of
mgraph is a failure, unless a comment explains it; reports in CuPy's kernels are only shown. A record for each tool is
appended to bench/results.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

import click
import record

TOOLS = ("racecheck", "memcheck", "synccheck", "initcheck")
# Graphs with hubs for all warps of a block and frontiers large enough to pull; without rows; deep enough for chunked
# expansion; directed; and multi-GPU kernels.
RUNS = (
    ("rmat:10", "rows", "bfs", "bfs_sweep"),
    ("rmat:12", "rows", "sssp"),
    ("rmat:13", "rows", "bfs_multi_gpu", "sssp_multi_gpu"),
    ("rmat:9", "rows", "sssp_sweep", "together", "components", "msf", "pagerank", "hits", "bridges"),
    ("rmat:9", "compact", "bfs_sweep", "sssp_sweep", "components", "msf", "pagerank", "hits"),
    ("rmat:9", "host", "bfs_sweep", "sssp_sweep", "components", "msf"),
    ("grid:24x24", "rows", "bfs", "sssp", "bfs_multi_gpu", "sssp_multi_gpu", "components", "msf"),
    ("fixed:600:4,weights=float32", "rows", "bfs", "sssp", "bfs_multi_gpu", "sssp_multi_gpu", "together", "components"),
    ("fixed:2000:2", "rows", "strong-components", "core-numbers", "pagerank", "hits"),
)
# Some tools slow a kernel down a hundred times; a process that takes longer than this hangs.
LONGEST_S = 300
# Files with comments that explain a reported race: stale values in a block's copy of the hubs' distances are harmless.
ARGUED = {
    ("racecheck", "find_distances"): "mgraph/algorithms/sssp/persistent_kernels.cuh",
    ("racecheck", "find_distances_by_weight"): "mgraph/algorithms/sssp/persistent_kernels.cuh",
}
FOREIGN = re.compile(r"^cupy_|\b(cub|thrust)::")
# The first line of a report has one space after the mark, the others more.
REPORT = re.compile(r"^========= (?! )(?!COMPUTE-SANITIZER|Target application|[A-Z]+ SUMMARY)\S")
PLACE = re.compile(r"\bat (\S.*?)\+0x[0-9a-f]+")
SUMMARY = re.compile(r"^========= [A-Z]+ SUMMARY: (\d+)", re.MULTILINE)


@click.command(help=__doc__)
@click.argument("logs", type=click.Path(file_okay=False, path_type=pathlib.Path))
@click.option("--tool", "tools", type=click.Choice(TOOLS), multiple=True, default=TOOLS)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(logs: pathlib.Path, tools: tuple[str, ...], commit: str | None) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    clean = True
    # One tool at a time: grid barriers are slow if many processes share a GPU.
    for tool in tools:
        runs = [Run(tool, number, logs) for number in range(len(RUNS))]
        launched = {name for run in runs for name in run.finish()}
        facts = found_in([run.log.read_text() if run.log.exists() else "" for run in runs])
        faults = [name for name in facts["ours"] if (tool, name) not in ARGUED]
        faults += [f"{run.log.stem} ended with {run.code}" for run in runs if run.code]
        clean = clean and not (faults or facts["unread"])
        print(
            f"{tool:9} {len(launched)} kernels; ours: {facts['ours']}, others: {facts['foreign']}", *faults, flush=True
        )
        if not any(run.code for run in runs):
            argued = sorted({ARGUED[tool, name] for name in facts["ours"] if (tool, name) in ARGUED})
            head = {"bench": "sanitize", "tool": tool, "gpus": 1, "kernels": len(launched), "argued": argued}
            record.append("cuda", commit, head | facts)
    if not clean:
        raise SystemExit("a tool reported an error, or a process failed: see the logs")


class Run:
    """Run one process under a tool, with a log of each."""

    def __init__(self, tool: str, number: int, logs: pathlib.Path) -> None:
        self.log = logs / f"{tool}-{number}.log"
        self.output = logs / f"{tool}-{number}.out"
        words = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--show-backtrace", "no"]
        words += ["--log-file", str(self.log), sys.executable, str(pathlib.Path(__file__).with_name("every_kernel.py"))]
        self.words = [*words, *RUNS[number]]
        with open(self.output, "w") as file:
            self.process = subprocess.Popen(self.words, stdout=file, stderr=subprocess.STDOUT)

    def finish(self) -> list[str]:
        """Wait for the process and return the kernels that it launched."""
        try:
            self.code = self.process.wait(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.code = self.process.wait()
        return [] if self.code else json.loads(self.output.read_text().splitlines()[-1])


def found_in(logs: Iterable[str]) -> dict:
    """Count reports by kernel, and those that could not be parsed."""
    found: dict[str, collections.Counter[str]] = {"ours": collections.Counter(), "foreign": collections.Counter()}
    total = 0
    for log in logs:
        # A log without a summary means that the tool was cut short: count one.
        total += sum(map(int, SUMMARY.findall(log) or ["1"]))
        for report in reports_of(log):
            names = sorted(set(PLACE.findall(report))) or [report.partition("\n")[0]]
            own = [name for name in names if not FOREIGN.search(name)]
            found["ours" if own else "foreign"][" and ".join(own or names)] += 1
    read = sum(counts.total() for counts in found.values())
    return {kind: dict(counts) for kind, counts in found.items()} | {"unread": total - read}


def reports_of(log: str) -> Iterator[str]:
    """Yield the reports of a log."""
    lines: list[str] = []
    for line in log.splitlines():
        if REPORT.match(line) and lines:
            yield "\n".join(lines)
            lines = []
        if REPORT.match(line) or (lines and line.startswith("=========     ")):
            lines.append(line)
    if lines:
        yield "\n".join(lines)


if __name__ == "__main__":
    main()
