"""Text .gr files: road maps and generated graphs of DIMACS 9 and GTgraph, and graphs of PACE.

    c a comment
    p sp VERTICES ARCS     then lines `a SOURCE TARGET WEIGHT`: directed arcs; also `p VERTICES ARCS`, of GTgraph
    p tw VERTICES EDGES    then lines `U V`: undirected edges without weights; also `p td` and `p ds`

Vertices are counted from 1. An undirected road map of DIMACS has the arcs of both directions.
"""

from __future__ import annotations

from mgraph.edges import Labels
from mgraph.errors import InputError, UnknownFormat
from mgraph.io.edge_lines import check_declared_vertices, counts_of, edge_lines, header_lines, wants_weights
from mgraph.io.input_file import InputFile
from mgraph.io.lines import placed
from mgraph.io.parse import LineSyntax
from mgraph.io.text import TextTable

ARCS = ("sp",)
PAIRS = ("tw", "td", "ds")


def read_dimacs(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> TextTable:
    """Read the line of counts and return the lines after it as a table."""
    begin, kind, n, m = _problem(file)
    arcs = kind in ARCS
    weighted = wants_weights(file, weight, has=arcs)
    check_declared_vertices(file, n, num_vertices)
    about = {
        "base": 1,
        "directed": arcs if directed is None else directed,
        "num_vertices": n,
        "labels": labels,
        "declared_edges": m,
    }
    pairs = LineSyntax(2, comments="c")
    syntax = LineSyntax(3, weight=2 if weighted else -1, comments="c", tag="a") if arcs else pairs
    return edge_lines(file, begin, syntax, **about)


def _problem(file: InputFile) -> tuple[int, str, int, int]:
    """Return where the edges begin, the kind of the problem, and the numbers of vertices and edges."""
    for begin, end, words in header_lines(file):
        if not words[0].startswith("c"):
            return end, *_counts(file, begin, words)
    raise InputError(f"{file} has no line `p sp VERTICES ARCS`: truncated?")


def _counts(file: InputFile, begin: int, words: list[str]) -> tuple[str, int, int]:
    """Return the kind of the problem, and the numbers of vertices and edges."""
    if words[0] != "p" or len(words) not in (3, 4):
        raise placed(file, file, begin, f"{' '.join(words)[:40]!r} is no line `p sp VERTICES ARCS`, nor a comment")
    kind = words[1] if len(words) == 4 else "sp"
    if kind not in (*ARCS, *PAIRS):
        known = ", ".join((*ARCS, *PAIRS))
        raise UnknownFormat(f"{file} is a problem of kind {kind[:20]!r}: graphs of the kinds {known} are read")
    n, m = counts_of(file, begin, words[-2:], "the numbers of vertices and edges")
    return kind, n, m
