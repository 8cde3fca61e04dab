"""Define the command `mgraph degrees`."""

from __future__ import annotations

from typing import Any, get_args

import click

from mgraph.api.degrees import degrees as count_degrees
from mgraph.api.tables_on_ranks import table_of_vertices
from mgraph.cli.algorithm_command import check_outputs, graph_of, order_option, output_options, refuse_labels
from mgraph.cli.options import cluster_options, input_options, json_option, print_json, source_of
from mgraph.rank_jobs.degrees import Direction


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
def degrees(direction: Direction, **options: Any) -> None:
    """Count the arcs of every vertex of INPUT: a file, or a spec such as rmat:20.

    Self-loops do not count, and parallel edges count once. Of the columns of a file only the ends of the edges are
    read; three or more without names are asked about. Prints the mean degree, and a vertex of the largest.
    """
    check_outputs(options)
    edges = source_of(options["input"], options, ends_only=True)
    refuse_labels(edges, options)
    with graph_of(edges, options) as (g, show):
        show(f"degrees of {g!r}")
        found = count_degrees(g, direction)
        # A graph without a vertex has no largest degree.
        largest = {"vertex": found.argmax(), "degree": found.max()} if g.num_vertices else None
        total = found.sum()
        facts = {"graph": g.name, "info": g.info, "direction": direction, "total": total, "largest": largest}
        if options["output"] is not None:
            show(f"writing {options['output']}")
            rows = table_of_vertices(found._stored, [found.name], (), ())
            rows.write(options["output"], overwrite=options["overwrite"])
    if options["as_json"]:
        print_json(facts | {"output": options["output"]})
        return
    mean = total / max(g.info.num_vertices, 1)
    click.echo(f"<degrees of {g.name}: {mean:.3g} in the mean>")
    if largest is not None:
        click.echo(f"largest: {largest['vertex']}, {largest['degree']:,}")
