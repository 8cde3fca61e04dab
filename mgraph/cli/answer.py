"""What commands that give an answer share: their options, the graph, and how the answer is kept and told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from mgraph.api.graph import Graph
from mgraph.api.results import Result, validate
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    FILE_OPTIONS,
    Command,
    cluster_options,
    input_options,
    json_option,
    print_json,
    print_trace,
    progress,
    source_of,
    together,
)
from mgraph.cluster.base import Cluster
from mgraph.cluster.connect import connect
from mgraph.errors import UsageError
from mgraph.io.write import require_writable
from mgraph.types import EdgeSource


def answer_options(written: str) -> Callable[[Command], Command]:
    """Add the options of a command that finds an answer about INPUT; `written` is what --output writes of it."""
    return together(
        input_options,
        click.option("--order", type=click.Choice(["auto", "degree", "natural"]), default="auto", show_default=True),
        cluster_options,
        click.option(
            "--output",
            "-o",
            metavar="FILE",
            help=f"Write {written} to a .npz, .csv or .parquet file, which is replaced if it is there.",
        ),
        click.option("--validate", "check", is_flag=True, help="Check the answer by rules."),
        click.option("--trace", is_flag=True, help="Print what every superstep did; --json tells it too."),
        json_option,
    )


def edges_of(options: dict[str, Any]) -> EdgeSource:
    """Return the edges of INPUT; a file that cannot be written is refused here, before the work."""
    if options["output"] is not None:
        require_writable(options["output"])
        refuse_input_as_output(options["input"], options["output"])
    return source_of(options["input"], *(options[name] for name in FILE_OPTIONS))


def refuse_input_as_output(source: str, output: str) -> None:
    """Refuse to write an answer over the file that it is about."""
    if os.path.exists(source) and os.path.exists(output) and os.path.samefile(source, output):
        raise UsageError(f"{output} is the input, which would be replaced: name another file")


@contextmanager
def graph_of(
    edges: EdgeSource,
    options: dict[str, Any],
    layout: str = "rows",
    check: Callable[[Cluster], None] = lambda cluster: None,
) -> Iterator[tuple[Graph, Callable[[str], None]]]:
    """Yield the graph, on a cluster that ends with it and that `check` did not refuse, and what shows progress."""
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with connect(**where) as cluster, progress(quiet=options["as_json"]) as show:
        check(cluster)
        show(f"building {edges.name}")
        yield Graph.from_source(edges, cluster=cluster, order=options["order"], layout=layout), show


def keep(result: Result, options: dict[str, Any], show: Callable[[str], None]) -> str:
    """Validate and write an answer, as far as that is asked for; return it in words, while its cluster is open."""
    if options["check"]:
        show("validating")
        validate(result)
    if options["output"] is not None:
        show(f"writing {options['output']}")
        result.write(options["output"])
    return repr(result) + (", validated" if options["check"] else "")


def tell(result: Result, options: dict[str, Any], *lines: str, **facts: Any) -> None:
    """Print an answer: as one JSON object with these facts of it, or in words with these lines."""
    if options["as_json"]:
        about = {"graph": result.graph.name, "info": result.graph.info, "output": options["output"]}
        costs = {"seconds": result.stats.total_s, "stats": result.stats, "validated": options["check"]}
        print_json(about | facts | costs)
        return
    for line in lines:
        click.echo(line)
    if options["trace"]:
        print_trace(result.stats)
