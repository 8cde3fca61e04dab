"""Define the command `mgraph degrees`."""

from __future__ import annotations

from typing import Any, get_args

import click

from mgraph.api.degrees import degrees as count_degrees
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import (
    BareResult,
    CommandSpec,
    Options,
    Show,
    bare_column,
    order_option,
    output_options,
    run_command,
)
from mgraph.cli.options import cluster_options, input_options, json_option
from mgraph.rank_jobs.degrees import Direction


def _find(g: Graph, options: Options, show: Show) -> BareResult:
    show(f"degrees of {g!r}")
    found = count_degrees(g, options["direction"])
    total = found.sum()
    # A graph without a vertex has no largest degree.
    largest = {"vertex": found.argmax(), "degree": found.max()} if g.num_vertices else None
    facts = {"direction": options["direction"], "total": total, "largest": largest}
    mean = total / max(g.num_vertices, 1)
    return bare_column(found, facts, f"<degrees of {g.name}: {mean:.3g} in the mean>")


def _describe(found: BareResult, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return a vertex of the largest degree."""
    largest = found.value["largest"]
    return [] if largest is None else [f"largest: {largest['vertex']}, {largest['degree']:,}"], found.value


DEGREES_COMMAND = CommandSpec(_find, _describe)


@click.command()
@click.option(
    "--direction",
    type=click.Choice(get_args(Direction)),
    default="out",
    show_default=True,
    help="Of a directed graph, which arcs count: those out of a vertex, in, or both.",
)
@input_options
@order_option
@cluster_options
@output_options("the degrees")
@json_option
def degrees(**options: Any) -> None:
    """Count the arcs of every vertex of INPUT: a file, or a spec such as rmat:20.

    Self-loops do not count, and parallel edges count once. Of the columns of a file only the ends of the edges are
    read; three or more without names are asked about. Prints the mean degree, and a vertex of the largest.
    """
    run_command(DEGREES_COMMAND, options)
