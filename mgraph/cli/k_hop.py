"""Define the command `mgraph k-hop`."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from mgraph.api.neighborhood import k_hop as find_neighborhood
from mgraph.cli.algorithm_command import graph_of, order_option
from mgraph.cli.options import (
    WholeNumber,
    cluster_options,
    json_option,
    print_json,
    search_input_options,
    source_of,
)
from mgraph.cli.traverse import check_ends, sources_of
from mgraph.formatting import counted
from mgraph.store.folder import require_target
from mgraph.store.manifest import folder_of


@click.command("k-hop")
@click.option(
    "--source",
    "-s",
    "sources",
    metavar="VERTEX",
    multiple=True,
    required=True,
    help="A source, by its label if it has one, else its number, from 0; several together if repeated. random and "
    "largest as of bfs.",
)
@click.option("--hops", "-k", type=WholeNumber(0), required=True, metavar="K", help="The most hops.")
@click.option("--save", "output", metavar="DIR", help="Save the graph of the vertices to a folder, as `save` does.")
@click.option("--overwrite", is_flag=True, help="Replace a saved graph that is there already.")
@search_input_options
@order_option
@cluster_options
@json_option
def k_hop(sources: tuple[str, ...], hops: int, output: str | None, overwrite: bool, **options: Any) -> None:
    """Find the vertices within K hops of the sources in INPUT: a file, or a spec such as rmat:20.

    Of a directed graph arcs are followed forward. Prints how many vertices there are at each level; with --save the
    vertices and all edges between them become a graph, in which they keep their names.
    """
    if output is not None:
        require_target(folder_of(output), overwrite=overwrite)
    edges = source_of(options["input"], options, ends_only=output is None)
    check_ends(edges, sources, None, weighted=False)
    with graph_of(edges, options) as (g, show):
        show(f"neighborhood in {g!r}")
        with find_neighborhood(g, sources_of(g, sources), hops) as found:
            summary = repr(found)
            counts = np.bincount(found.levels).tolist()
            facts = {"graph": g.name, "info": g.info, "num_vertices": len(found), "levels": counts, "output": output}
            if output is not None:
                show(f"saving to {output}")
                with found.subgraph() as near:
                    near.save(output, overwrite=overwrite)
                    summary += f", {counted(near.num_edges, 'edge')} saved to {output}"
                    facts |= {"num_edges": near.num_edges}
    if options["as_json"]:
        print_json(facts)
        return
    click.echo(summary)
    for level, count in enumerate(counts):
        click.echo(f"level {level}: {counted(count, 'vertex')}")
