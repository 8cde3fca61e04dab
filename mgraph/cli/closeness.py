"""Define the command `mgraph closeness`."""

from __future__ import annotations

import time
from typing import Any

import click

from mgraph.api.centrality import closeness as find_closeness
from mgraph.api.centrality import harmonic as find_harmonic
from mgraph.api.tables_on_ranks import table_of_vertices
from mgraph.cli.algorithm_command import check_outputs, graph_of, order_option, output_options, refuse_labels
from mgraph.cli.options import cluster_options, input_options, json_option, print_json, source_of
from mgraph.cli.traverse import vertex_of
from mgraph.errors import UsageError
from mgraph.formatting import readable_seconds


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
def closeness(harmonic: bool, vertices: tuple[str, ...], hops: bool, **options: Any) -> None:
    """Find how near each vertex of INPUT is to all others: a file, or a spec such as rmat:10.

    Distances are by weights if INPUT has them; in a directed graph they are those to the vertex. A search is made from
    every vertex, or from those of --vertex. Prints the vertex that is nearest to all others, or each of --vertex.
    """
    if vertices and options["output"] is not None:
        raise UsageError("--output has all vertices: give it without --vertex")
    check_outputs(options)
    edges = source_of(options["input"], options, ends_only=hops)
    refuse_labels(edges, options)
    measure = "harmonic" if harmonic else "closeness"
    find = find_harmonic if harmonic else find_closeness
    with graph_of(edges, options) as (g, show):
        show(f"{measure} of {g!r}")
        started = time.perf_counter()
        weighted = False if hops else None
        if vertices:
            chosen: list[Any] = [vertex_of(g.info.labels, vertex) for vertex in vertices]
            values = dict(zip(chosen, find(g, chosen, weighted=weighted).tolist(), strict=True))
        else:
            found = find(g, weighted=weighted)
            # A graph without a vertex has no largest value.
            values = {found.argmax(): float(found.max())} if g.num_vertices else {}
            if options["output"] is not None:
                show(f"writing {options['output']}")
                rows = table_of_vertices(found._stored, [found.name], (), ())
                rows.write(options["output"], overwrite=options["overwrite"])
        seconds = time.perf_counter() - started
    if options["as_json"]:
        about = {"graph": g.name, "info": g.info, "measure": measure, "seconds": seconds}
        listed = [{"vertex": vertex, "value": value} for vertex, value in values.items()]
        print_json(about | {"largest" if not vertices else "vertices": listed, "output": options["output"]})
        return
    click.echo(f"<{measure} of {g.name}: {readable_seconds(seconds)}>")
    for vertex, value in values.items():
        click.echo(f"{'' if vertices else 'largest: '}{vertex}, {value:.6g}")
