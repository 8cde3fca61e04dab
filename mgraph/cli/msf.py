"""Define the command `mgraph msf`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.graph import Graph
from mgraph.api.spanning_forest import Forest, minimum_spanning_forest, require_spannable
from mgraph.cli.answer import Algorithm, Edges, Options, Show, answer_options, run_algorithm
from mgraph.cli.options import checkpoint_option
from mgraph.edges import has_weights


def _find(g: Graph, options: Options, show: Show) -> Forest:
    show(f"spanning forest of {g!r}")
    return minimum_spanning_forest(g, maximum=options["maximum"], checkpoint=options["checkpoint"])


def _describe(forest: Forest, options: Options) -> tuple[list[str], dict[str, Any]]:
    sizes = {name: getattr(forest, name) for name in ("total_weight", "num_edges", "num_trees")}
    return [], {"maximum": options["maximum"]} | sizes


def _check_edges(edges: Edges, options: Options) -> None:
    require_spannable(edges.directed, has_weights(edges))
    checkpoint_folder("spanning_forest", options["checkpoint"])


MSF = Algorithm(_find, _describe, reads_weights=True, check_edges=_check_edges)


@click.command()
@click.option("--maximum", is_flag=True, help="Find the heaviest forest instead of the lightest.")
@checkpoint_option
@answer_options("the edges")
def msf(**options: Any) -> None:
    """Find a minimum spanning forest of INPUT, a file or spec (rmat:20)."""
    run_algorithm(MSF, options)
