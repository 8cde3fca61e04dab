"""Define the command `mgraph closeness`."""

from __future__ import annotations

import time
from typing import Any

import click

from mgraph.api.centrality import closeness as find_closeness
from mgraph.api.centrality import harmonic as find_harmonic
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import (
    BareResult,
    CommandSpec,
    Input,
    Options,
    Show,
    bare_column,
    order_option,
    output_options,
    run_command,
    unless_hops,
)
from mgraph.cli.options import cluster_options, input_options, json_option
from mgraph.cli.traverse import vertex_of
from mgraph.errors import UsageError
from mgraph.formatting import readable_seconds


def _find(g: Graph, options: Options, show: Show) -> BareResult:
    measure, find = ("harmonic", find_harmonic) if options["harmonic"] else ("closeness", find_closeness)
    show(f"{measure} of {g!r}")
    weighted = False if options["hops"] else None
    chosen: list[Any] = [vertex_of(g.info.labels, vertex) for vertex in options["vertices"]]
    started = time.perf_counter()
    column = None
    if chosen:
        values = dict(zip(chosen, find(g, chosen, weighted=weighted).tolist(), strict=True))
    else:
        column = find(g, weighted=weighted)
        # A graph without a vertex has no largest value.
        values = {column.argmax(): float(column.max())} if g.num_vertices else {}
    seconds = time.perf_counter() - started
    listed = [{"vertex": vertex, "value": value} for vertex, value in values.items()]
    facts = {"measure": measure, "seconds": seconds, "vertices" if chosen else "largest": listed}
    summary = f"<{measure} of {g.name}: {readable_seconds(seconds)}>"
    return BareResult(g, facts, summary) if column is None else bare_column(column, facts, summary)


def _describe(found: BareResult, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the values of the vertices that are requested, or the largest."""
    which, head = ("vertices", "") if options["vertices"] else ("largest", "largest: ")
    return [f"{head}{each['vertex']}, {each['value']:.6g}" for each in found.value[which]], found.value


def _check_edges(edges: Input, options: Options) -> None:
    if options["vertices"] and options["output"] is not None:
        raise UsageError("--output has all vertices: give it without --vertex")


CLOSENESS_COMMAND = CommandSpec(_find, _describe, reads_weights=unless_hops, check_edges=_check_edges)


@click.command()
@click.option("--harmonic", is_flag=True, help="Find the harmonic centrality: the sum of the inverse distances.")
@click.option(
    "--vertex", "-v", "vertices", metavar="VERTEX", multiple=True, help="Only of this vertex; may be repeated."
)
@click.option("--hops", is_flag=True, help="Count the edges of paths, whatever their weights are.")
@input_options
@order_option
@cluster_options
@output_options("the centralities of all vertices")
@json_option
def closeness(**options: Any) -> None:
    """Find how near each vertex of INPUT is to all others: a file, or a spec such as rmat:10.

    Distances are by weights if INPUT has them; in a directed graph they are those to the vertex. A search is made from
    every vertex, or from those of --vertex. Prints the vertex that is nearest to all others, or each of --vertex.
    """
    run_command(CLOSENESS_COMMAND, options)
