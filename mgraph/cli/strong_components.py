"""Define the command `mgraph strong-components`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.strong_components import strongly_connected_components
from mgraph.cli.algorithm_command import algorithm_options, run_command
from mgraph.cli.components import components_command

STRONG_COMPONENTS_COMMAND = components_command(lambda g, _: strongly_connected_components(g), "strong components")


@click.command("strong-components")
@algorithm_options("the labels")
def strong_components(**options: Any) -> None:
    """Find the strongly connected components of INPUT: a file, or a spec such as rmat:20.

    The label of a vertex is the smallest vertex of its component: each vertex of a component reaches all others along
    arcs. In an undirected graph these are the connected components. Of the columns of a file only the ends of the edges
    are read; three or more without names are asked about. Prints the label and size of the largest component.
    """
    run_command(STRONG_COMPONENTS_COMMAND, options)
