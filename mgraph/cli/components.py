"""mgraph components."""

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
from mgraph.components import connected_components
from mgraph.graph import Graph
from mgraph.io.write import require_writable


@click.command()
@input_options
@cluster_options
@json_option
@click.option("--order", type=click.Choice(["auto", "degree", "natural"]), default="auto", show_default=True)
@click.option("--output", "-o", metavar="FILE", help="Write the labels to a .npz, .csv or .parquet file.")
@click.option("--validate", "check", is_flag=True, help="Check the answer by rules.")
@click.option("--trace", is_flag=True, help="Print what every superstep did.")
def components(**options: Any) -> None:
    """Find which vertices of INPUT are connected: a file, or a spec such as rmat:20.

    Each is labelled with the smallest vertex that it is connected with, in a directed graph along arcs in
    either direction.
    """
    # A file that cannot be written is refused before the work, not after it.
    if options["output"] is not None:
        require_writable(options["output"])
    edges = source_of(options["input"], *(options[name] for name in FILE_OPTIONS))
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with cluster_of(**where) as cluster, progress(quiet=options["as_json"]) as show:
        show(f"building {edges.name}")
        g = Graph.from_source(edges, cluster=cluster, order=options["order"])
        show(f"components of {g!r}")
        result = connected_components(g)
        if options["check"]:
            show("validating")
            validate(result)
        if options["output"] is not None:
            show(f"writing {options['output']}")
            result.write(options["output"])
    if options["as_json"]:
        asked = {"graph": g.name, "info": g.info, "output": options["output"]}
        found = {"seconds": result.stats.total_s, "stats": result.stats, "validated": options["check"]}
        print_json(asked | {"num_components": result.num_components} | found)
        return
    click.echo(repr(result) + (", validated" if options["check"] else ""))
    if options["trace"]:
        print_trace(result.stats)
