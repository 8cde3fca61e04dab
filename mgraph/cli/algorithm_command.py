"""Share what algorithm commands have in common: options, the graph, validation, output."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import click

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, making
from mgraph.api.plot import plot_supersteps, require_drawable
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.results import Result, validate
from mgraph.api.tables_on_ranks import table_of_vertices
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    Command,
    cluster_options,
    combined,
    input_options,
    json_option,
    json_text,
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
from mgraph.io.write import TABLE_WRITERS, require_file, require_holds_strings, require_writable, whole_file
from mgraph.store.folder import require_target
from mgraph.store.manifest import StoredGraph, folder_of

ENDINGS = ", ".join(TABLE_WRITERS)

Options = dict[str, Any]
Input = EdgeSource | EdgeTable | StoredGraph
Show = Callable[[str], None]


def require_graph_folder(path: str, *, overwrite: bool) -> None:
    """Refuse a folder to which no graph can be saved."""
    require_target(folder_of(path), overwrite=overwrite)


# Options that name files to write -> what refuses, before any work, a file that could not be written.
OUTPUTS: dict[str, Callable[..., None]] = {
    "output": require_writable,
    "save": require_graph_folder,
    "plot": require_drawable,
    "trace_file": require_file,
}


@dataclass(frozen=True, repr=False)
class BareResult:
    """What a command finds that is no Result: it has no stats, and there are no rules by which it is checked.

    Attributes
    ----------
    graph
        The graph that it is about.
    value
        What `describe` reads.
    summary
        The first line that is printed.
    write
        Writes it to a path, whole or not at all.
    close
        Frees what the ranks hold of it.
    """

    graph: Graph
    value: Any
    summary: str
    write: Callable[..., None] = lambda path, *, overwrite: None
    close: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return self.summary

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def bare_column(column: Column, value: Any, summary: str) -> BareResult:
    """Return a result that writes a column, with the vertices before it."""
    rows = table_of_vertices(column._stored, [column.name], (), ())
    return BareResult(column._stored.graph, value, summary, rows.write, column._stored.close)


def always(options: Options) -> bool:
    """Return True: of commands that read weights, whatever their options are."""
    return True


def unless_hops(options: Options) -> bool:
    """Return whether weights count: not if --hops is given."""
    return not options["hops"]


@dataclass(frozen=True)
class CommandSpec:
    """What a command does with a graph, and what it refuses before there is one.

    Attributes
    ----------
    find
        Computes the result.
    describe
        Returns the lines below the summary, and the facts that --json adds; may refuse options that only a graph can
        judge. Nothing is written before.
    reads_weights
        Whether weights of a file are read, given the options, although none of them names their column.
    check_edges, check_cluster
        Refuse options that cannot be used with this input, with this cluster.
    """

    find: Callable[[Graph, Options, Show], Result | BareResult]
    describe: Callable[[Any, Options], tuple[list[str], dict[str, Any]]]
    reads_weights: Callable[[Options], bool] = lambda options: False
    check_edges: Callable[[Input, Options], None] = lambda edges, options: None
    check_cluster: Callable[[Cluster, Options], None] = lambda cluster, options: None


@dataclass(frozen=True)
class CommandResult:
    """A result that is computed, and validated if requested: its summary, and what `describe` returned."""

    result: Result | BareResult
    summary: str
    lines: Sequence[str]
    facts: dict[str, Any]


order_option = click.option(
    "--order",
    type=click.Choice(["auto", "degree", "natural"]),
    default="auto",
    show_default=True,
    help="Vertex order: by falling degree, or as in the input; auto chooses by the degrees.",
)


def output_options(written: str) -> Callable[[Command], Command]:
    """Add the options of a command that writes columns; `written` names them."""
    return combined(
        click.option(
            "--output",
            "-o",
            metavar="OUT",
            help=f"Write {written} to a file ({ENDINGS}), or to a folder of Parquet parts, which all ranks must share: "
            "a name without an ending, or with a slash.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace files that exist, and a folder of such parts."),
    )


def algorithm_options(
    written: str, of_input: Callable[[Command], Command] = input_options
) -> Callable[[Command], Command]:
    """Add the options of an algorithm command; `written` names the columns that --output writes."""
    return combined(
        of_input,
        order_option,
        cluster_options,
        output_options(written),
        click.option("--validate", "check", is_flag=True, help="Check the result by rules."),
        click.option("--trace", is_flag=True, help="Print a record of every superstep; --json includes them too."),
        click.option(
            "--trace-file",
            metavar="FILE",
            help="Write phases and supersteps as JSON of Chrome's trace format, for Perfetto or chrome://tracing.",
        ),
        json_option,
    )


def run_command(spec: CommandSpec, options: Options) -> None:
    """Build the graph of a command, run it, write and print."""
    check_outputs(options)
    edges = source_of(options["input"], options, ends_only=not spec.reads_weights(options))
    check_options(spec, edges, options)

    def check(cluster: Cluster) -> None:
        spec.check_cluster(cluster, options)

    with graph_of(edges, options, options.get("layout", "rows"), check) as (g, show):
        found = run_and_write(g, spec, options, show)
        found.result.close()
    print_result(found, options)


def check_outputs(options: Options) -> None:
    """Refuse outputs that cannot be written, before any work."""
    given = {name: options[name] for name in OUTPUTS if options.get(name) is not None}
    for name, path in given.items():
        refuse_input_as_output(options["input"], path)
        OUTPUTS[name](path, overwrite=options["overwrite"])
    refuse_same_outputs(given.values())


def refuse_same_outputs(paths: Iterable[str]) -> None:
    """Refuse two outputs of one name."""
    for one, other in itertools.pairwise(sorted(paths, key=os.path.realpath)):
        if os.path.realpath(one) == os.path.realpath(other):
            raise UsageError(f"{other} would be written twice: give two files")


def refuse_input_as_output(source: str, output: str) -> None:
    """Refuse an output that is the input file."""
    if os.path.exists(source) and os.path.exists(output) and os.path.samefile(source, output):
        raise UsageError(f"{output} is the input, which would be replaced: give another file")


def refuse_labels(edges: Input, options: Options) -> None:
    """Refuse an output of numbers for vertices that are strings."""
    if options.get("output") is not None and are_strings(edges):
        require_holds_strings(options["output"])


def check_options(spec: CommandSpec, edges: Input, options: Options) -> None:
    """Refuse what cannot be done with these edges, before the graph is built."""
    refuse_labels(edges, options)
    spec.check_edges(edges, options)


@contextmanager
def graph_of(
    edges: Input,
    options: Options,
    layout: Layout = "rows",
    check: Callable[[Cluster], None] = lambda cluster: None,
) -> Iterator[tuple[Graph, Show]]:
    """Build the graph on a cluster that `check` accepts, and that is closed afterwards.

    Yield it and a function that shows progress.
    """
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with connect(**where) as cluster, progress(quiet=options["as_json"]) as show:
        check(cluster)
        show(making(edges))
        yield Graph.from_source(edges, cluster=cluster, order=options["order"], layout=layout), show


@repeated_after_loss
def run_and_write(
    g: Graph, spec: CommandSpec, options: Options, show: Show, before_writing: Callable[[], None] = lambda: None
) -> CommandResult:
    """Compute a result, validate it if requested, and write it: one call, if a loss of ranks repeats it."""
    found = run_on(g, spec, options, show)
    before_writing()
    write_result(found, options, show)
    return found


def run_on(g: Graph, spec: CommandSpec, options: Options, show: Show) -> CommandResult:
    """Compute a result on a graph, and validate it if requested."""
    result = spec.find(g, options, show)
    summary = repr(result)
    if isinstance(result, Result) and options["check"]:
        show("validating")
        validate(result)
        summary += ", validated"
    return CommandResult(result, summary, *spec.describe(result, options))


def write_result(found: CommandResult, options: Options, show: Show) -> None:
    """Write a result to the outputs that are requested."""
    result = found.result
    for name, doing in (("output", "writing"), ("save", "saving to")):
        if options.get(name) is not None:
            show(f"{doing} {options[name]}")
            result.write(options[name], overwrite=options["overwrite"])
    if isinstance(result, Result):
        _write_stats(result, options, show)


def _write_stats(result: Result, options: Options, show: Show) -> None:
    """Draw the supersteps of a result, and write its trace, if that is requested."""
    if options.get("plot") is not None:
        show(f"drawing {options['plot']}")
        title = f"{result.stats.variant.partition('.')[0]} of {result.graph.name}"
        plot_supersteps(result.stats, options["plot"], title, overwrite=options["overwrite"])
    if options["trace_file"] is not None:
        with whole_file(options["trace_file"]) as temporary:
            temporary.write_text(json_text(result.stats.to_chrome_trace()))


def print_result(found: CommandResult, options: Options) -> None:
    """Print a result: one JSON object, or its summary and lines."""
    result = found.result
    if options["as_json"]:
        facts = {"graph": result.graph.name, "info": result.graph.info}
        facts |= {"output": options["output"]} if "output" in options else {}
        facts |= found.facts
        if isinstance(result, Result):
            facts |= {"seconds": result.stats.total_s, "stats": result.stats, "validated": options["check"]}
        print_json(facts)
        return
    for line in (found.summary, *found.lines):
        click.echo(line)
    if isinstance(result, Result) and options["trace"]:
        print_trace(result.stats)
