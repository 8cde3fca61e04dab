"""Every algorithm on small graphs under compute-sanitizer: what its tools find in kernels of mgraph, and in CuPy's own.

    python bench/sanitize.py LOGS

One process a tool runs all searches, validates every answer, and takes its memory piece by piece: parts of a pool's
large allocations have no bounds that a tool could see. What a tool finds in a kernel of mgraph fails, unless a comment
argues it; what it finds in CuPy's kernels is shown. A line for each tool is appended to bench/results.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import subprocess
import sys

import click
import record

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
# Some tools make a kernel some hundred times slower; a tool that takes longer hangs.
LONGEST_S = 300
# Where a race that a tool finds is argued: there are no atomics of 8 bits.
ARGUED = {("racecheck", "sweep_levels"): "mgraph/kernels/bfs_sweep.py"}
FOREIGN = re.compile(r"^(cupy_|(void )?(cub|thrust)::)|\b(cub|thrust)::")
# The first line of a report begins one space behind the mark, those below it further in.
REPORT = re.compile(r"^========= (?! )(?!COMPUTE-SANITIZER|Target application|[A-Z]+ SUMMARY)\S")
PLACE = re.compile(r"\bat (\S.*?)\+0x[0-9a-f]+|\bin kernel (\S+)")
SUMMARY = re.compile(r"^========= ([A-Z]+) SUMMARY: (\d+)")


@click.command(help=__doc__)
@click.argument("logs", type=click.Path(file_okay=False, path_type=pathlib.Path))
@click.option("--tool", "tools", type=click.Choice(TOOLS), multiple=True, default=TOOLS)
@click.option("--commit", help="Of the code, where there is no checkout to ask.")
def main(logs: pathlib.Path, tools: tuple[str, ...], commit: str | None) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    running = {tool: start(tool, logs) for tool in tools}
    clean = True
    for tool, process in running.items():
        told, _ = process.communicate(timeout=LONGEST_S)
        launched = [json.loads(line) for line in told.splitlines() if line.startswith("[")]
        facts = found_in((logs / f"{tool}.log").read_text())
        fails = sum(count for name, count in facts["ours"].items() if (tool, name) not in ARGUED)
        clean = clean and not (fails or facts["unread"] or process.returncode)
        facts |= {"bench": "sanitize", "tool": tool, "gpus": 1, "kernels": len(*launched) if launched else 0}
        print(
            f"{tool:10} {facts['kernels']} kernels, {facts['ours']} in ours, {facts['foreign']} in others", flush=True
        )
        if process.returncode:
            print(f"{tool} ended with {process.returncode}:\n{told[-2000:]}")
        else:
            record.append("cuda", commit, facts)
    if not clean:
        raise SystemExit("a tool found something, or did not end: see its log")


def start(tool: str, logs: pathlib.Path) -> subprocess.Popen:
    """Start all searches under a tool; what it finds goes to its log."""
    words = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--log-file", str(logs / f"{tool}.log")]
    words += [sys.executable, str(pathlib.Path(__file__).with_name("every_kernel.py"))]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def found_in(log: str) -> dict:
    """Return how many reports a log has of each kernel of ours, of each foreign one, and how many could not be read."""
    ours: collections.Counter[str] = collections.Counter()
    foreign: collections.Counter[str] = collections.Counter()
    total = sum(int(match[2]) for line in log.splitlines() if (match := SUMMARY.match(line)))
    for report in reports_of(log):
        names = {first or second for first, second in PLACE.findall(report)}
        bare = sorted({name.split("(")[0].removeprefix("void ").split("<")[0] for name in names})
        own = [name for name in bare if not FOREIGN.search(name)]
        (ours if own or not bare else foreign)[" and ".join(own or bare) or report.splitlines()[0][10:]] += 1
    return {"ours": dict(ours), "foreign": dict(foreign), "unread": max(0, total - ours.total() - foreign.total())}


def reports_of(log: str) -> list[str]:
    """Return the reports of a log, each without the calls on the host that led to it."""
    reports: list[list[str]] = []
    on_host = True
    for line in log.splitlines():
        if REPORT.match(line):
            reports.append([])
            on_host = False
        elif not line.startswith("=========     ") or "host backtrace" in line:
            on_host = True
        if not on_host:
            reports[-1].append(line)
    return ["\n".join(lines) for lines in reports]


if __name__ == "__main__":
    main()
