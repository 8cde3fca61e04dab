"""Options that several commands have, and how they print."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from mgraph.generate.spec import is_spec, parse_spec
from mgraph.ingest.build import LAYOUTS
from mgraph.io.formats import read_source
from mgraph.types import EdgeSource

if TYPE_CHECKING:
    from mgraph.api.results import Costs

Command = Callable[..., Any]

# What connect() takes.
CLUSTER_OPTIONS = ("scheduler", "scheduler_file", "num_ranks", "backend", "open_timeout_s", "verb_timeout_s")
FILE_OPTIONS = ("weight", "directed", "num_vertices", "file_format")


class Seconds(click.ParamType):
    """A deadline: a positive, finite number of seconds."""

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


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Make one decorator of several, in the order in which --help shows them."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


cluster_options = together(
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler, such as tcp://host:8786."),
    click.option("--scheduler-file", metavar="FILE", help="Where a scheduler leaves its address: waited for, 30 s."),
    click.option(
        "--workers",
        "num_ranks",
        type=click.IntRange(1),
        metavar="N",
        help="How many ranks to use; by default all, of GPUs as many as make the graph faster.",
    ),
    click.option("--backend", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True),
    click.option(
        "--open-timeout",
        "open_timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        help="How long to wait for enough workers, and for all to open their network; 60 by default.",
    ),
    click.option(
        "--verb-timeout",
        "verb_timeout_s",
        type=SECONDS,
        metavar="SECONDS",
        help="How long a rank may keep the others waiting; 300 by default.",
    ),
)
file_options = together(
    click.option("--weight", metavar="COLUMN", help="The column or array of weights in a file; none for no weights."),
    click.option("--directed/--undirected", default=None, help="Whether (u, v) and (v, u) are two arcs."),
    click.option("--num-vertices", type=click.IntRange(0), help="More than the largest id of a file."),
    click.option("--format", "file_format", metavar="NAME", help="Of a file whose name does not tell: text, npz, ..."),
)
input_options = together(click.argument("input", metavar="INPUT"), file_options)
layout_option = click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="rows",
    show_default=True,
    help="compact: less memory, for sweeps alone; auto: compact where rows would not fit.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def source_of(
    text: str, weight: str | None, directed: bool | None, num_vertices: int | None, file_format: str | None
) -> EdgeSource:
    """Return what INPUT names: a spec such as rmat:20, or a file."""
    if is_spec(text):
        given = {"--weight": weight, "--directed": directed, "--num-vertices": num_vertices, "--format": file_format}
        for option, value in given.items():
            if value is not None:
                raise click.UsageError(f"{option} goes with a file, and {text} is generated")
        return parse_spec(text)
    column = False if weight == "none" else weight
    return read_source(text, weight=column, directed=directed, num_vertices=num_vertices, format=file_format)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield what shows a line of progress: a spinner on a terminal, plain lines elsewhere, nothing if quiet."""
    console = Console(stderr=True)
    if quiet:
        yield lambda line: None
    elif console.is_terminal:
        with console.status("") as status:
            yield status.update
    else:
        shown: set[str] = set()

        def show(line: str) -> None:
            # "bfs 3 of 64" is shown once as "bfs".
            head = line.split(" ")[0] if line[-1:].isdigit() and " of " in line else line
            if head not in shown:
                shown.add(head)
                click.echo(head, err=True)

        yield show


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print rows under a title; the first column is text, the others are numbers."""
    click.echo(title)
    table = Table()
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    # Where there is no terminal, rows must not be cut to a width nobody has.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def print_trace(stats: Costs) -> None:
    """Print what every superstep did, and how long the phases took."""
    steps = [
        [str(i), step["method"], f"{step['frontier']:,}", f"{step['arcs']:,}", f"{step['microseconds']:,.0f}"]
        for i, step in enumerate(stats.supersteps)
    ]
    print_table(f"supersteps of {stats.variant}", ["step", "method", "frontier", "arcs looked at", "us"], steps)
    phases = [[name, f"{seconds * 1e3:.3g}"] for name, seconds in stats.seconds.items()]
    print_table("phases", ["phase", "ms"], phases)


def print_json(value: Any) -> None:
    """Print one object; NumPy's numbers and dataclasses become plain ones.

    JSON has no infinity: a number that is none, such as a total beyond all floats, is null, as browsers write it.
    """
    click.echo(json.dumps(_plain(value), allow_nan=False))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
