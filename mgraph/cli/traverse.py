"""Define the commands `mgraph bfs` and `mgraph sssp`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from mgraph.algorithms.variants import methods_of
from mgraph.api.graph import Graph
from mgraph.api.graph500 import largest_root, random_roots
from mgraph.api.plot import plot_supersteps, require_drawable
from mgraph.api.traversal import PATHS_NEED_WEIGHTS, refuse_method
from mgraph.api.traversal import bfs as run_bfs
from mgraph.api.traversal import sssp as run_sssp
from mgraph.api.traversal_results import Traversed
from mgraph.cli.answer import answer_options, finish, graph_of, print_result, refuse_input_as_output, source_of_options
from mgraph.cli.options import Command, combined, layout_option, search_input_options
from mgraph.cluster.base import Cluster
from mgraph.edges import EdgeSizes, EdgeTable, has_weights, is_table
from mgraph.errors import UsageError
from mgraph.formatting import counted
from mgraph.io.checks import check_vertices
from mgraph.store.manifest import StoredGraph

# Values of --source that choose a vertex; after LABEL they are labels, as any text is.
RANDOM = "random"
CHOSEN = (RANDOM, "largest")
LABEL = "label:"


def _search_options(algorithm: str) -> Callable[[Command], Command]:
    return combined(
        click.option(
            "--source",
            "-s",
            metavar="VERTEX",
            multiple=True,
            required=True,
            help="A source vertex, by its label if the input has labels; random: any vertex with edges; largest: the "
            "one with the most; label:random is a vertex of that label. May be repeated.",
        ),
        click.option(
            "--method",
            type=click.Choice(methods_of(algorithm)),
            default="auto",
            show_default=True,
            help="The loop: any that applies, any but the sweep, or one by its name in docs/variants.md.",
        ),
        layout_option,
        click.option("--reverse", is_flag=True, help="Follow arcs backward: find distances to the source."),
        click.option("--path-to", metavar="VERTEX", help="Print the path to this vertex."),
        click.option("--plot", metavar="FILE", help="Draw frontier and time by superstep, to .png, .svg or .pdf."),
        answer_options("all columns", search_input_options),
    )


@click.command()
@click.option("--depth-limit", type=click.IntRange(0), help="Vertices farther than this many hops count as unreached.")
@_search_options("bfs")
def bfs(depth_limit: int | None, **options: Any) -> None:
    """Find the hops from a source to every vertex of INPUT.

    INPUT is a file, or a spec such as rmat:20. Of the columns of a file only the ends of the edges are read; three or
    more without names are asked about.
    """
    _run(run_bfs, {"depth_limit": depth_limit}, **options)


@click.command()
@click.option("--cutoff", type=click.FloatRange(min=0), help="Vertices farther than this count as unreached.")
@_search_options("sssp")
def sssp(cutoff: float | None, **options: Any) -> None:
    """Find shortest paths from a source to every vertex of INPUT.

    INPUT is a file, or a spec such as rmat:20.
    """
    if cutoff is not None and math.isnan(cutoff):
        raise click.BadParameter("nan is not a distance.", param_hint="'--cutoff'")
    _run(run_sssp, {"cutoff": cutoff}, **options)


def check_ends(edges: EdgeSizes | EdgeTable, sources: tuple[str, ...], target: str | None, weighted: bool) -> None:
    """Refuse invalid arguments before the graph is built, as far as they can be checked then."""
    if edges.num_vertices is not None and not _may_have_labels(edges):
        for source in sources:
            if source not in CHOSEN:
                check_vertices(edges.num_vertices, [vertex_of("", source.removeprefix(LABEL))], "source")
        if target is not None:
            check_vertices(edges.num_vertices, [vertex_of("", target)], "target")
    if weighted and not has_weights(edges):
        raise UsageError(PATHS_NEED_WEIGHTS)


def _may_have_labels(edges: EdgeSizes | EdgeTable) -> bool:
    """Return whether vertices may have labels, although their number is known."""
    if isinstance(edges, StoredGraph):
        return bool(edges.info.labels)
    return is_table(edges) and edges.labels not in ("auto", False)


def sources_of(g: Graph, texts: tuple[str, ...]) -> list[int | str]:
    """Return the sources as the functions take them."""
    drawn = iter(random_roots(g, texts.count(RANDOM), None) if RANDOM in texts else ())
    found: list[int | str] = []
    for text in texts:
        if text in CHOSEN:
            chosen = next(drawn, None) if text == RANDOM else largest_root(g)
            if chosen is None:
                raise UsageError(f"{g.name} has {counted(len(found), 'vertex')} to draw, and more are requested")
            found += g.labels_of([chosen]).tolist()
        else:
            found.append(vertex_of(g.info.labels, text.removeprefix(LABEL)))
    return found


def vertex_of(labels: str, text: str) -> int | str:
    """Return a vertex as the functions take it, in a graph with such labels."""
    try:
        return text if labels == "string" else int(text)
    except ValueError:
        return text  # which is refused there


def _run(search: Callable[..., Traversed], limit: dict, **options: Any) -> None:
    if options["plot"] is not None:
        refuse_input_as_output(options["input"], options["plot"])
        require_drawable(options["plot"], overwrite=options["overwrite"])
    edges = source_of_options(options, reads_weights=search is run_sssp)
    check_ends(edges, options["source"], options["path_to"], weighted=search is run_sssp)
    algorithm = search.__name__
    method = options["method"]
    if options["layout"] == "compact" and method not in ("auto", "sweep"):
        raise UsageError(f"--method {method} needs rows: use --layout rows, or --method sweep")
    if options["layout"] == "compact" and options["reverse"]:
        raise UsageError("--reverse needs rows: use --layout rows")

    def check(cluster: Cluster) -> None:
        refuse_method(cluster, algorithm, method)

    with graph_of(edges, options, options["layout"], check) as (built, show):
        g = built.reversed() if options["reverse"] else built
        show(f"{search.__name__} of {g!r}")
        result = search(g, sources_of(g, options["source"]), method=method, **limit)
        target = options["path_to"]
        # Before anything is written: only now is a label known to be one of the graph.
        path = None if target is None else result.path_to(vertex_of(g.info.labels, target))
        summary = finish(result, options, show)
        if options["plot"] is not None:
            show(f"drawing {options['plot']}")
            title = f"{result._spec.algorithm} of {g.name}"
            plot_supersteps(result.stats, options["plot"], title, overwrite=options["overwrite"])
    lines = [] if path is None else [" -> ".join(map(str, path)) or f"no path to {options['path_to']}"]
    print_result(result, options, summary, *lines, sources=result.sources, path=path)
