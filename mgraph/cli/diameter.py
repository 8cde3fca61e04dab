"""Define the command `mgraph diameter`."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import click

from mgraph.api.eccentricity import Bounds, bounded
from mgraph.api.graph import Graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.subgraph import largest_component
from mgraph.cli.algorithm_command import graph_of, order_option
from mgraph.cli.options import cluster_options, input_options, json_option, print_json, source_of
from mgraph.formatting import counted, readable_seconds


@click.command()
@click.option("--hops", is_flag=True, help="Count the edges of paths, whatever their weights are.")
@click.option("--lower-bound", is_flag=True, help="Print the distance of two vertices far apart, by a few searches.")
@click.option("--largest", is_flag=True, help="Take the largest component of INPUT: if directed, a strong one.")
@input_options
@order_option
@cluster_options
@json_option
def diameter(hops: bool, lower_bound: bool, largest: bool, **options: Any) -> None:
    """Find how far the two vertices of INPUT that are farthest apart are from each other.

    INPUT is a file, or a spec such as rmat:20. It must be connected, or --largest is needed; a directed graph must be
    strongly connected.
    """
    edges = source_of(options["input"], options, ends_only=hops)
    with graph_of(edges, options) as (built, show), contextlib.ExitStack() as parts:
        g = parts.enter_context(largest_component(built, strong=built.info.directed)) if largest else built
        show(f"diameter of {g!r}")
        started = time.perf_counter()
        found, bounds = _find(g, False if hops else None, lower_bound)
        seconds = time.perf_counter() - started
    if options["as_json"]:
        about = {"graph": g.name, "info": g.info, "weighted": bounds.weighted, "exact": not lower_bound}
        print_json(about | {"diameter": found, "searches": bounds.num_searches, "seconds": seconds})
        return
    length = f"{found:,}" if bounds.weighted else counted(int(found), "hop")
    searches = counted(bounds.num_searches, "search")
    least = "at least " if lower_bound else ""
    click.echo(f"<diameter of {g.name}: {least}{length}, {searches}, {readable_seconds(seconds)}>")


@repeated_after_loss
def _find(g: Graph, weighted: bool | None, lower_bound: bool) -> tuple[int | float, Bounds]:
    with bounded(g, weighted) as bounds:
        return (bounds.sweep() if lower_bound else bounds.narrow("diameter")), bounds
