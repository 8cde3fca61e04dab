"""mgraph bfs, mgraph sssp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mgraph.cli.options import (
    Command,
    cluster_of,
    cluster_options,
    input_options,
    json_option,
    print_json,
    print_table,
    progress,
    source_of,
)
from mgraph.graph import Graph
from mgraph.io.write import require_writable
from mgraph.results import Traversed, validate
from mgraph.traversals import METHODS
from mgraph.traversals import bfs as run_bfs
from mgraph.traversals import sssp as run_sssp

FILE_OPTIONS = ("weight", "directed", "num_vertices", "file_format")


def _traversal_options(command: Command) -> Command:
    """Add what bfs and sssp have in common."""
    options = (
        click.option("--source", "-s", type=int, multiple=True, required=True, help="A vertex; may be given again."),
        click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True),
        click.option("--order", type=click.Choice(["auto", "degree", "natural"]), default="auto", show_default=True),
        click.option("--output", "-o", metavar="FILE", help="Write all columns to a .npz, .csv or .parquet file."),
        click.option("--path-to", type=int, metavar="VERTEX", help="Print the path to this vertex."),
        click.option("--validate", "check", is_flag=True, help="Check the answer by rules."),
        click.option("--trace", is_flag=True, help="Print what every superstep did."),
    )
    for option in reversed(options):
        command = option(command)
    return input_options(cluster_options(json_option(command)))


@click.command()
@_traversal_options
@click.option("--depth-limit", type=click.IntRange(0), help="Vertices farther than this many hops are not reached.")
def bfs(depth_limit: int | None, **options: Any) -> None:
    """Find the hops from a source to every vertex of INPUT: a file, or a spec such as rmat:20."""
    _run(run_bfs, {"depth_limit": depth_limit}, **options)


@click.command()
@_traversal_options
@click.option("--cutoff", type=float, help="Vertices farther than this are not reached.")
def sssp(cutoff: float | None, **options: Any) -> None:
    """Find shortest paths from a source to every vertex of INPUT: a file, or a spec such as rmat:20."""
    _run(run_sssp, {"cutoff": cutoff}, **options)


def _run(
    search: Callable[..., Traversed],
    limit: dict,
    *,
    input: str,
    source: tuple[int, ...],
    method: str,
    order: str,
    output: str | None,
    path_to: int | None,
    check: bool,
    trace: bool,
    as_json: bool,
    **options: Any,
) -> None:
    # A file that cannot be written is refused before the work, not after it.
    if output is not None:
        require_writable(output)
    edges = source_of(input, *(options.pop(name) for name in FILE_OPTIONS))
    with cluster_of(**options) as cluster, progress(quiet=as_json) as show:
        show(f"building {edges.name}")
        g = Graph.from_source(edges, cluster=cluster, order=order)
        show(f"{search.__name__} of {g!r}")
        result = search(g, source, method=method, **limit)
        if check:
            show("validating")
            validate(result)
        path = None if path_to is None else result.path_to(path_to)
        if output is not None:
            show(f"writing {output}")
            result.write(output)
    if as_json:
        facts = {"graph": g.name, "info": g.info, "sources": source, "stats": result.stats}
        print_json(facts | {"seconds": result.stats.total_s, "validated": check, "path": path, "output": output})
        return
    click.echo(repr(result) + (", validated" if check else ""))
    if path is not None:
        click.echo(" -> ".join(map(str, path)) if path else f"no path to {path_to}")
    if trace:
        steps = [
            [str(i), step["method"], f"{step['frontier']:,}", f"{step['arcs']:,}"]
            for i, step in enumerate(result.stats.supersteps)
        ]
        print_table("supersteps", ["step", "method", "frontier", "arcs looked at"], steps)
        phases = [[name, f"{seconds * 1e3:.3g}"] for name, seconds in result.stats.seconds.items()]
        print_table("phases", ["phase", "ms"], phases)
