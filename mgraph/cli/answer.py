"""Share what algorithm commands have in common: options, the graph, validation, output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from mgraph.api.graph import Graph, making
from mgraph.api.results import Result, validate
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    FILE_OPTIONS,
    Command,
    cluster_options,
    combined,
    input_options,
    json_option,
    print_json,
    print_trace,
    progress,
    source_of,
)
from mgraph.cluster.base import Cluster
from mgraph.cluster.connect import connect
from mgraph.edges import EdgeSource, EdgeTable, are_strings
from mgraph.errors import UsageError
from mgraph.ingest.build import Layout
from mgraph.io.write import TABLE_WRITERS, require_holds_strings, require_writable
from mgraph.store.manifest import StoredGraph

ENDINGS = ", ".join(TABLE_WRITERS)

order_option = click.option(
    "--order",
    type=click.Choice(["auto", "degree", "natural"]),
    default="auto",
    show_default=True,
    help="Vertex order: by falling degree, or as in the input; auto chooses by the degrees.",
)


def answer_options(
    written: str, of_input: Callable[[Command], Command] = input_options
) -> Callable[[Command], Command]:
    """Add the options of an algorithm command; `written` names the columns that --output writes."""
    return combined(
        of_input,
        order_option,
        cluster_options,
        click.option(
            "--output",
            "-o",
            metavar="OUT",
            help=f"Write {written} to a file ({ENDINGS}), or to a folder of Parquet parts, which all ranks must share: "
            "a name without an ending, or with a slash.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace files that exist, and a folder of such parts."),
        click.option("--validate", "check", is_flag=True, help="Check the result by rules."),
        click.option("--trace", is_flag=True, help="Print a record of every superstep; --json includes them too."),
        json_option,
    )


def source_of_options(options: dict[str, Any], *, reads_weights: bool = True) -> EdgeSource | EdgeTable | StoredGraph:
    """Return the edge source of INPUT, of a file by default without weights unless `reads_weights`.

    Refuse an output that cannot be written before any work.
    """
    if options["output"] is not None:
        refuse_input_as_output(options["input"], options["output"])
        require_writable(options["output"], overwrite=options["overwrite"])
    given = (options[name] for name in FILE_OPTIONS)
    source = source_of(options["input"], *given, ends_only=not reads_weights)
    if options["output"] is not None and are_strings(source):
        require_holds_strings(options["output"])
    return source


def refuse_input_as_output(source: str, output: str) -> None:
    """Refuse an output that is the input file."""
    if os.path.exists(source) and os.path.exists(output) and os.path.samefile(source, output):
        raise UsageError(f"{output} is the input, which would be replaced: give another file")


@contextmanager
def graph_of(
    edges: EdgeSource | EdgeTable | StoredGraph,
    options: dict[str, Any],
    layout: Layout = "rows",
    check: Callable[[Cluster], None] = lambda cluster: None,
) -> Iterator[tuple[Graph, Callable[[str], None]]]:
    """Build the graph on a cluster that `check` accepts, and that is closed afterwards.

    Yield it and a function that shows progress.
    """
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with connect(**where) as cluster, progress(quiet=options["as_json"]) as show:
        check(cluster)
        show(making(edges))
        yield Graph.from_source(edges, cluster=cluster, order=options["order"], layout=layout), show


def finish(result: Result, options: dict[str, Any], show: Callable[[str], None]) -> str:
    """Validate and write the result as requested; return its summary."""
    if options["check"]:
        show("validating")
        validate(result)
    if options["output"] is not None:
        show(f"writing {options['output']}")
        result.write(options["output"], overwrite=options["overwrite"])
    return repr(result) + (", validated" if options["check"] else "")


def print_result(result: Result, options: dict[str, Any], *lines: str, **facts: Any) -> None:
    """Print a result: one JSON object with these facts, or these lines."""
    if options["as_json"]:
        about = {"graph": result.graph.name, "info": result.graph.info, "output": options["output"]}
        costs = {"seconds": result.stats.total_s, "stats": result.stats, "validated": options["check"]}
        print_json(about | facts | costs)
        return
    for line in lines:
        click.echo(line)
    if options["trace"]:
        print_trace(result.stats)
