"""Define the commands `mgraph bfs` and `mgraph sssp`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from mgraph.algorithms.variants import methods_of
from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.graph import Graph
from mgraph.api.graph500 import largest_root, random_roots
from mgraph.api.traversal import PATHS_NEED_WEIGHTS, refuse_method
from mgraph.api.traversal import bfs as run_bfs
from mgraph.api.traversal import sssp as run_sssp
from mgraph.api.traversal_results import Traversed
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, run_command
from mgraph.cli.options import Command, WholeNumber, checkpoint_option, combined, layout_option, search_input_options
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


class Cutoff(click.FloatRange):
    """Parse a distance: a number from 0, or infinity."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        distance = super().convert(value, param, ctx)
        if math.isnan(distance):
            self.fail("nan is not a distance.", param, ctx)
        return distance


def _search_options(algorithm: str) -> Callable[[Command], Command]:
    return combined(
        click.option(
            "--source",
            "-s",
            metavar="VERTEX",
            multiple=True,
            required=True,
            help="A source vertex: its label if the input has labels, else its number, from 0 as in results, even if "
            "the file counts from 1; random: any vertex with edges; largest: the one with the most; label:random is a "
            "vertex of that label. May be repeated.",
        ),
        click.option(
            "--method",
            type=click.Choice(methods_of(algorithm)),
            default="auto",
            show_default=True,
            help="auto: any loop that applies; frontier: any but the sweep; else the loop of this name, of which "
            "docs/variants.md says where it runs: host, for example, by the CPU beside one GPU.",
        ),
        layout_option,
        click.option("--reverse", is_flag=True, help="Follow arcs backward: find distances to the source."),
        checkpoint_option,
        click.option("--path-to", metavar="VERTEX", help="Print the path to this vertex."),
        click.option("--plot", metavar="FILE", help="Draw frontier and time by superstep, to .png, .svg or .pdf."),
        algorithm_options("all columns", search_input_options),
    )


@click.command()
@click.option("--depth-limit", type=WholeNumber(0), help="Vertices farther than this many hops count as unreached.")
@_search_options("bfs")
def bfs(**options: Any) -> None:
    """Find the hops from a source to every vertex of INPUT.

    INPUT is a file, or a spec such as rmat:20. Of the columns of a file only the ends of the edges are read; three or
    more without names are asked about.
    """
    run_command(BFS_COMMAND, options)


@click.command()
@click.option("--cutoff", type=Cutoff(min=0), help="Vertices farther than this count as unreached.")
@_search_options("sssp")
def sssp(**options: Any) -> None:
    """Find shortest paths from a source to every vertex of INPUT.

    INPUT is a file, or a spec such as rmat:20.
    """
    run_command(SSSP_COMMAND, options)


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


def _command_of(search: Callable[..., Traversed], limit: str, *, by_weights: bool) -> CommandSpec:
    """Return the command of a search; `limit` is the option that ends it early."""
    algorithm = search.__name__

    def find(built: Graph, options: Options, show: Show) -> Traversed:
        g = built.reversed() if options["reverse"] else built
        show(f"{algorithm} of {g!r}")
        limited = {limit: options[limit]}
        how = {"method": options["method"], "checkpoint": options["checkpoint"]}
        return search(g, sources_of(g, options["source"]), **how, **limited)

    def check_edges(edges: Input, options: Options) -> None:
        check_ends(edges, options["source"], options["path_to"], weighted=by_weights)
        method = options["method"]
        checkpoint_folder(algorithm, options["checkpoint"], method)
        if options["layout"] in ("compact", "host") and method not in ("auto", "sweep"):
            raise UsageError(f"--method {method} needs rows: use --layout rows, or --method sweep")
        if options["layout"] in ("compact", "host") and options["reverse"]:
            raise UsageError("--reverse needs rows: use --layout rows")

    def check_cluster(cluster: Cluster, options: Options) -> None:
        refuse_method(cluster, algorithm, options["method"])

    return CommandSpec(find, _describe, lambda options: by_weights, check_edges, check_cluster)


def _describe(found: Traversed, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the sources, and the path if one is requested: only now is a label known to be one of the graph."""
    target = options["path_to"]
    path = None if target is None else found.path_to(vertex_of(found.graph.info.labels, target))
    lines = [] if path is None else [" -> ".join(map(str, path)) or f"no path to {target}"]
    return lines, {"sources": found.sources, "path": path}


BFS_COMMAND = _command_of(run_bfs, "depth_limit", by_weights=False)
SSSP_COMMAND = _command_of(run_sssp, "cutoff", by_weights=True)
