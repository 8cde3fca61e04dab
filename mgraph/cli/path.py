"""Define the command `mgraph path`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.paths import shortest_path
from mgraph.cli.algorithm_command import graph_of, order_option
from mgraph.cli.options import (
    cluster_options,
    json_option,
    print_json,
    search_input_options,
    source_of,
)
from mgraph.cli.traverse import check_ends, sources_of, vertex_of
from mgraph.edges import has_weights
from mgraph.formatting import counted


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
def path(source: str, target: str, hops: bool, **options: Any) -> None:
    """Find a shortest path between two vertices of INPUT, by weights if it has them.

    INPUT is a file, or a spec such as rmat:20. The search ends once the target is found.
    """
    edges = source_of(options["input"], options, ends_only=hops)
    check_ends(edges, (source,), target, weighted=False)
    with graph_of(edges, options) as (g, show):
        show(f"path in {g!r}")
        (start,) = sources_of(g, (source,))
        found = shortest_path(g, start, vertex_of(g.info.labels, target), weighted=False if hops else None)
    weighted = has_weights(edges) and not hops
    if options["as_json"]:
        print_json({"graph": g.name, "info": g.info, "weighted": weighted} | found._asdict())
    elif found.vertices:
        length = f"{found.distance:,}" if weighted else counted(int(found.distance), "hop")
        click.echo(f"{length}: {' -> '.join(map(str, found.vertices))}")
    else:
        click.echo(f"no path from {source} to {target}")
