"""Define the command `mgraph convert`, and write edges to any format for it and for `mgraph generate`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import click

from mgraph.api.edges import numbered_vertices
from mgraph.api.graph import Graph, making
from mgraph.backends.create import make_backend
from mgraph.cli.algorithm_command import refuse_input_as_output
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    FILE_OPTIONS,
    Command,
    cluster_options,
    combined,
    input_options,
    progress,
    source_of,
)
from mgraph.cluster.connect import connect
from mgraph.edges import EdgeSource, EdgeTable, are_strings, has_weights, is_table
from mgraph.errors import UsageError
from mgraph.formatting import counted
from mgraph.io.convert import table_of_pieces
from mgraph.io.output_tables import Table, table_of_source
from mgraph.io.replace_folder import names_folder
from mgraph.io.write import (
    EDGE_WRITERS,
    GRAPH_WRITERS,
    HOLD_STRINGS,
    IN_ONE_PASS,
    NAMED_WRITERS,
    require_file,
    require_holds_strings,
    require_weights_as_named,
    require_writable,
    suffix_of,
    write_folder,
    write_graph500_files,
    write_table,
)
from mgraph.store.manifest import StoredGraph

ENDINGS = ", ".join([*EDGE_WRITERS, *GRAPH_WRITERS])
output_options = combined(
    click.option(
        "--to",
        type=click.Choice(list(NAMED_WRITERS)),
        help="Write packed edges of Graph500, 12 or 16 bytes each, and weights into OUT.weights.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace files that exist, and a folder of parts."),
    cluster_options,
)


def says_endings(command: Command) -> Command:
    """Add the endings of OUT to the help of a command."""
    endings = f"Endings of OUT: {ENDINGS}; a folder of Parquet parts has none, or a slash."
    command.__doc__ = f"{command.__doc__}\n\n    {endings}\n    "
    return command


@click.command()
@input_options
@click.argument("output", metavar="OUT")
@output_options
@click.option("--vertices", metavar="FILE", help="Number the vertices, and write the label of each number to FILE.")
@says_endings
def convert(input: str, output: str, vertices: str | None, **options: Any) -> None:
    """Write the edges of INPUT to OUT, in the format of its ending.

    Edges are written as they are read, without building a graph: self-loops and parallel edges stay, and labels, too.
    Only .sg, .wsg and .graph (METIS) hold a built graph: without self-loops, with the lightest of parallel edges; so
    does every format if --vertices numbers the vertices.

    Text, .arrow and .parquet hold labels that are strings; other formats need --vertices. Text says neither the number
    of vertices nor whether edges are directed: give both when it is read.
    """
    refuse_input_as_output(input, output)
    require_output(output, options["to"], options["overwrite"])
    if vertices is not None:
        refuse_input_as_output(input, vertices)
        require_writable(vertices, overwrite=options["overwrite"])
        if os.path.abspath(vertices) == os.path.abspath(output):
            raise UsageError(f"{output} is given for the edges and for the vertices: give two files")
    edges = source_of(input, {name: options.pop(name) for name in FILE_OPTIONS})
    if are_strings(edges):
        _require_holds_strings(output, options["to"], vertices)
    with progress(quiet=False) as show:
        write_output(edges, output, show, vertices=vertices, **options)


def require_output(output: str, to: str | None, overwrite: bool) -> None:
    """Refuse an output that cannot be written, before any work."""
    if to is None:
        require_writable(output, EDGE_WRITERS | GRAPH_WRITERS, overwrite=overwrite)
    else:
        require_file(output, overwrite=overwrite)
        require_file(f"{output}.weights", overwrite=overwrite)


def _require_holds_strings(output: str, to: str | None, vertices: str | None) -> None:
    """Refuse an output of numbers for strings, unless `vertices` has the string of each number."""
    if vertices is not None:
        require_holds_strings(vertices)
    elif to is not None or (not names_folder(output) and suffix_of(output) not in HOLD_STRINGS):
        raise UsageError(
            f"{output} numbers vertices, and these are strings: --vertices FILE writes the string of each number to "
            "FILE; .csv, .tsv, .parquet and .arrow hold strings"
        )


def write_output(
    edges: EdgeSource | EdgeTable | StoredGraph,
    output: str,
    show: Callable[[str], None],
    *,
    to: str | None,
    overwrite: bool,
    vertices: str | None = None,
    **cluster: Any,
) -> None:
    """Write edges to a file or folder; build a graph where the format is one of graphs."""
    path = pathlib.Path(output)
    is_folder = to is None and names_folder(output)
    if to is None and not is_folder:
        require_weights_as_named(path, has_weights(edges))
    is_graph = not is_folder and to is None and suffix_of(path) in GRAPH_WRITERS
    if is_graph or vertices is not None or isinstance(edges, StoredGraph):
        where = {name: cluster[name] for name in CLUSTER_OPTIONS}
        with connect(**where) as ranks:
            show(making(edges))
            g = Graph.from_source(edges, cluster=ranks)
            show(f"writing {output}")
            if vertices is not None:
                # Before the edges: their numbers mean nothing without it.
                show(f"writing {vertices}")
                numbered_vertices(g).write(vertices, overwrite=overwrite)
            if is_graph or vertices is not None:
                _refuse_labels(g, output, vertices)
                _write(output, g.edges._numbered(both=is_graph), to, overwrite=overwrite)
            else:
                _write(output, g.edges._as_table(), to, overwrite=overwrite)
        return
    show(f"writing {edges.name} to {output}")
    runs_on = make_backend("cpu")
    try:
        if is_table(edges):
            one_pass = to is None and not is_folder and suffix_of(path) in IN_ONE_PASS
            table, survey = table_of_pieces(edges, runs_on, in_one_pass=one_pass)
            if survey is not None and survey.num_vertices_apart:
                listed = counted(survey.num_vertices_apart, "vertex")
                show(f"edges alone are written: the list of {listed} is not")
        else:
            table = table_of_source(edges, runs_on)
        _write(output, table, to, overwrite=overwrite)
    finally:
        getattr(edges, "release", lambda: None)()
        runs_on.close()


def _write(output: str, table: Table, to: str | None, *, overwrite: bool) -> None:
    if to is not None:
        write_graph500_files(pathlib.Path(output), table, to)
    elif names_folder(output):
        write_folder(output, table, overwrite=overwrite)
    else:
        write_table(output, table, EDGE_WRITERS | GRAPH_WRITERS)


def _refuse_labels(g: Graph, output: str, vertices: str | None) -> None:
    """Refuse to write numbers for labels unless the labels are written too."""
    if g.info.labels and vertices is None:
        raise UsageError(
            f"{output} numbers vertices, and the {counted(g.num_vertices, 'vertex')} of {g.name} have labels: "
            "--vertices FILE writes the label of each number to FILE"
        )
