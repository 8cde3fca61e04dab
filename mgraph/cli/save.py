"""Define the command `mgraph save`."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from mgraph.api.subgraph import largest_component
from mgraph.cli.algorithm_command import graph_of, order_option
from mgraph.cli.options import (
    cluster_options,
    input_options,
    json_option,
    layout_option,
    print_json,
    source_of,
)
from mgraph.ingest.build import Layout
from mgraph.store.folder import require_target
from mgraph.store.manifest import folder_of


@click.command()
@input_options
@click.argument("output", metavar="DIR")
@order_option
@layout_option
@cluster_options
@click.option("--largest", is_flag=True, help="Save the largest component alone: if directed, a strong one.")
@click.option("--overwrite", is_flag=True, help="Replace a saved graph that is there already.")
@json_option
def save(output: str, overwrite: bool, largest: bool, layout: Layout, **options: Any) -> None:
    """Build INPUT and save it to the folder DIR, which every command accepts as its INPUT.

    INPUT is a file, or a spec such as rmat:20. A saved graph is loaded on any number of ranks, without a build; all of
    them must see the folder. Vertices of a component keep their names.
    """
    if largest and layout in ("compact", "host"):
        raise click.UsageError("--largest needs rows: use --layout rows")
    require_target(folder_of(output), overwrite=overwrite)
    source = source_of(options["input"], options)
    with graph_of(source, options, layout) as (built, show), contextlib.ExitStack() as parts:
        g = parts.enter_context(largest_component(built, strong=built.info.directed)) if largest else built
        show(f"saving to {output}")
        g.save(output, overwrite=overwrite)
        summary = repr(g)
    if options["as_json"]:
        print_json({"graph": g.name, "info": g.info, "output": output})
    else:
        click.echo(f"{summary} is saved to {output}")
