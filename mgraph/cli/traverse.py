"""mgraph bfs, mgraph sssp."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from mgraph.algorithms.variants import methods_of
from mgraph.api.plot import plot_supersteps, require_drawable
from mgraph.api.traversal import PATHS_NEED_WEIGHTS, as_sources, refuse_method
from mgraph.api.traversal import bfs as run_bfs
from mgraph.api.traversal import sssp as run_sssp
from mgraph.api.traversal_results import Traversed
from mgraph.cli.answer import answer_options, edges_of, graph_of, keep, refuse_input_as_output, tell
from mgraph.cli.options import Command, layout_option, together
from mgraph.cluster.base import Cluster
from mgraph.errors import UsageError
from mgraph.io.checks import check_vertex
from mgraph.types import EdgeSource


def _search_options(algorithm: str) -> Callable[[Command], Command]:
    return together(
        click.option("--source", "-s", type=int, multiple=True, required=True, help="A vertex; may be given again."),
        click.option(
            "--method",
            type=click.Choice(methods_of(algorithm)),
            default="auto",
            show_default=True,
            help="Which loop: any that applies, any but the sweep, or one of docs/variants.md, refused if it does not.",
        ),
        layout_option,
        click.option("--path-to", type=int, metavar="VERTEX", help="Print the path to this vertex."),
        click.option("--plot", metavar="FILE", help="Draw it: frontier and time by superstep, to .png, .svg or .pdf."),
        answer_options("all columns"),
    )


@click.command()
@click.option("--depth-limit", type=click.IntRange(0), help="Vertices farther than this many hops are not reached.")
@_search_options("bfs")
def bfs(depth_limit: int | None, **options: Any) -> None:
    """Find the hops from a source to every vertex of INPUT: a file, or a spec such as rmat:20."""
    _run(run_bfs, {"depth_limit": depth_limit}, **options)


@click.command()
@click.option("--cutoff", type=click.FloatRange(min=0), help="Vertices farther than this are not reached.")
@_search_options("sssp")
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
        raise UsageError(PATHS_NEED_WEIGHTS)


def _run(search: Callable[..., Traversed], limit: dict, **options: Any) -> None:
    if options["plot"] is not None:
        require_drawable(options["plot"])
        refuse_input_as_output(options["input"], options["plot"])
    edges = edges_of(options)
    _check(edges, options["source"], options["path_to"], weighted=search is run_sssp)
    algorithm, method = search.__name__, options["method"]
    if options["layout"] == "compact" and method not in ("auto", "sweep"):
        raise UsageError(f"--method {method} needs rows: use --layout rows, or --method sweep")

    def check(cluster: Cluster) -> None:
        refuse_method(cluster, algorithm, method)

    with graph_of(edges, options, options["layout"], check) as (g, show):
        show(f"{search.__name__} of {g!r}")
        result = search(g, options["source"], method=method, **limit)
        words = keep(result, options, show)
        path = None if options["path_to"] is None else result.path_to(options["path_to"])
        if options["plot"] is not None:
            show(f"drawing {options['plot']}")
            plot_supersteps(result.stats, options["plot"], title=f"{result.spec.algorithm} of {g.name}")
    lines = [] if path is None else [" -> ".join(map(str, path)) or f"no path to {options['path_to']}"]
    tell(result, options, words, *lines, sources=result.sources, path=path)
