"""Define the command `mgraph generate`."""

from __future__ import annotations

import click

from mgraph.cli.options import progress
from mgraph.generate.spec import parse_spec
from mgraph.io.write import EDGE_WRITERS, require_writable, write_edges


@click.command()
@click.argument("spec")
@click.argument("output", metavar="FILE")
def generate(spec: str, output: str) -> None:
    """Write the graph of a SPEC to FILE: .npz, .csv, .csr or .parquet.

    An existing file is replaced.

    SPEC is one of rmat:SCALE[:EDGE_FACTOR], uniform:VERTICES:DEGREE, fixed:VERTICES:OUT_DEGREE,
    grid:ROWSxCOLUMNS[:DROP], ssca2:SCALE[:MAX_CLIQUE], with options after commas, such as
    rmat:20,seed=3,weights=float32. A .csv file contains neither the number of vertices nor whether edges are
    directed: give both when it is read.
    """
    source = parse_spec(spec)
    require_writable(output, EDGE_WRITERS)
    with progress(quiet=False) as show:
        show(f"writing {source.name} to {output}")
        write_edges(output, source)
