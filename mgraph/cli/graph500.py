"""Define the command `mgraph graph500`."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import click

from mgraph.api.graph500 import KERNELS, Graph500, Graph500Run, run_graph500
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    WholeNumber,
    cluster_options,
    json_option,
    layout_option,
    print_json,
    print_table,
    progress,
)
from mgraph.cluster.connect import connect
from mgraph.formatting import counted
from mgraph.generate.base import Weights

# The order of the arrays that are timed: whether it is that of user ids.
ARRAYS = {"graph's own order": False, "order of user ids": True}
WHAT_COUNTS = (
    "The graph's own order counts: the specification asks for the parent of each vertex, a user id, of sssp for its "
    "distance too, and prescribes no order of the array."
)


@click.command()
@click.option("--scale", type=WholeNumber(1, 40), default=16, show_default=True, help="2**SCALE vertices.")
@click.option("--edge-factor", type=WholeNumber(1), default=16, show_default=True, help="Edges per vertex.")
@click.option(
    "--roots",
    "num_roots",
    type=WholeNumber(1),
    default=64,
    show_default=True,
    help="Number of roots to search from.",
)
@click.option("--seed", type=WholeNumber(0), default=1, show_default=True, help="Seed of the graph.")
@click.option(
    "--weights",
    type=click.Choice(get_args(Weights)),
    default="int",
    show_default=True,
    help="int: 1 to 255; float32, float64: the same as floats; graph500: float32 in [0, 1), as specified.",
)
@click.option("--root-seed", type=WholeNumber(0), help="Seed of the roots; by default every run draws other roots.")
@click.option(
    "--kernel",
    "kernels",
    type=click.Choice(list(KERNELS)),
    multiple=True,
    help="Run only this kernel; may be repeated.",
)
@click.option("--validate/--no-validate", "check", default=True, show_default=True, help="Check every result by rules.")
@click.option("--roots-at-once", is_flag=True, help="Also run one multi-source BFS from all roots, for levels.")
@click.option("--official", is_flag=True, help="Print the specification's output block.")
@layout_option
@cluster_options
@json_option
def graph500(kernels: tuple[str, ...], official: bool, as_json: bool, **options: Any) -> None:
    """Run the Graph500 benchmark: build an RMAT graph, search, validate every result.

    Times end when the output is written: the parent of each vertex as a user id, of sssp its distance too (with
    --roots-at-once, its level by user id). The specification prescribes no order of these arrays, so that those in the
    graph's own order count; the order of user ids is timed too. Rates count the generated edges in the root's
    component, self-loops and parallel edges included, as the specification does.
    """
    if official and as_json:
        raise click.UsageError("--official and --json print the same numbers in two formats: give one of them")
    where = {name: options.pop(name) for name in CLUSTER_OPTIONS}
    spec = Graph500(kernels=kernels or tuple(KERNELS), **options)
    with connect(**where) as cluster, progress(quiet=as_json) as show:
        run = run_graph500(spec, cluster=cluster, progress=show)
    if as_json:
        facts = dataclasses.asdict(run)
        facts["searches"] = {kernel: run.summary(kernel) for kernel in run.searches}
        facts["in_user_order"] = {kernel: run.summary(kernel, in_user_order=True) for kernel in run.in_user_order}
        print_json(facts)
    elif official:
        click.echo(run.output_block())
    else:
        _print(run)


def _print(run: Graph500Run) -> None:
    ranks = counted(run.num_ranks, f"{run.backend} rank")
    judged = "all validated" if run.validated else "not validated"
    sizes = f"{counted(run.num_vertices, 'vertex')}, {counted(run.num_edges, 'edge')}"
    click.echo(f"{run.graph}: {sizes}, built in {run.construction_s:.3g} s; {ranks}, {run.launcher}")
    rows = []
    for kernel in run.searches:
        for array, in_user_order in ARRAYS.items():
            facts = run.summary(kernel, in_user_order=in_user_order)
            times = [f"{facts[name] * 1e3:.3g}" for name in ("min_time", "median_time", "max_time")]
            rates = [f"{facts[name] / 1e6:,.4g}" for name in ("median_TEPS", "harmonic_mean_TEPS")]
            rows.append([kernel, array, *times, *rates])
    columns = ["kernel", "array", "min ms", "median ms", "max ms", "million edges/s: median", "harmonic mean"]
    print_table(f"{counted(len(run.roots), 'root')}, {judged}", columns, rows)
    click.echo(WHAT_COUNTS)
    if (found := run.at_once) is not None:
        steps = counted(found.supersteps, "superstep")
        roots = counted(found.num_roots, "root")
        parts = f"{found.search_s * 1e3:.3g} in {steps}, {found.translate_s * 1e3:.3g} translation to user ids"
        per_s = f"{found.num_roots / found.total_s:,.4g} roots/s, {found.num_edges / found.total_s / 1e6:,.4g} million"
        total_ms = f"{found.total_s * 1e3:.3g} ms"
        click.echo(f"{roots} at once, levels only, {judged}: {total_ms} ({parts}), {per_s} edges/s")
