"""Define the command `mgraph plan`."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import click

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.cli.options import (
    WholeNumber,
    file_options,
    json_option,
    layout_option,
    print_json,
    print_table,
    source_of,
)
from mgraph.errors import WouldNotFit
from mgraph.formatting import counted, readable_bytes
from mgraph.planning.memory import GraphPlan, plan_graph
from mgraph.planning.placement import Placement, place_graph

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Bytes(click.ParamType):
    """Parse an amount of memory such as 139GiB, 80G or 500000000."""

    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,99}(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", str(value).lower())
        if match is None:
            self.fail(f"{value!r} is not an amount such as 139GiB", param, ctx)
        return int(float(match[1]) * UNITS[match[2]])


@click.command()
@click.argument("input", metavar="INPUT", required=False)
@click.option("--scale", type=WholeNumber(1, 40), help="A Graph500 graph, rmat:SCALE, instead of INPUT.")
@file_options
@click.option("--gpus", type=WholeNumber(1), metavar="N", help="Plan for N GPUs.")
@click.option("--ranks", type=WholeNumber(1), metavar="N", help="Plan for N CPU ranks; one by default.")
@click.option(
    "--memory",
    type=Bytes(),
    metavar="AMOUNT",
    help="Memory of each rank, such as 139GiB; by default its share of the free memory here. Required for GPUs.",
)
@click.option(
    "--host-memory",
    type=Bytes(),
    metavar="AMOUNT",
    help="Host memory of each rank, for the layouts split and host; by default its share of the free memory here.",
)
@layout_option
@json_option
def plan(input: str | None, scale: int | None, layout: str, as_json: bool, **options: Any) -> None:
    """Print the memory that a graph needs, and whether it fits; build nothing.

    INPUT is a file or a spec such as rmat:20. Exit code 5 if it does not fit.
    """
    if (input is None) == (scale is None):
        raise click.UsageError("give INPUT, a file or a spec, or --scale: one of them")
    gpus, ranks, memory, on_host = (options.pop(name) for name in ("gpus", "ranks", "memory", "host_memory"))
    if gpus and ranks:
        raise click.UsageError("--gpus plans for GPUs and --ranks for ranks on the CPU: give one of them")
    if gpus and memory is None:
        raise click.UsageError(f"how much memory does each GPU have? Give it, as in --gpus {gpus} --memory 139GiB")
    source = source_of(input or f"rmat:{scale}", options)
    num_ranks = gpus or ranks or 1
    backend = "cuda" if gpus else "cpu"
    if on_host is not None:
        memory = CpuBackend(1, sharers=num_ranks).free_memory().num_bytes if memory is None else memory
        memory = FreeMemory(memory, host_bytes=on_host)
    made = plan_graph(source, num_ranks, backend, memory, layout)
    placement = place_graph(source, num_ranks, backend, made.memory_bytes, layout) if made.fits else None
    if as_json:
        judged = {"needed_bytes": made.needed_bytes, "fits": made.fits}
        print_json(dataclasses.asdict(made) | judged | {"placement": placement and str(placement)})
    else:
        print_plan(made, placement)
    if not made.fits:
        raise WouldNotFit(made.advice())


def print_plan(made: GraphPlan, placement: Placement | None = None) -> None:
    """Print the bytes of a graph on each rank, and the ranks on which it would be placed."""
    rows = [[name, readable_bytes(num_bytes)] for name, num_bytes in made.parts.items()]
    rows.append(["needed", readable_bytes(made.needed_bytes)])
    rows.append(["available", readable_bytes(made.memory_bytes)])
    if made.layout in ("split", "host"):
        rows.append(["host memory available", readable_bytes(made.host_memory_bytes)])
    ranks = "1 rank" if made.num_ranks == 1 else f"each of {made.num_ranks} ranks"
    about = "about " if made.is_estimate else ""
    sizes = f"{about}{counted(made.num_vertices, 'vertex')}, {counted(made.num_input_edges, 'input edge')}"
    print_table(f"{made.name}: {sizes}, {made.layout} on {ranks}", ["part", "bytes"], rows)
    if made.extras:
        click.echo(f"not counted as needed: {'; '.join(made.extras)}")
    if placement is not None and placement.is_part:
        click.echo(f"placed on {placement}; --workers {placement.of} uses all of them, as in the table")
