"""Define the command `mgraph msf`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.spanning_forest import minimum_spanning_forest, require_spannable
from mgraph.cli.answer import answer_options, finish, graph_of, print_result, source_of_options
from mgraph.edges import has_weights


@click.command()
@click.option("--maximum", is_flag=True, help="Find the heaviest forest instead of the lightest.")
@answer_options("the edges")
def msf(maximum: bool, **options: Any) -> None:
    """Find a minimum spanning forest of INPUT, a file or spec (rmat:20)."""
    edges = source_of_options(options)
    # Refuse a graph without a spanning forest before it is built.
    require_spannable(edges.directed, has_weights(edges))
    with graph_of(edges, options) as (g, show):
        show(f"spanning forest of {g!r}")
        forest = minimum_spanning_forest(g, maximum=maximum)
        summary = finish(forest, options, show)
    sizes = {name: getattr(forest, name) for name in ("total_weight", "num_edges", "num_trees")}
    print_result(forest, options, summary, maximum=maximum, **sizes)
