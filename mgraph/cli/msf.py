"""Define the command `mgraph msf`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.components import Components
from mgraph.api.graph import Graph
from mgraph.api.linkage import require_cut
from mgraph.api.spanning_forest import Forest, minimum_spanning_forest, require_spannable
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, always, run_command
from mgraph.cli.components import COMPONENTS_COMMAND, refuse_checkpoint_without_rows
from mgraph.cli.options import checkpoint_option, layout_option
from mgraph.edges import has_weights


def _find(g: Graph, options: Options, show: Show) -> Forest | Components:
    show(f"spanning forest of {g!r}")
    forest = minimum_spanning_forest(g, maximum=options["maximum"], checkpoint=options["checkpoint"])
    if options["cut"] is None:
        return forest
    with forest:
        return forest.cut(options["cut"])


def _describe(found: Forest | Components, options: Options) -> tuple[list[str], dict[str, Any]]:
    if isinstance(found, Components):
        lines, facts = COMPONENTS_COMMAND.describe(found, options)
        return lines, {"maximum": options["maximum"], "cut": options["cut"]} | facts
    sizes = {name: getattr(found, name) for name in ("total_weight", "num_edges", "num_trees")}
    return [], {"maximum": options["maximum"]} | sizes


def _check_edges(edges: Input, options: Options) -> None:
    require_spannable(edges.directed, has_weights(edges))
    refuse_checkpoint_without_rows(options)
    checkpoint_folder("spanning_forest", options["checkpoint"])
    if options["cut"] is not None:
        require_cut(options["cut"])


MSF_COMMAND = CommandSpec(_find, _describe, reads_weights=always, check_edges=_check_edges)


@click.command()
@click.option("--maximum", is_flag=True, help="Find the heaviest forest instead of the lightest.")
@checkpoint_option
@click.option(
    "--cut",
    type=float,
    metavar="WEIGHT",
    help="Find the components that edges of at most this weight connect (of at least, with --maximum).",
)
@layout_option
@algorithm_options("the edges, or with --cut the labels")
def msf(**options: Any) -> None:
    """Find a minimum spanning forest of INPUT, a file or spec (rmat:20)."""
    run_command(MSF_COMMAND, options)
