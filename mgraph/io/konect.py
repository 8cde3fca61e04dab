"""KONECT's out.* files: a header with the kinds of edges and weights, then a line for each edge, counted from 1.

    % sym|asym|bip unweighted|positive|posweighted|signed|multisigned|weighted|multiweighted|...
    % EDGES VERTICES VERTICES                              (may be missing, and is not relied on)
    SOURCE TARGET [WEIGHT [TIME]]

The third column of `unweighted` and `positive` networks counts parallel edges, and is no weight. Bipartite networks
count both sides from 1, so that a number means two vertices: they are refused, as results could not name one of them.
"""

from __future__ import annotations

import re

from mgraph.edges import Labels
from mgraph.errors import InputError, UnknownFormat
from mgraph.io.checks import check_num_vertices
from mgraph.io.edge_lines import edge_lines, header_lines, wants_weights
from mgraph.io.input_file import InputFile
from mgraph.io.parse import LineSyntax
from mgraph.io.text import TextTable

DIRECTED = {"sym": False, "asym": True}
UNWEIGHTED = ("unweighted", "positive")
WEIGHTED = ("posweighted", "signed", "multisigned", "weighted", "multiweighted", "multiposweighted")
# The first line of a file.
HEADER = re.compile(rb"%\s*(sym|asym|bip)\s+(\w*weighted|positive|\w*signed|dynamic)\s")


def read_konect(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> TextTable:
    """Read the header and the first edge, and return the edges as a table."""
    header, begin, num_fields = _first_lines(file)
    if len(header) < 2 or header[0] not in (*DIRECTED, "bip"):
        raise InputError(f"{file} does not begin with a line such as `% sym unweighted`")
    if header[0] == "bip":
        raise UnknownFormat(
            f"{file} is bipartite: its two sides are both counted from 1, so that a number means two vertices. Add the "
            "size of the left side to the right column, and read it as text"
        )
    if header[1] not in (*UNWEIGHTED, *WEIGHTED):
        known = ", ".join((*UNWEIGHTED, *WEIGHTED))
        raise UnknownFormat(f"{file} has edges of kind {header[1][:20]!r}: only {known} are read")
    weighted = wants_weights(file, weight, has=header[1] in WEIGHTED and num_fields > 2)
    about = {
        "base": 1,
        "directed": DIRECTED[header[0]] if directed is None else directed,
        "num_vertices": check_num_vertices(num_vertices),
        "labels": labels,
    }
    return edge_lines(file, begin, LineSyntax(num_fields, weight=2 if weighted else -1, comments="%"), **about)


def _first_lines(file: InputFile) -> tuple[list[str], int, int]:
    """Return the words of the header, where the edges begin, and the number of their fields."""
    header: list[str] = []
    after = 0
    for begin, end, words in header_lines(file):
        if not words[0].startswith("%"):
            if not 2 <= len(words) <= 4:
                raise InputError(f"{file}: an edge has two to four columns, and the first one {len(words)}")
            return header, begin, len(words)
        after = end
        header = header or " ".join(words).removeprefix("%").split()
    return header, after, 2
