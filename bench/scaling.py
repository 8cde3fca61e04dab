"""Measure strong and weak scaling by bench/run.py, then write docs/scaling.md from all records.

    python bench/scaling.py --scales 20:24 --ranks 1,2,4 --backend cuda
    python bench/scaling.py grid4k --scales 24:26 --ranks 1,2,4,0 --backend cuda
    python bench/scaling.py --scales 24:28 --ranks 4,8,16 --backend cuda --scheduler tcp://10.0.0.1:8786
    python bench/scaling.py --report-only

Every measurement is validated, and its results must equal those of all other numbers of ranks, which are parts of one
cluster; 0 ranks are as many as mgraph would choose. Scales run the frontier and sweep methods of BFS and SSSP; other
GRAPHs also components and forests. The report has times, efficiency, bytes and memory, the fastest number of ranks, and
a model of a superstep that is fitted to them, with its error on the measured points and its predictions.
"""

from __future__ import annotations

import pathlib
from typing import Any

import click
import run
from scaling_report import write_report

import mgraph as mg
from mgraph.api.graph500 import KERNELS

REPORT = pathlib.Path(__file__).parents[1] / "docs" / "scaling.md"


def _scales(context: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    try:
        first, _, last = text.partition(":")
        return list(range(int(first), int(last or first) + 1))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a scale, or two such as 20:24") from None


def parse_numbers(context: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 1,2,4") from None


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, metavar="GRAPH...")
@click.option("--scales", callback=_scales, default="18:20", show_default=True)
@click.option("--ranks", callback=parse_numbers, default="1,2", show_default=True)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option(
    "--scheduler", metavar="ADDRESS", help="A running cluster with enough workers for the largest number of ranks."
)
@click.option("--sources", type=int, default=8, show_default=True)
@click.option("--root-seed", type=int, default=1, show_default=True, help="The same roots for any number of ranks.")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
@click.option("--report-only", is_flag=True, help="Measure nothing.")
def main(
    graphs: tuple[str, ...],
    scales: list[int],
    ranks: list[int],
    backend: str,
    scheduler: str | None,
    commit: str | None,
    report_only: bool,
    **same: Any,
) -> None:
    searches = run.Plan(methods=("frontier", "sweep"), **same)
    everything = run.Plan(algorithms=(*KERNELS, *run.METHODS), **same)
    if not report_only:
        with mg.connect(scheduler=scheduler, num_ranks=None if 0 in ranks else max(ranks), backend=backend) as cluster:
            # Use parts of one cluster, so that no start or compilation of kernels falls into a measurement.
            for num_ranks in ranks:
                placed = cluster.narrowed(num_ranks) if num_ranks else cluster
                for scale in scales:
                    run.measure_graph(placed, f"rmat{scale}", searches, commit=commit)
                for name in graphs:
                    run.measure_graph(placed, name, everything, commit=commit)
    write_report(REPORT)


if __name__ == "__main__":
    main()
