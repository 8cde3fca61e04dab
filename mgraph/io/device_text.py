"""Parse text in device memory: plain lines by one thread each, all others by the parser on the host."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.io.device_text_kernels import (
    EDGE,
    ODD,
    POWERS,
    TILE_BYTES,
    count_line_feeds,
    list_line_begins,
    parse_plain_lines,
)
from mgraph.io.line_pieces import LineEdges, parsed
from mgraph.io.parse import PADDING, LineSyntax
from mgraph.types import Array

# If more lines than this are not plain, all are parsed on the host.
MAX_ODD_LINES = 1000
NO_FIELD = 255
# float64 holds no larger integers exactly.
MAX_WHOLE = 2**53


def parsed_on_device(backend: Backend, syntax: LineSyntax, text: np.ndarray, at: int) -> LineEdges | None:
    """Parse whole lines that begin at byte `at` of a file, as `parsed` does.

    Return None if they are better parsed on the host.
    """
    if backend.xp is np or not _is_plain(syntax) or not len(text):
        return None
    # Threads that read are not those of the backend.
    backend.enter_thread()
    on_device = backend.to_device(text)
    begins = _line_begins(backend, on_device, len(text))
    columns, kinds, num_floats = _parse(backend, syntax, on_device, begins)
    are_whole = num_floats == 0 and not syntax.floats
    num_odd = total(backend, kinds == ODD)
    if num_odd > MAX_ODD_LINES:
        return None
    if num_odd:
        edges = _parse_odd_lines(backend, syntax, text, at, begins, kinds)
        if edges is None:
            return None
        for line, edge in edges:
            kinds[line] = EDGE
            for column, values in zip(columns, (edge.sources, edge.targets, edge.weights), strict=False):
                assert isinstance(values, np.ndarray), "the host parses as many columns"
                column[line] = values[0].item()
            are_whole = are_whole and (edge.weights is None or edge.weights.dtype.kind != "f")
    sources, targets, *weights = _only_edges(backend, columns, kinds)
    if not weights:
        return LineEdges(sources, targets, None, None)
    return LineEdges(sources, targets, weights[0].astype(np.int64) if are_whole else weights[0], None)


def _is_plain(syntax: LineSyntax) -> bool:
    """Return whether the kernels know this syntax."""
    return not syntax.is_text and not syntax.tag and syntax.comments == "#%" and syntax.num_fields < NO_FIELD


def _line_begins(backend: Backend, text: Array, size: int) -> Array:
    """Return the beginnings of all lines, and the end of the last, which may be empty."""
    xp = backend.xp
    num_tiles = -(-size // TILE_BYTES)
    counts = xp.empty(num_tiles, np.int64)
    count_line_feeds[backend](0, num_tiles, text, size, counts)
    sums = xp.cumsum(counts)
    begins = xp.empty(int(sums[-1]) + 2, np.int64)
    begins[0] = 0
    begins[-1] = size
    list_line_begins[backend](0, num_tiles, text, size, sums - counts, begins)
    return begins


def _parse(backend: Backend, syntax: LineSyntax, text: Array, begins: Array) -> tuple[list[Array], Array, int]:
    """Return the columns of all lines, their kinds, and the number of weights that are not written as integers."""
    xp = backend.xp
    num_lines = len(begins) - 1
    separator = ord(syntax.separator) if syntax.separator else 0
    ends = syntax.source << 8 | syntax.target << 16
    fields = syntax.num_fields | ends | (syntax.weight & NO_FIELD) << 24 | separator << 32
    columns = [xp.empty(num_lines, np.int64), xp.empty(num_lines, np.int64)]
    if syntax.weight >= 0:
        columns.append(xp.empty(num_lines, np.float64))
    kinds = xp.empty(num_lines, np.uint8)
    num_floats = xp.zeros(1, np.int64)
    weights = columns[2] if syntax.weight >= 0 else None
    parse_plain_lines[backend](
        0, num_lines, text, begins, fields, backend.to_device(POWERS), *columns[:2], weights, kinds, num_floats
    )
    return columns, kinds, int(num_floats[0])


def _parse_odd_lines(
    backend: Backend, syntax: LineSyntax, text: np.ndarray, at: int, begins: Array, kinds: Array
) -> list[tuple[int, LineEdges]] | None:
    """Parse lines that are not plain on the host; return their numbers and edges.

    None if one cannot be told in a column of float64, or is several lines.
    """
    odd = backend.xp.flatnonzero(kinds == ODD)
    numbers = backend.to_host(odd).tolist()
    firsts = backend.to_host(begins[odd]).tolist()
    ends = backend.to_host(begins[odd + 1]).tolist()
    found = []
    for line, begin, end in zip(numbers, firsts, ends, strict=True):
        padded = np.zeros(end - begin + PADDING, np.uint8)
        padded[: end - begin] = text[begin:end]
        edge = parsed(syntax, padded, end - begin, at + begin)
        if len(edge.sources) > 1 or edge.beyond is not None:
            return None
        weights = edge.weights
        if weights is not None and weights.dtype.kind != "f" and len(weights) and abs(int(weights[0])) > MAX_WHOLE:
            return None
        if len(edge.sources):
            found.append((line, edge))
    return found


def _only_edges(backend: Backend, columns: list[Array], kinds: Array) -> list[Array]:
    """Drop lines without an edge: mostly just the empty one after the last line feed."""
    num_edges = total(backend, kinds == EDGE)
    if num_edges == len(kinds):
        return columns
    if num_edges == len(kinds) - 1 and int(kinds[-1]) != EDGE:
        return [column[:-1] for column in columns]
    are_edges = kinds == EDGE
    return [column[are_edges] for column in columns]
