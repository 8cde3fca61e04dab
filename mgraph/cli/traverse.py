"""mgraph bfs, mgraph sssp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from mgraph.answers import validate
from mgraph.cli.options import (
    CLUSTER_OPTIONS,
    FILE_OPTIONS,
    Command,
    cluster_of,
    cluster_options,
    input_options,
    json_option,
    layout_option,
    print_json,
    print_trace,
    progress,
    source_of,
)
from mgraph.errors import UsageError
from mgraph.graph import Graph
from mgraph.io.checks import check_vertex
from mgraph.io.write import require_writable
from mgraph.plot import plot_supersteps, require_drawable
from mgraph.results import Traversed
from mgraph.traversals import METHODS, NO_WEIGHTS, as_sources
from mgraph.traversals import bfs as run_bfs
from mgraph.traversals import sssp as run_sssp
from mgraph.types import EdgeSource


def _traversal_options(command: Command) -> Command:
    """Add what bfs and sssp have in common."""
    options = (
        click.option("--source", "-s", type=int, multiple=True, required=True, help="A vertex; may be given again."),
        click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True),
        click.option("--order", type=click.Choice(["auto", "degree", "natural"]), default="auto", show_default=True),
        layout_option,
        click.option("--output", "-o", metavar="FILE", help="Write all columns to a .npz, .csv or .parquet file."),
        click.option("--path-to", type=int, metavar="VERTEX", help="Print the path to this vertex."),
        click.option("--validate", "check", is_flag=True, help="Check the answer by rules."),
        click.option("--trace", is_flag=True, help="Print what every superstep did."),
        click.option("--plot", metavar="FILE", help="Draw it: frontier and time by superstep, to .png, .svg or .pdf."),
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
@click.option("--cutoff", type=click.FloatRange(min=0), help="Vertices farther than this are not reached.")
def sssp(cutoff: float | None, **options: Any) -> None:
    """Find shortest paths from a source to every vertex of INPUT: a file, or a spec such as rmat:20."""
    if cutoff is not None and math.isnan(cutoff):
        raise click.BadParameter("nan is not a distance.", param_hint="'--cutoff'")
    _run(run_sssp, {"cutoff": cutoff}, **options)


def _check(edges: EdgeSource, sources: tuple[int, ...], target: int | None, weighted: bool) -> None:
    """Refuse before the graph is built what would be refused after it."""
    as_sources(edges.num_vertices, sources)
    if target is not None:
        check_vertex(edges.num_vertices, target, "target")
    if weighted and edges.weight_dtype is None:
        raise UsageError(NO_WEIGHTS)


def _run(search: Callable[..., Traversed], limit: dict, **options: Any) -> None:
    # A file that cannot be written is refused before the work, not after it.
    if options["output"] is not None:
        require_writable(options["output"])
    if options["plot"] is not None:
        require_drawable(options["plot"])
    edges = source_of(options["input"], *(options[name] for name in FILE_OPTIONS))
    _check(edges, options["source"], options["path_to"], weighted=search is run_sssp)
    if options["layout"] == "compact" and options["method"] == "frontier":
        raise UsageError("--method frontier needs rows: use --layout rows, or --method sweep")
    where = {name: options[name] for name in CLUSTER_OPTIONS}
    with cluster_of(**where) as cluster, progress(quiet=options["as_json"]) as show:
        show(f"building {edges.name}")
        g = Graph.from_source(edges, cluster=cluster, order=options["order"], layout=options["layout"])
        show(f"{search.__name__} of {g!r}")
        result = search(g, options["source"], method=options["method"], **limit)
        if options["check"]:
            show("validating")
            validate(result)
        path = None if options["path_to"] is None else result.path_to(options["path_to"])
        if options["output"] is not None:
            show(f"writing {options['output']}")
            result.write(options["output"])
        if options["plot"] is not None:
            show(f"drawing {options['plot']}")
            plot_supersteps(result.stats, options["plot"], title=f"{result.spec.algorithm} of {g.name}")
    if options["as_json"]:
        asked = {"graph": g.name, "info": g.info, "sources": result.sources, "output": options["output"]}
        found = {"seconds": result.stats.total_s, "stats": result.stats, "path": path, "validated": options["check"]}
        print_json(asked | found)
        return
    click.echo(repr(result) + (", validated" if options["check"] else ""))
    if path is not None:
        click.echo(" -> ".join(map(str, path)) if path else f"no path to {options['path_to']}")
    if options["trace"]:
        print_trace(result.stats)
