"""Define the options that commands share, and their output."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from mgraph.api.progress_bar import bar, is_terminal, no_bar
from mgraph.backends.progress import Phase
from mgraph.cluster.base import ON_LOSS
from mgraph.edges import EdgeSource, EdgeTable
from mgraph.formatting import readable_bytes
from mgraph.generate.spec import is_spec, parse_spec
from mgraph.ingest.build import LAYOUTS
from mgraph.io.formats import read_source
from mgraph.store.manifest import StoredGraph, is_store, open_store

if TYPE_CHECKING:
    from mgraph.api.results import Costs

Command = Callable[..., Any]

# Arguments of connect().
CLUSTER_OPTIONS = ("scheduler", "scheduler_file", "num_ranks", "backend", "open_timeout_s", "verb_timeout_s", "on_loss")
# Options of reading a file -> arguments of read_source.
FILE_OPTIONS = {
    "source_column": "source",
    "target_column": "target",
    "weight": "weight",
    "directed": "directed",
    "num_vertices": "num_vertices",
    "labels": "labels",
    "base": "base",
    "sep": "sep",
    "file_format": "format",
}
LABELS = {"auto": "auto", "string": "string", "yes": True, "no": False}
# What a saved graph has settled already.
BUILD_OPTIONS = (*FILE_OPTIONS, "order", "layout")


class WholeNumber(click.IntRange):
    """Parse a number, which help and errors call a whole one."""

    name = "whole number"


class Seconds(click.ParamType):
    """Parse a deadline: a positive, finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


SECONDS = Seconds()


class Tolerance(click.ParamType):
    """Parse a number from 0, or none."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value in (None, "none"):
            return None
        try:
            tolerance = float(value)
        except ValueError:
            tolerance = math.nan
        if not 0 <= tolerance < math.inf:
            self.fail(f"{value!r} is neither a number that is 0 or more nor none", param, ctx)
        return tolerance


def combined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Combine several decorators into one, in the order of --help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


scheduler_options = combined(
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="A running Dask scheduler, such as tcp://host:8786; it has the seconds of the setting "
        "timeouts.scheduler, 10 by default, to answer.",
    ),
    click.option(
        "--scheduler-file",
        metavar="FILE",
        help="The file to which a scheduler writes its address; it may appear within the seconds of the setting "
        "timeouts.scheduler-file, 30 by default.",
    ),
)
cluster_options = combined(
    scheduler_options,
    click.option(
        "--workers",
        "num_ranks",
        type=WholeNumber(1),
        metavar="N",
        help="Number of ranks; by default as many as hold the graph, and more only if that is faster.",
    ),
    click.option(
        "--backend",
        type=click.Choice(["auto", "cpu", "cuda"]),
        default="auto",
        show_default=True,
        help="Where kernels run; auto: on GPUs if there are any.",
    ),
    click.option(
        "--open-timeout",
        "open_timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        help="Deadline for enough workers to register, and for all to connect to each other; by default the setting "
        "timeouts.open, 60.",
    ),
    click.option(
        "--verb-timeout",
        "verb_timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        help="Deadline of each exchange between ranks; by default the setting timeouts.verb, 300.",
    ),
    click.option(
        "--on-loss",
        type=click.Choice(ON_LOSS),
        help="What to do if a worker dies, and with it the graph: end with exit code 4, or rebuild the graph and go "
        "on; by default the setting on-loss, error.",
    ),
)


def _columns(*, short: bool) -> Callable[[Command], Command]:
    """Return the options for the ends of edges, with short names too, --source and --target."""
    return combined(
        *(
            click.option(
                f"--{end}-column",
                *([f"--{end}"] if short else []),
                f"{end}_column",
                metavar="COLUMN",
                help=f"The column of the {end}s of the edges, by name or number from 0.",
            )
            for end in ("source", "target")
        )
    )


_file_options = combined(
    click.option("--weight", metavar="COLUMN", help="The column or array of weights in a file; none ignores weights."),
    click.option("--directed/--undirected", default=None, help="Whether (u, v) and (v, u) are two arcs."),
    click.option(
        "--num-vertices",
        type=WholeNumber(0),
        help="Number of vertices, if more than the largest id in the file plus one.",
    ),
    click.option(
        "--labels",
        type=click.Choice(list(LABELS)),
        help="Whether ids are labels, to be mapped to vertices: strings always are, and by default integers that are "
        "negative or have large gaps; string: read ids of a text as strings.",
    ),
    click.option(
        "--base",
        type=WholeNumber(0),
        metavar="ID",
        help="The id of the first vertex of a text or a table, 0 by default. Other formats have their own (Matrix "
        "Market has 1) and refuse this option.",
    ),
    click.option("--sep", metavar="CHARACTER", help="The character between fields of a text, such as ';' or '\\t'."),
    click.option(
        "--format",
        "file_format",
        metavar="NAME",
        help="Format of a file without a known suffix: text, npz, ...",
    ),
)
file_options = combined(_columns(short=True), _file_options)
input_options = combined(click.argument("input", metavar="INPUT"), file_options)
# Of searches, where --source is a vertex.
search_input_options = combined(click.argument("input", metavar="INPUT"), _columns(short=False), _file_options)
layout_option = click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="rows",
    show_default=True,
    help="split: rows, in host memory what the device cannot hold; compact: less memory, for sweeps only; "
    "host: the same, in host memory what the device cannot hold; auto: the first that fits (split on GPUs, for graphs "
    "with hubs or few arcs a vertex).",
)
checkpoint_option = click.option(
    "--checkpoint",
    metavar="FOLDER",
    help="Keep the state in this folder from time to time, and go on from what it has.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def source_of(text: str, options: dict[str, Any], *, ends_only: bool = False) -> EdgeSource | EdgeTable | StoredGraph:
    """Return the edges of INPUT: a spec such as rmat:20, a saved graph, or a file.

    Of the options of a command, those of FILE_OPTIONS say how to read a file. With `ends_only` its weights are read
    only if an option names them.
    """
    given = {name: options[name] for name in FILE_OPTIONS}
    if is_spec(text):
        for name, value in given.items():
            if value is not None:
                option = "format" if name == "file_format" else name.replace("_", "-")
                raise click.UsageError(f"--{option} applies to files, and {text} is generated")
        return parse_spec(text)
    if is_store(text):
        _refuse_build_options(text)
        return open_store(text)
    if given["weight"] == "none":
        given["weight"] = False
    if given["labels"] is not None:
        given["labels"] = LABELS[given["labels"]]
    return read_source(text, ends_only=ends_only, **{FILE_OPTIONS[name]: value for name, value in given.items()})


def _refuse_build_options(text: str) -> None:
    """Refuse options of this command that apply to reading or building a graph, and not to a saved one.

    Layouts of blocks are accepted: a load may choose between them.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        applies = parameter.name == "layout" and context.params["layout"] != "rows"
        if parameter.name in BUILD_OPTIONS and is_given and not applies:
            raise click.UsageError(f"{parameter.opts[-1]} applies to a graph that is built, and {text} is a saved one")


