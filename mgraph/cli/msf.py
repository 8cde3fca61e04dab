"""mgraph msf."""

from __future__ import annotations

from typing import Any

import click

from mgraph.answers import validate
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    FILE_OPTIONS,
    cluster_of,
    cluster_options,
    input_options,
    json_option,
    print_json,
    print_trace,
    progress,
    source_of,
)
from mgraph.forests import minimum_spanning_forest, require_spannable
from mgraph.graph import Graph
from mgraph.io.write import require_writable


@click.command()
@input_options
@cluster_options
@json_option
@click.option("--maximum", is_flag=True, help="The heaviest forest instead of the lightest.")
@click.option("--order", type=click.Choice(["auto", "degree", "natural"]), default="auto", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="Write the edges to a .npz, .csv or .parquet file.")
@click.option("--validate", "check", is_flag=True, help="Check the answer by rules.")
@click.option("--trace", is_flag=True, help="Print what every superstep did.")
def msf(maximum: bool, **options: Any) -> None:
    """Find a minimum spanning forest of INPUT: a file, or a spec such as rmat:20."""
    # A file that cannot be written is refused before the work, not after it; so is a graph without weights.
    if options["output"] is not None:
        require_writable(options["output"])
    edges = source_of(options["input"], *(options[name] for name in FILE_OPTIONS))
    require_spannable(edges)
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with cluster_of(**where) as cluster, progress(quiet=options["as_json"]) as show:
        show(f"building {edges.name}")
        g = Graph.from_source(edges, cluster=cluster, order=options["order"])
        show(f"spanning forest of {g!r}")
        forest = minimum_spanning_forest(g, maximum=maximum)
        if options["check"]:
            show("validating")
            validate(forest)
        if options["output"] is not None:
            show(f"writing {options['output']}")
            forest.write(options["output"])
    if options["as_json"]:
        asked = {"graph": g.name, "info": g.info, "maximum": maximum, "output": options["output"]}
        sizes = {name: getattr(forest, name) for name in ("total_weight", "num_edges", "num_trees")}
        found = {"seconds": forest.stats.total_s, "stats": forest.stats, "validated": options["check"]}
        print_json(asked | sizes | found)
        return
    click.echo(repr(forest) + (", validated" if options["check"] else ""))
    if options["trace"]:
        print_trace(forest.stats)
