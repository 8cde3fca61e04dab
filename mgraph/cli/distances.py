"""Define the command `mgraph distances`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from mgraph.api.distance_matrix import DistanceMatrix, distance_matrix
from mgraph.api.graph import Graph
from mgraph.cli.algorithm_command import (
    CommandSpec,
    Input,
    Options,
    Show,
    algorithm_options,
    run_command,
    unless_hops,
)
from mgraph.cli.options import search_input_options
from mgraph.cli.traverse import Cutoff, check_ends, vertex_of
from mgraph.errors import InputError, UsageError
from mgraph.formatting import counted

# Pairs that are printed, at most.
MAX_PRINTED = 20


def _ends(options: Options, what: str) -> list[str]:
    """Return the sources or targets that are named, then those in a file, one on each line."""
    named = options[what]
    path = options.get(f"{what}s_file")
    if path is None:
        return list(named)
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise InputError(f"{path} names no vertex: it has one on each line")
    return [*named, *found]


def _find(g: Graph, options: Options, show: Show) -> DistanceMatrix:
    show(f"distances of {g!r}")
    sources: list[Any] = [vertex_of(g.info.labels, text) for text in _ends(options, "source")]
    targets: list[Any] = [vertex_of(g.info.labels, text) for text in _ends(options, "target")]
    weighted = False if options["hops"] else None
    return distance_matrix(g, sources, targets or None, cutoff=_cutoff_of(options), weighted=weighted)


def _cutoff_of(options: Options) -> float | int | None:
    cutoff = options["cutoff"]
    if cutoff is None or math.isinf(cutoff):
        return None
    return math.floor(cutoff) if options["hops"] else cutoff


def _describe(found: DistanceMatrix, options: Options) -> tuple[list[str], dict[str, Any]]:
    """Return the first pairs, and all distances unless they are written to a file."""
    num_pairs = math.prod(found.shape)
    facts: dict[str, Any] = {"sources": found.sources, "targets": found.targets, "shape": found.shape}
    if options["output"] is not None:
        return [f"{counted(num_pairs, 'pair')} written to {options['output']}"], facts | {"distances": None}
    if options["as_json"]:
        return [], facts | {"distances": [list(map(_known, row)) for row in found.to_numpy().tolist()]}
    pairs = found._table().first(MAX_PRINTED)
    lines = [
        f"{source} -> {target}: {'not reached' if _known(distance) is None else distance}"
        for source, target, distance in zip(*(np.asarray(column).tolist() for column in pairs.values()), strict=True)
    ]
    if num_pairs > MAX_PRINTED:
        lines.append(f"and {counted(num_pairs - MAX_PRINTED, 'pair')} more: --output writes all")
    return lines, facts


def _known(distance: float) -> float | None:
    """Return a distance, None where the target is not reached."""
    return None if distance < 0 or math.isinf(distance) else distance


def _check_edges(edges: Input, options: Options) -> None:
    sources = _ends(options, "source")
    if not sources:
        raise UsageError("there is no source: give --source or --sources")
    for named in (sources, _ends(options, "target")):
        check_ends(edges, tuple(named), None, weighted=False)


DISTANCES_COMMAND = CommandSpec(_find, _describe, reads_weights=unless_hops, check_edges=_check_edges)


@click.command()
@click.option("--source", "-s", metavar="VERTEX", multiple=True, help="A source: a label or number. May be repeated.")
@click.option("--target", "-t", metavar="VERTEX", multiple=True, help="A target: a label or number. May be repeated.")
@click.option("--sources", "sources_file", metavar="FILE", help="More sources, one on each line of a file.")
@click.option("--targets", "targets_file", metavar="FILE", help="More targets, one on each line of a file.")
@click.option("--cutoff", type=Cutoff(min=0), help="Targets farther than this count as not reached.")
@click.option("--hops", is_flag=True, help="Count the edges of paths, whatever their weights are.")
@algorithm_options("all pairs", search_input_options)
def distances(**options: Any) -> None:
    """Find the distances from each of many sources to each of many targets in INPUT: a file, or a spec.

    Distances are by weights if INPUT has them. Without a target they are to all vertices. --output writes a row for
    each pair; without it the first pairs are printed.
    """
    run_command(DISTANCES_COMMAND, options)