class _Compiling(logging.Handler):
    """Print that kernels are compiled, and where they are kept: the first commands wait for it."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "job", None) == "compile":
            # A bar may be on the line.
            click.echo(("\r\x1b[2K" if is_terminal() else "") + record.getMessage(), err=True)


@contextmanager
def _compiling_is_said() -> Iterator[None]:
    logger = logging.getLogger("mgraph")
    level = logger.level
    handler = _Compiling()
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows progress: a bar on a terminal, else lines.

    Nothing if quiet.
    """
    if quiet:
        with no_bar():
            yield lambda line: None
        return
    with _compiling_is_said(), bar() as drawn:
        heads: dict[str, Phase | None] = {}

        def show(line: str) -> None:
            # "bfs 3 of 64" is printed once, as "bfs"; a bar has two steps after it.
            counted = re.fullmatch(r"(\S+) (\d+) of (\d+)", line)
            head = counted[1] if counted else line
            if head not in heads:
                heads[head] = Phase("", int(counted[3]), "searches") if counted else None
                if drawn is None and not is_terminal():
                    click.echo(head, err=True)
            if drawn is not None:
                drawn.headline = line
                drawn.own = own = heads[head]
                if counted and own:
                    own.done = int(counted[2]) - 1

        yield show


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    # A twentieth of a second, which commands without a table save.
    from rich.console import Console
    from rich.table import Table

    click.echo(title)
    table = Table()
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    # Outside of a terminal rows must not be cut to its default width.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def print_trace(stats: Costs) -> None:
    """Print a record of every superstep, and the time of each phase."""
    heads = ["step", "method", "frontier", "arcs scanned", "us"]
    steps = [
        [str(i), step["method"], f"{step['frontier']:,}", f"{step['arcs']:,}", f"{step['microseconds']:,.0f}"]
        for i, step in enumerate(stats.supersteps)
    ]
    if any("host_parts" in step for step in stats.supersteps):
        heads += ["over the link", "parts", "skipped"]
        for row, step in zip(steps, stats.supersteps, strict=True):
            row.append(readable_bytes(step.get("link_bytes", 0)))
            row += [f"{step.get(name, 0):,}" for name in ("host_parts", "skipped_parts")]
    if any("skipped_units" in step for step in stats.supersteps):
        heads.append("skipped units")
        for row, step in zip(steps, stats.supersteps, strict=True):
            row.append(f"{step.get('skipped_units', 0):,}")
    print_table(f"supersteps of {stats.variant}", heads, steps)
    phases = [[name, f"{seconds * 1e3:.3g}"] for name, seconds in stats.seconds.items()]
    print_table("phases", ["phase", "ms"], phases)


def print_json(value: Any) -> None:
    """Print one JSON object."""
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return a value as JSON; NumPy's numbers and dataclasses become plain values.

    JSON has no infinity: a number that is not finite, such as a total beyond all floats, becomes null.
    """
    return json.dumps(plain(value), allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers and dataclasses as plain values, no infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
