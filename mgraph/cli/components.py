"""Define the command `mgraph components`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.components import Components, connected_components
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, run_command
from mgraph.cli.options import checkpoint_option, layout_option
from mgraph.errors import UsageError
from mgraph.formatting import counted


def components_command(find: Callable[[Graph, Options], Components], kind: str, **hooks: Any) -> CommandSpec:
    """Return the command that finds components of a kind; `hooks` are further ones of CommandSpec."""

    def found(g: Graph, options: Options, show: Show) -> Components:
        show(f"{kind} of {g!r}")
        return find(g, options)

    return CommandSpec(found, _describe, **hooks)


def _check_edges(edges: Input, options: Options) -> None:
    refuse_checkpoint_without_rows(options)
    checkpoint_folder("components", options["checkpoint"])


def refuse_checkpoint_without_rows(options: Options) -> None:
    """Refuse a checkpoint in a layout that has none of these algorithms' states."""
    if options["checkpoint"] is not None and options["layout"] in ("compact", "host"):
        raise UsageError("--checkpoint needs rows: use --layout rows")


def _describe(found: Components, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the number of components, and the largest."""
    labels, sizes = found.sizes()
    # A graph without a vertex has no largest component.
    largest = {"label": labels[sizes.argmax()], "size": sizes.max()} if len(sizes) else None
    lines = [f"largest: {largest['label']}, {counted(int(largest['size']), 'vertex')}"] if largest else []
    return lines, {"num_components": found.num_components, "largest": largest}


def _find(g: Graph, options: Options) -> Components:
    return connected_components(g, checkpoint=options["checkpoint"])


COMPONENTS_COMMAND = components_command(_find, "components", check_edges=_check_edges)


@click.command()
@layout_option
@checkpoint_option
@algorithm_options("the labels")
def components(**options: Any) -> None:
    """Find the connected components of INPUT: a file, or a spec such as rmat:20.

    The label of a vertex is the smallest vertex of its component. In a directed graph arcs connect in both directions.
    Of the columns of a file only the ends of the edges are read; three or more without names are asked about. Prints
    the label and size of the largest component.
    """
    run_command(COMPONENTS_COMMAND, options)
