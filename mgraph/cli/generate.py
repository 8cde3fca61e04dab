"""Define the command `mgraph generate`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.cli.convert import output_options, require_output, says_endings, write_output
from mgraph.cli.options import progress
from mgraph.generate.spec import parse_spec


@click.command()
@click.argument("spec")
@click.argument("output", metavar="OUT")
@output_options
@says_endings
def generate(spec: str, output: str, **options: Any) -> None:
    """Write the graph of a SPEC to OUT, in the format of its ending.

    SPEC is one of rmat:SCALE[:EDGE_FACTOR], uniform:VERTICES:DEGREE, fixed:VERTICES:OUT_DEGREE,
    grid:ROWSxCOLUMNS[:DROP], ssca2:SCALE[:MAX_CLIQUE], with options after commas, such as
    rmat:20,seed=3,weights=float32. A .csv file contains neither the number of vertices nor whether edges are
    directed: give both when it is read.
    """
    source = parse_spec(spec)
    require_output(output, options["to"], options["overwrite"])
    with progress(quiet=False) as show:
        write_output(source, output, show, **options)
