"""Define the command `mgraph strong-components`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.strong_components import strongly_connected_components
from mgraph.cli.answer import answer_options, finish, graph_of, print_result, source_of_options


@click.command("strong-components")
@answer_options("the labels")
def strong_components(**options: Any) -> None:
    """Find the strongly connected components of INPUT: a file, or a spec such as rmat:20.

    The label of a vertex is the smallest vertex of its component: each vertex of a component reaches all others along
    arcs. In an undirected graph these are the connected components. Of the columns of a file only the ends of the edges
    are read.
    """
    with graph_of(source_of_options(options, reads_weights=False), options) as (g, show):
        show(f"strong components of {g!r}")
        result = strongly_connected_components(g)
        summary = finish(result, options, show)
    print_result(result, options, summary, num_components=result.num_components)
