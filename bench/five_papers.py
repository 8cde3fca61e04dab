"""Run the five papers that mgraph grew from again: their graphs, their methods, mgraph's as the last row.

    python bench/five_papers.py --quick
    python bench/five_papers.py guo keshavarzi --backend cuda --record

Every result of every method is compared with mgraph's validated one: a difference ends the run. The rows, and what of a
paper's tables is left out, are those of `bench/papers/*/measure.py`. `kolganov_ranks` is mgraph's sweep on a Dask
cluster, on one and on all GPUs, or on two processes (`bench/papers/kolganov_paths/ranks.py`). The records of `--record`
go to `bench/results`; docs/papers.md has their tables and figures (`bench/papers_report.py`). `--quick` takes small
graphs, for a look and for CI. `--figures` draws the papers' figures of what was measured into a folder, as PNG and SVG.
Road maps of the DIMACS challenge (NY.gr.xz and others) are read from the folder `--roads`; without it paper
`keshavarzi` has none.
"""

from __future__ import annotations

import importlib
import pathlib
import time

import click
import record
from papers import figures
from papers.keshavarzi.measure import ROAD_MAPS
from papers.trials import Setting

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.formatting import counted

PAPERS = ("kolganov_paths", "kolganov_forests", "guo", "fixed_degree", "keshavarzi")
MODULES = {paper: f"papers.{paper}.measure" for paper in PAPERS} | {"kolganov_ranks": "papers.kolganov_paths.ranks"}


@click.command(help=__doc__)
@click.argument("papers", nargs=-1, type=click.Choice(list(MODULES)))
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--quick", is_flag=True, help="Small graphs, few sources.")
@click.option("--sources", type=click.IntRange(1), default=8, show_default=True)
@click.option("--roads", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.option("--record", "is_recorded", is_flag=True, help="Append the lines to bench/results.")
@click.option("--figures", "folder", type=click.Path(file_okay=False, path_type=pathlib.Path))
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    papers: tuple[str, ...],
    backend: str,
    quick: bool,
    sources: int,
    roads: pathlib.Path | None,
    is_recorded: bool,
    folder: pathlib.Path | None,
    commit: str | None,
) -> None:
    if folder and not figures.is_drawable():
        raise click.ClickException("figures need matplotlib: pip install 'dask-mgraph[plot]'")
    if roads and not any(roads.glob(ROAD_MAPS)):
        raise click.BadParameter(f"{roads} has no {ROAD_MAPS}", param_hint="--roads")
    try:
        connected = mg.connect(num_ranks=1, backend=backend)
    except mg.UsageError as error:
        raise click.ClickException(str(error)) from None
    with connected as cluster:
        (rank,) = cluster._ranks  # in this process
        host = rank.backend if backend == "cpu" else CpuBackend()
        setting = Setting(cluster, rank.backend, host, quick, 2 if quick else sources, roads)
        for paper in papers or MODULES:
            module = importlib.import_module(MODULES[paper])
            print(f"\n{module.TITLE}", flush=True)
            began = time.perf_counter()
            lines = []
            for line in module.measure(setting):
                lines.append(line)
                show(line)
                if is_recorded:
                    record.append(backend, commit, {"bench": "papers", "paper": paper, "quick": quick} | line)
            if folder and paper in figures.DRAWN:
                print(*figures.draw(paper, lines, folder))
            print(f"{paper}: {time.perf_counter() - began:.1f} s", flush=True)


def show(line: dict) -> None:
    """Print a record."""
    more = "".join(f"  {name} {share:.0%}" for name, share in line.get("shares", {}).items())
    method = f"{line['method']}, {counted(line['ranks'], 'rank')}" if "ranks" in line else line["method"]
    print(
        f"{line['graph']:22} {line['algorithm']:4} {method:48} {line['median_ms']:10.3f} ms "
        f"{line['arcs_per_s'] / 1e9:8.3f} G arcs/s{more}",
        flush=True,
    )


if __name__ == "__main__":
    main()
