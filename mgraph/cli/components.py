"""mgraph components."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.components import connected_components
from mgraph.cli.answer import answer_options, edges_of, graph_of, keep, tell


@click.command()
@answer_options("the labels")
def components(**options: Any) -> None:
    """Find which vertices of INPUT are connected: a file, or a spec such as rmat:20.

    Each is labelled with the smallest vertex that it is connected with, in a directed graph along arcs in
    either direction.
    """
    with graph_of(edges_of(options), options) as (g, show):
        show(f"components of {g!r}")
        found = connected_components(g)
        words = keep(found, options, show)
    tell(found, options, words, num_components=found.num_components)
