"""Define the command `mgraph bipartite`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.bipartite import Bipartite, is_bipartite, require_undirected
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, run_command

# More vertices of an odd cycle are only in --json.
SHOWN = 20


def _find(g: Graph, options: Options, show: Show) -> Bipartite:
    show(f"sides of {g!r}")
    return is_bipartite(g)


def _describe(found: Bipartite, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the odd cycle, if there is one."""
    cycle = found.odd_cycle
    facts = {"bipartite": bool(found), "odd_cycle": cycle}
    if found:
        return [], facts
    shown = [str(vertex) for vertex in cycle[:SHOWN]] + ["..."] * (len(cycle) > SHOWN)
    return [f"odd cycle of {len(cycle)}: {' -> '.join(shown)}"], facts


def _check_edges(edges: Input, options: Options) -> None:
    require_undirected(edges.directed)


BIPARTITE_COMMAND = CommandSpec(_find, _describe, check_edges=_check_edges)


@click.command()
@algorithm_options("the sides")
def bipartite(**options: Any) -> None:
    """Find whether INPUT is bipartite: a file, or a spec such as rmat:20.

    Then every vertex has a side, 0 or 1, and every edge connects both; else prints a cycle with an odd number of edges.
    Of the columns of a file only the ends of the edges are read; three or more without names are asked about.
    """
    run_command(BIPARTITE_COMMAND, options)
