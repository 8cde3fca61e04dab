"""Define the command `mgraph steiner-tree`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.graph import Graph
from mgraph.api.steiner_tree import SteinerTree, require_undirected
from mgraph.api.steiner_tree import steiner_tree as find_tree
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, always, run_command
from mgraph.cli.traverse import check_ends, sources_of


def _find(g: Graph, options: Options, show: Show) -> SteinerTree:
    show(f"Steiner tree in {g!r}")
    return find_tree(g, sources_of(g, options["terminal"]))


def _describe(found: SteinerTree, options: Options) -> tuple[list[str], dict[str, Any]]:
    return [], {"total_weight": found.total_weight, "num_edges": found.num_edges}


def _check_edges(edges: Input, options: Options) -> None:
    require_undirected(edges.directed)
    check_ends(edges, options["terminal"], None, weighted=False)


STEINER_TREE_COMMAND = CommandSpec(_find, _describe, reads_weights=always, check_edges=_check_edges)


@click.command("steiner-tree")
@click.option(
    "--terminal",
    "-t",
    metavar="VERTEX",
    multiple=True,
    required=True,
    help="A vertex that the tree connects, by its label if it has one, else its number, from 0; repeated for each. "
    "random and largest as of bfs.",
)
@algorithm_options("the edges")
def steiner_tree(**options: Any) -> None:
    """Find a tree that connects terminals in INPUT, a file or spec (rmat:20).

    It weighs less than twice the lightest one; --weight none ignores the weights of a file, and counts edges.
    """
    run_command(STEINER_TREE_COMMAND, options)
