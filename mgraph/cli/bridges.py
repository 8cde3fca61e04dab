"""Define the command `mgraph bridges`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.bridges import Bridges, require_undirected
from mgraph.api.bridges import bridges as find_bridges
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, run_command


def _find(g: Graph, options: Options, show: Show) -> Bridges:
    show(f"bridges of {g!r}")
    return find_bridges(g)


def _describe(found: Bridges, options: Options) -> tuple[list[str], dict[str, Any]]:
    return [], {"num_edges": found.num_edges}


def _check_edges(edges: Input, options: Options) -> None:
    require_undirected(edges.directed)


BRIDGES_COMMAND = CommandSpec(_find, _describe, check_edges=_check_edges)


@click.command()
@algorithm_options("the bridges")
def bridges(**options: Any) -> None:
    """Find the bridges of INPUT, a file or spec (rmat:20): edges without which their ends would not be connected.

    Of the columns of a file only the ends of the edges are read; three or more without names are asked about.
    """
    run_command(BRIDGES_COMMAND, options)
