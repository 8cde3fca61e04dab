"""Read hardware counters of a search's kernels with ncu.

    python bench/counters.py bfs:rmat20 bfs:uni24 sssp:rmat20

Searches from random roots, then once more from the root of median time, under ncu: its main kernel, and the kernels
that find predecessors. A record of each is appended to bench/results. Clocks are not fixed and caches not flushed; ncu
runs a kernel several times and restores its memory in between.
"""

from __future__ import annotations

import csv
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import click
import record
from run import source_of

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots

# The main kernel of a search, and the kernels launched after it.
LOOPS = ("search_levels", "find_distances", "find_distances_by_weight")
AFTER = ("find_nearer", "find_nearer_by_weight")
COUNTERS = {
    "nanoseconds": "gpu__time_duration.sum",
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
# Stall reasons, from a section of ncu: the average number of warps stalled for each, per issued instruction.
SECTION = "WarpStateStats"
WAITS = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")
SECTOR_BYTES = 32


@click.command(help=__doc__)
@click.argument("cells", nargs=-1, required=True, metavar="ALGORITHM:GRAPH...")
@click.option("--sources", type=int, default=8, show_default=True)
@click.option(
    "--logs", type=click.Path(file_okay=False, path_type=pathlib.Path), help="Keep the output of ncu in this folder."
)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
@click.option("--only-search", is_flag=True, help="Only search: the process that ncu profiles.")
def main(
    cells: tuple[str, ...], sources: int, logs: pathlib.Path | None, commit: str | None, only_search: bool
) -> None:
    # One build of a graph serves all its cells.
    wanted = sorted((tuple(cell.split(":")) for cell in cells), key=lambda cell: cell[1])
    if only_search:
        search_all(wanted, sources)
        return
    with tempfile.TemporaryDirectory() as folder:
        log = (logs or pathlib.Path(folder)) / "counters.csv"
        log.parent.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, __file__, *(":".join(cell) for cell in wanted), "--sources", str(sources)]
        subprocess.run([*ncu(log), *words, "--only-search"], check=True)
        kernels = list(read(log.read_text()))
    for (algorithm, graph), launches in zip(wanted, of_searches(kernels), strict=True):
        for facts in launches:
            show(algorithm, graph, facts)
            head = {"bench": "counters", "gpus": 1, "algorithm": algorithm, "graph": graph}
            record.append("cuda", commit, head | facts)


def ncu(log: pathlib.Path) -> list[str]:
    """Return the ncu command that precedes the profiled command."""
    words = ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]
    words += ["--kernel-name", f"regex:^({'|'.join(LOOPS + AFTER)})$", "--metrics", ",".join(COUNTERS.values())]
    words += ["--section", SECTION, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), "-f"]
    return words


def search_all(cells: list[tuple[str, str]], sources: int) -> None:
    """Search each cell from random roots; profile the search from the median root."""
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for graph, own in itertools.groupby(cells, key=lambda cell: cell[1]):
            with Graph.from_source(source_of(graph, "int"), cluster=cluster) as g:
                for algorithm, _ in own:
                    search_usual(g, algorithm, random_roots(g, sources + 1, None))


def search_usual(g: Graph, algorithm: str, roots: list[int]) -> None:
    """Search from all roots, the first as warm-up; profile the median one."""
    import cupy

    search = KERNELS[algorithm]
    times = []
    for root in roots:
        with search(g, root) as result:
            times.append(result.stats.seconds["traverse"])
    usual = times.index(statistics.median_low(times[1:]), 1)
    cupy.cuda.runtime.profilerStart()
    search(g, roots[usual]).close()
    cupy.cuda.runtime.profilerStop()


def read(text: str) -> Iterable[dict]:
    """Yield the kernels in the output of ncu, in the order of their launches."""
    # Lines without quotes are messages of ncu; the first row has the units.
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    for row in itertools.islice(rows, 1, None):
        counted = {name: number(row[metric]) for name, metric in COUNTERS.items()}
        begin, end = WAITS
        waits = {
            key[len(begin) : -len(end)]: number(row[key]) for key in row if key.startswith(begin) and key.endswith(end)
        }
        seconds = 1e-9 * counted["nanoseconds"]
        yield {
            "kernel": row["Kernel Name"].split("(")[0],
            "microseconds": round(1e6 * seconds, 1),
            "dram_bytes_per_s": round((counted["dram_read"] + counted["dram_written"]) / seconds),
            "l2_bytes_per_s": round(SECTOR_BYTES * counted["l2_sectors"] / seconds),
            "l2_hits": round(counted["l2_hits"] / 100, 3),
            "sectors_per_request": round(counted["sectors"] / max(counted["requests"], 1), 2),
            "occupancy": round(counted["occupancy"] / 100, 3),
            "waits": {name: round(share / sum(waits.values()), 3) for name, share in waits.items() if share},
        }


def number(text: str) -> float:
    """Parse a number of ncu; a counter that is not available is 0."""
    return float(text.replace(",", "")) if text and text[0].isdigit() else 0.0


def of_searches(kernels: Iterable[dict]) -> list[list[dict]]:
    """Group the kernels by search: each begins with its main kernel."""
    searches: list[list[dict]] = []
    for kernel in kernels:
        if kernel["kernel"] in LOOPS:
            searches.append([])
        searches[-1].append(kernel)
    return searches


def show(algorithm: str, graph: str, facts: dict) -> None:
    """Print a summary line."""
    waits = sorted(facts["waits"].items(), key=lambda wait: -wait[1])[:4]
    print(
        f"{algorithm:4} {graph:7} {facts['kernel']:24} {facts['microseconds']:9.1f} us  DRAM "
        f"{facts['dram_bytes_per_s'] / 1e12:.2f} TB/s  L2 {facts['l2_bytes_per_s'] / 1e12:.2f} TB/s, hits "
        f"{facts['l2_hits']:.0%}  {facts['sectors_per_request']:.1f} sectors/request  occupancy "
        f"{facts['occupancy']:.0%}  {', '.join(f'{name} {share:.0%}' for name, share in waits)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
