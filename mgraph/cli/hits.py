"""Define the command `mgraph hits`."""

from __future__ import annotations

from typing import Any

import click

from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.graph import Graph
from mgraph.api.hits import Hits
from mgraph.api.hits import hits as find_hubs
from mgraph.cli.algorithm_command import CommandSpec, Input, Options, Show, algorithm_options, always, run_command
from mgraph.cli.components import refuse_checkpoint_without_rows
from mgraph.cli.options import Tolerance, WholeNumber, checkpoint_option, layout_option
from mgraph.errors import UsageError


def _find(g: Graph, options: Options, show: Show) -> Hits:
    show(f"hits of {g!r}")
    how = {name: options[name] for name in ("tolerance", "max_iterations", "normalized", "checkpoint")}
    return find_hubs(g, **how)


def _describe(found: Hits, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the vertices of the greatest scores, and what the iteration came to."""
    highest = {
        name: {"vertex": column.argmax(), "score": column.max()}
        for name, column in (("hub", found.hubs), ("authority", found.authorities))
    }
    facts = {"iterations": found.iterations, "change": found.change, **highest}
    return [f"best {name}: {best['vertex']}, {best['score']:.6g}" for name, best in highest.items()], facts


def _check_edges(edges: Input, options: Options) -> None:
    refuse_checkpoint_without_rows(options)
    checkpoint_folder("hits", options["checkpoint"])
    if options["check"] and options["layout"] in ("compact", "host"):
        raise UsageError("--validate needs rows: use --layout rows")


HITS_COMMAND = CommandSpec(_find, _describe, reads_weights=always, check_edges=_check_edges)


@click.command()
@click.option(
    "--tolerance",
    type=Tolerance(),
    default="1e-8",
    show_default=True,
    help="Largest change of all hub scores in the last iteration; none to make exactly --max-iterations.",
)
@click.option("--max-iterations", type=WholeNumber(1), default=100, show_default=True, help="The most iterations.")
@click.option(
    "--normalized/--greatest-one", default=True, help="Scores sum up to 1, or the greatest is 1.", show_default=True
)
@checkpoint_option
@layout_option
@algorithm_options("the scores")
def hits(**options: Any) -> None:
    """Find hubs and authorities (HITS) of INPUT: a file, or a spec such as rmat:20.

    An arc counts as much as its weight; --weight none ignores those of a file. Prints the best hub and authority.
    """
    run_command(HITS_COMMAND, options)
