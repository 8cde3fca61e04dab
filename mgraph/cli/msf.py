"""mgraph msf."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.spanning_forest import minimum_spanning_forest, require_spannable
from mgraph.cli.answer import answer_options, edges_of, graph_of, keep, tell


@click.command()
@click.option("--maximum", is_flag=True, help="The heaviest forest instead of the lightest.")
@answer_options("the edges")
def msf(maximum: bool, **options: Any) -> None:
    """Find a minimum spanning forest of INPUT: a file, or a spec such as rmat:20."""
    edges = edges_of(options)
    # A graph that has no forest is refused before the work, not after it.
    require_spannable(edges)
    with graph_of(edges, options) as (g, show):
        show(f"spanning forest of {g!r}")
        forest = minimum_spanning_forest(g, maximum=maximum)
        words = keep(forest, options, show)
    sizes = {name: getattr(forest, name) for name in ("total_weight", "num_edges", "num_trees")}
    tell(forest, options, words, maximum=maximum, **sizes)
