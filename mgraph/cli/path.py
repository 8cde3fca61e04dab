"""Define the command `mgraph path`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.graph import Graph
from mgraph.api.paths import shortest_path
from mgraph.cli.algorithm_command import (
    BareResult,
    CommandSpec,
    Input,
    Options,
    Show,
    order_option,
    run_command,
    unless_hops,
)
from mgraph.cli.options import cluster_options, json_option, search_input_options
from mgraph.cli.traverse import check_ends, sources_of, vertex_of
from mgraph.formatting import counted


def _find(g: Graph, options: Options, show: Show) -> BareResult:
    show(f"path in {g!r}")
    source, target, hops = (options[name] for name in ("source", "target", "hops"))
    (start,) = sources_of(g, (source,))
    found = shortest_path(g, start, vertex_of(g.info.labels, target), weighted=False if hops else None)
    weighted = g.info.weight_dtype is not None and not hops
    facts = {"weighted": weighted} | found._asdict()
    if not found.vertices:
        return BareResult(g, facts, f"no path from {source} to {target}")
    length = f"{found.distance:,}" if weighted else counted(int(found.distance), "hop")
    return BareResult(g, facts, f"{length}: {' -> '.join(map(str, found.vertices))}")


def _describe(found: BareResult, options: Options) -> tuple[list[str], dict[str, Any]]:
    return [], found.value


def _check_edges(edges: Input, options: Options) -> None:
    check_ends(edges, (options["source"],), options["target"], weighted=False)


PATH_COMMAND = CommandSpec(_find, _describe, reads_weights=unless_hops, check_edges=_check_edges)


@click.command()
@click.option(
    "--source",
    "-s",
    metavar="VERTEX",
    required=True,
    help="The first vertex, by its label if it has one, else its number, from 0; random and largest as of bfs.",
)
@click.option("--target", "-t", metavar="VERTEX", required=True, help="The last vertex.")
@click.option("--hops", is_flag=True, help="Count the edges of paths, whatever their weights are.")
@search_input_options
@order_option
@cluster_options
@json_option
def path(**options: Any) -> None:
    """Find a shortest path between two vertices of INPUT, by weights if it has them.

    INPUT is a file, or a spec such as rmat:20. The search ends once the target is found.
    """
    run_command(PATH_COMMAND, options)
