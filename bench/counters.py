"""What the kernels of a search do to a GPU's memory: the hardware's counters, read by ncu.

    python bench/counters.py bfs:rmat20 bfs:uni24 sssp:rmat20

Searches from random roots, then once more from the root whose search took the median time, under ncu: its main kernel,
and those that find predecessors. A line for each is appended to bench/results. Clocks stay as they are, and caches as
the kernel before left them; ncu runs a kernel several times, on memory that it puts back.
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

# The loop of a search, and what is launched after it.
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
# What warps wait for, told by a section of ncu: of each reason how many warps, while one of them issues.
SECTION, WAITS = "WarpStateStats", ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")
SECTOR_BYTES = 32


@click.command(help=__doc__)
@click.argument("cells", nargs=-1, required=True, metavar="ALGORITHM:GRAPH...")
@click.option("--sources", type=int, default=8, show_default=True)
@click.option("--logs", type=click.Path(file_okay=False, path_type=pathlib.Path), help="Keeps what ncu wrote.")
@click.option("--commit", help="Of the code, where there is no checkout to ask.")
@click.option("--only-search", is_flag=True, help="What ncu looks at: no counters.")
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
    """Return the command that counts in what follows it."""
    words = ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]
    words += ["--kernel-name", f"regex:^({'|'.join(LOOPS + AFTER)})$", "--metrics", ",".join(COUNTERS.values())]
    words += ["--section", SECTION, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), "-f"]
    return words


def search_all(cells: list[tuple[str, str]], sources: int) -> None:
    """Search each cell from random roots, and from the median one between the marks that ncu waits for."""
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for graph, own in itertools.groupby(cells, key=lambda cell: cell[1]):
            with Graph.from_source(source_of(graph, "int"), cluster=cluster) as g:
                for algorithm, _ in own:
                    search_usual(g, algorithm, random_roots(g, sources + 1, None))


def search_usual(g: Graph, algorithm: str, roots: list[int]) -> None:
    """Search from all roots but the first, which warms up, and from the median one once more."""
    import cupy

    search, times = KERNELS[algorithm], []
    for root in roots:
        with search(g, root) as result:
            times.append(result.stats.seconds["traverse"])
    usual = times.index(statistics.median_low(times[1:]), 1)
    cupy.cuda.runtime.profilerStart()
    search(g, roots[usual]).close()
    cupy.cuda.runtime.profilerStop()


def read(text: str) -> Iterable[dict]:
    """Yield the kernels that ncu wrote, in the order of their launches."""
    # ncu tells of itself between the lines, and in the first row of all the units.
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
    """Return a number as ncu writes it; what it could not count is none."""
    return float(text.replace(",", "")) if text and text[0].isdigit() else 0.0


def of_searches(kernels: Iterable[dict]) -> list[list[dict]]:
    """Return the kernels of each search: it begins with its loop."""
    searches: list[list[dict]] = []
    for kernel in kernels:
        if kernel["kernel"] in LOOPS:
            searches.append([])
        searches[-1].append(kernel)
    return searches


def show(algorithm: str, graph: str, facts: dict) -> None:
    """Print a line of the short table."""
    waits = sorted(facts["waits"].items(), key=lambda wait: -wait[1])[:4]
    print(
        f"{algorithm:4} {graph:7} {facts['kernel']:24} {facts['microseconds']:9.1f} us  DRAM "
        f"{facts['dram_bytes_per_s'] / 1e12:.2f} TB/s  L2 {facts['l2_bytes_per_s'] / 1e12:.2f} TB/s, hits "
        f"{facts['l2_hits']:.0%}  {facts['sectors_per_request']:.1f} sectors a request  occupancy "
        f"{facts['occupancy']:.0%}  {', '.join(f'{name} {share:.0%}' for name, share in waits)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
