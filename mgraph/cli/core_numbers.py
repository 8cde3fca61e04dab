"""Define the command `mgraph core-numbers`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.core_numbers import CoreNumbers
from mgraph.api.core_numbers import core_numbers as find_core_numbers
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import CommandSpec, Options, Show, algorithm_options, run_command
from mgraph.formatting import counted


def _find(g: Graph, options: Options, show: Show) -> CoreNumbers:
    show(f"core numbers of {g!r}")
    return find_core_numbers(g)


def _describe(found: CoreNumbers, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the largest core number, and how many vertices have it."""
    size = (found.cores >= found.degeneracy).sum()
    lines = [f"largest: {found.degeneracy}, of {counted(size, 'vertex')}"]
    return lines, {"degeneracy": found.degeneracy, "main_core_size": size}


CORE_NUMBERS_COMMAND = CommandSpec(_find, _describe)


@click.command("core-numbers")
@algorithm_options("the core numbers")
def core_numbers(**options: Any) -> None:
    """Find the core number of every vertex of INPUT: a file, or a spec such as rmat:20.

    It is the largest k for which the vertex is in the k-core: the largest set of vertices that each have at least k
    neighbors in it. In a directed graph arcs out and in count. Of the columns of a file only the ends of the edges are
    read; three or more without names are asked about. Prints the largest core number.
    """
    run_command(CORE_NUMBERS_COMMAND, options)
