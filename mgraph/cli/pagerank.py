"""Define the command `mgraph pagerank`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.graph import Graph
from mgraph.api.pagerank import PageRank, as_damping
from mgraph.api.pagerank import pagerank as find_scores
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, always, run_command
from mgraph.cli.components import refuse_checkpoint_without_rows
from mgraph.cli.options import Tolerance, WholeNumber, checkpoint_option, layout_option
from mgraph.cli.traverse import vertex_of
from mgraph.errors import UsageError


def _find(g: Graph, options: Options, show: Show) -> PageRank:
    show(f"pagerank of {g!r}")
    named = {vertex_of(g.info.labels, text): 1 for text in options["personalize"]}
    return find_scores(
        g,
        options["damping"],
        tolerance=options["tolerance"],
        max_iterations=options["max_iterations"],
        personalization=named or None,
        checkpoint=options["checkpoint"],
    )


def _describe(found: PageRank, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the vertex of the greatest score, and what the iteration came to."""
    highest = {"vertex": found.scores.argmax(), "score": found.scores.max()}
    facts = {"iterations": found.iterations, "change": found.change, "highest": highest}
    return [f"highest: {highest['vertex']}, {highest['score']:.6g}"], facts


def _check_edges(edges: Input, options: Options) -> None:
    as_damping(options["damping"])
    refuse_checkpoint_without_rows(options)
    checkpoint_folder("pagerank", options["checkpoint"])
    if options["check"] and options["layout"] in ("compact", "host"):
        raise UsageError("--validate needs rows: use --layout rows")


PAGERANK_COMMAND = CommandSpec(_find, _describe, reads_weights=always, check_edges=_check_edges)


@click.command()
@click.option("--damping", type=float, default=0.85, show_default=True, help="How much of a score goes along arcs.")
@click.option(
    "--tolerance",
    type=Tolerance(),
    default="1e-6",
    show_default=True,
    help="Largest change of all scores in the last iteration, for each vertex; none to make exactly --max-iterations.",
)
@click.option("--max-iterations", type=WholeNumber(1), default=100, show_default=True, help="The most iterations.")
@click.option(
    "--personalize",
    metavar="VERTEX",
    multiple=True,
    help="Begin anew at this vertex, not at any one. May be repeated.",
)
@checkpoint_option
@layout_option
@algorithm_options("the scores")
def pagerank(**options: Any) -> None:
    """Find the PageRank of every vertex of INPUT: a file, or a spec such as rmat:20.

    A vertex's score goes along its arcs in proportion to their weights; --weight none ignores those of a file. Prints
    the highest score.
    """
    run_command(PAGERANK_COMMAND, options)
