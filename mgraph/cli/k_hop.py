"""Define the command `mgraph k-hop`."""

from __future__ import annotations

import os
from typing import Any

import click
import numpy as np

from mgraph.api.graph import Graph
from mgraph.api.neighborhood import k_hop as find_neighborhood
from mgraph.cli.algorithm_command import BareResult, CommandSpec, Input, Options, Show, order_option, run_command
from mgraph.cli.options import WholeNumber, cluster_options, json_option, search_input_options
from mgraph.cli.traverse import check_ends, sources_of
from mgraph.formatting import counted


def _find(g: Graph, options: Options, show: Show) -> BareResult:
    show(f"neighborhood in {g!r}")
    folder = options["save"]
    with find_neighborhood(g, sources_of(g, options["source"]), options["hops"]) as found:
        counts = np.bincount(found.levels).tolist()
        facts = {"num_vertices": len(found), "levels": counts, "output": folder}
        if folder is None:
            return BareResult(g, facts, repr(found))
        near = found.subgraph()
        facts |= {"num_edges": near.num_edges}
        summary = f"{found!r}, {counted(near.num_edges, 'edge')} saved to {folder}"
        return BareResult(g, facts, summary, near.save, near.close)


def _describe(found: BareResult, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the number of vertices at each level."""
    levels = found.value["levels"]
    return [f"level {level}: {counted(count, 'vertex')}" for level, count in enumerate(levels)], found.value


def _check_edges(edges: Input, options: Options) -> None:
    check_ends(edges, options["source"], None, weighted=False)


K_HOP_COMMAND = CommandSpec(
    _find, _describe, reads_weights=lambda options: options["save"] is not None, check_edges=_check_edges
)


@click.command("k-hop")
@click.option(
    "--source",
    "-s",
    metavar="VERTEX",
    multiple=True,
    required=True,
    help="A source, by its label if it has one, else its number, from 0; several together if repeated. random and "
    "largest as of bfs.",
)
@click.option("--hops", "-k", type=WholeNumber(0), required=True, metavar="K", help="The most hops.")
@click.option(
    "--save",
    metavar="DIR",
    callback=lambda context, option, value: value and os.path.expanduser(value),
    help="Save the graph of the vertices to a folder, as `save` does.",
)
@click.option("--overwrite", is_flag=True, help="Replace a saved graph that is there already.")
@search_input_options
@order_option
@cluster_options
@json_option
def k_hop(**options: Any) -> None:
    """Find the vertices within K hops of the sources in INPUT: a file, or a spec such as rmat:20.

    Of a directed graph arcs are followed forward. Prints how many vertices there are at each level; with --save the
    vertices and all edges between them become a graph, in which they keep their names.
    """
    run_command(K_HOP_COMMAND, options)
