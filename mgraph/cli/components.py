"""Define the command `mgraph components`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mgraph.api.components import Components, connected_components
from mgraph.api.graph import Graph
from mgraph.cli.answer import answer_options, finish, graph_of, print_result, source_of_options
from mgraph.formatting import counted


@click.command()
@answer_options("the labels")
def components(**options: Any) -> None:
    """Find the connected components of INPUT: a file, or a spec such as rmat:20.

    The label of a vertex is the smallest vertex of its component. In a directed graph arcs connect in both directions.
    Of the columns of a file only the ends of the edges are read; three or more without names are asked about. Prints
    the label and size of the largest component.
    """
    answer_components(connected_components, "components", options)


def answer_components(find: Callable[[Graph], Components], kind: str, options: dict[str, Any]) -> None:
    """Find components of a kind, write them, and print their number and the largest."""
    with graph_of(source_of_options(options, reads_weights=False), options) as (g, show):
        show(f"{kind} of {g!r}")
        result = find(g)
        summary = finish(result, options, show)
        labels, sizes = result.sizes()
        # A graph without a vertex has no largest component.
        largest = {"label": labels[sizes.argmax()], "size": sizes.max()} if len(sizes) else None
    lines = [f"largest: {largest['label']}, {counted(int(largest['size']), 'vertex')}"] if largest else []
    facts = {"num_components": result.num_components, "largest": largest}
    print_result(result, options, summary, *lines, **facts)
