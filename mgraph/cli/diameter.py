"""Define the command `mgraph diameter`."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import click

from mgraph.api.eccentricity import bounded
from mgraph.api.graph import Graph
from mgraph.api.subgraph import largest_component
from mgraph.cli.algorithm_command import BareResult, CommandSpec, Options, Show, order_option, run_command, unless_hops
from mgraph.cli.options import cluster_options, input_options, json_option
from mgraph.formatting import counted, readable_seconds


def _find(built: Graph, options: Options, show: Show) -> BareResult:
    lower_bound = options["lower_bound"]
    with contextlib.ExitStack() as parts:
        g = built
        if options["largest"]:
            g = parts.enter_context(largest_component(built, strong=built.info.directed))
        show(f"diameter of {g!r}")
        started = time.perf_counter()
        bounds = parts.enter_context(bounded(g, False if options["hops"] else None))
        found = bounds.sweep() if lower_bound else bounds.narrow("diameter")
        seconds = time.perf_counter() - started
    length = f"{found:,}" if bounds.weighted else counted(int(found), "hop")
    searches = counted(bounds.num_searches, "search")
    least = "at least " if lower_bound else ""
    facts = {"weighted": bounds.weighted, "exact": not lower_bound, "diameter": found}
    facts |= {"searches": bounds.num_searches, "seconds": seconds}
    return BareResult(g, facts, f"<diameter of {g.name}: {least}{length}, {searches}, {readable_seconds(seconds)}>")


def _describe(found: BareResult, options: Options) -> tuple[list[str], dict[str, Any]]:
    return [], found.value


DIAMETER_COMMAND = CommandSpec(_find, _describe, reads_weights=unless_hops)


@click.command()
@click.option("--hops", is_flag=True, help="Count the edges of paths, whatever their weights are.")
@click.option("--lower-bound", is_flag=True, help="Print the distance of two vertices far apart, by a few searches.")
@click.option("--largest", is_flag=True, help="Take the largest component of INPUT: if directed, a strong one.")
@input_options
@order_option
@cluster_options
@json_option
def diameter(**options: Any) -> None:
    """Find how far the two vertices of INPUT that are farthest apart are from each other.

    INPUT is a file, or a spec such as rmat:20. It must be connected, or --largest is needed; a directed graph must be
    strongly connected.
    """
    run_command(DIAMETER_COMMAND, options)
