"""Edges of some lines of text as arrays: allocates what the compiled parsers fill, and raises what they find wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.formatting import counted
from mgraph.io import lines, parse
from mgraph.io.lines import BadLine
from mgraph.io.parse import LineSyntax, parse_lines
from mgraph.io.parse_strings import parse_strings
from mgraph.labels.strings import Strings
from mgraph.types import LARGE_VERTEX, SMALL_VERTEX, none_of

# Tokens that are left to Python's float() at a time.
SLOW_TOKENS = 1 << 12
# Lines are counted in the first bytes of a piece, to allocate arrays for its edges; arrays that are full grow.
COUNTED_BYTES = 1 << 14
GROWTH = 1.3


@dataclass(frozen=True)
class LineEdges:
    """The edges of some lines; `beyond` is the first integer weight beyond 64 bits, where none is a float."""

    sources: np.ndarray | Strings
    targets: np.ndarray | Strings
    weights: np.ndarray | None
    beyond: tuple[int, str] | None


def parsed(syntax: LineSyntax, text: np.ndarray, size: int, at: int) -> LineEdges:
    """Parse text[:size], whole lines that begin at byte `at` of a file; PADDING zero bytes follow."""
    state = np.zeros(parse.NUM_WORDS, np.int64)
    state[parse.FLOATS] = syntax.floats
    slow = np.empty((3, SLOW_TOKENS), np.int64)
    between = _between(text[: min(size, COUNTED_BYTES)], syntax)
    capacity = _expected(text, size)
    weights = np.empty(capacity if syntax.weight >= 0 else 0, np.int64)
    arrays = _Strings(capacity, size) if syntax.is_text else _Integers(capacity)
    words = syntax.words
    skipped = syntax.skipped
    while True:
        floats = weights.view(np.float64)
        arrays.parse((text, size, words, skipped), between, (weights, floats, slow), state)
        for edge, begin, end in slow[:, : state[parse.SLOW]].T.tolist():
            floats[edge] = slow_number(at + begin, text[begin:end].tobytes().decode(errors="replace"))
        state[parse.SLOW] = 0
        stop = state[parse.STOP]
        edges = int(state[parse.EDGE])
        if stop == parse.DONE:
            break
        if stop == parse.WRONG:
            raise _wrong(syntax, at, text, state.tolist())
        if stop == parse.WIDE:
            if not arrays.widen(edges):
                problem = "an id is beyond 63 bits and another negative: no integer of 64 bits holds both"
                raise BadLine(at + int(state[parse.AT]), problem)
        elif edges == capacity:
            capacity = int(GROWTH * capacity) + 16
            arrays.grow(capacity)
            if syntax.weight >= 0:
                weights.resize(capacity, refcheck=False)
    sources, targets = arrays.finish(edges)
    if syntax.weight < 0:
        return LineEdges(sources, targets, None, None)
    weights.resize(edges, refcheck=False)
    begin, end = state[parse.BEYOND_BEGIN : parse.BEYOND_END + 1].tolist()
    beyond = None
    if end and not state[parse.HAS_FLOATS] and not syntax.floats:
        beyond = at + begin, text[begin:end].tobytes().decode()
    return LineEdges(sources, targets, weights.view(np.float64) if state[parse.FLOATS] else weights, beyond)


class _Integers:
    """The ends of edges as small ids, until one does not fit."""

    def __init__(self, capacity: int) -> None:
        self.ends = [np.empty(capacity, SMALL_VERTEX) for _ in range(2)]
        self.widest = none_of(SMALL_VERTEX) - 1

    def grow(self, capacity: int) -> None:
        for ids in self.ends:
            ids.resize(capacity, refcheck=False)

    def widen(self, edges: int) -> bool:
        """Make room for ids of 64 signed bits, then of unsigned ones; return whether those before still fit."""
        is_first = self.widest < none_of(LARGE_VERTEX)
        self.ends = [ids.astype(LARGE_VERTEX, copy=False) for ids in self.ends]
        self.widest = none_of(LARGE_VERTEX) if is_first else parse.ANY_WORD
        return is_first or not any((ids[:edges] < 0).any() for ids in self.ends)

    def parse(self, lines: tuple, between: int, weights: tuple, state: np.ndarray) -> None:
        parse_lines(*lines, between, *self.ends, *weights, self.widest, state)

    def finish(self, edges: int) -> list[np.ndarray]:
        self.grow(edges)
        return [ids.view(np.uint64) for ids in self.ends] if self.widest == parse.ANY_WORD else self.ends


class _Strings:
    """The ends of edges as strings."""

    def __init__(self, capacity: int, size: int) -> None:
        self.offsets = [np.empty(capacity + 1, np.int64) for _ in range(2)]
        for offsets in self.offsets:
            offsets[0] = 0
        self.data = [np.empty(size, np.uint8) for _ in range(2)]

    def grow(self, capacity: int) -> None:
        for offsets in self.offsets:
            offsets.resize(capacity + 1, refcheck=False)

    def widen(self, edges: int) -> bool:
        raise AssertionError("strings fit")

    def parse(self, lines: tuple, between: int, weights: tuple, state: np.ndarray) -> None:
        ends = (array for end in zip(self.offsets, self.data, strict=True) for array in end)
        parse_strings(*lines, *ends, *weights, state)

    def finish(self, edges: int) -> list[Strings]:
        self.grow(edges)
        for offsets, data in zip(self.offsets, self.data, strict=True):
            data.resize(int(offsets[-1]), refcheck=False)
        return [Strings(offsets, data) for offsets, data in zip(self.offsets, self.data, strict=True)]


def _expected(text: np.ndarray, size: int) -> int:
    """Return the number of lines in the text, from those in its first bytes."""
    first = text[: min(size, COUNTED_BYTES)]
    ends = max(int(np.count_nonzero(first == ord("\n"))), int(np.count_nonzero(first == ord("\r"))))
    return int(1.02 * (ends + 1) * size / max(len(first), 1)) + 16


def _between(first: np.ndarray, syntax: LineSyntax) -> int:
    """Return the byte that separates fields: blanks are as in the first lines."""
    if syntax.separator:
        return ord(syntax.separator)
    return ord("\t") if np.count_nonzero(first == ord("\t")) > np.count_nonzero(first == ord(" ")) else ord(" ")


def slow_number(at: int, token: str) -> float:
    """Parse a number that the compiled parser leaves to Python's float(), or refuse it."""
    try:
        value = float(token) if token.isascii() and "_" not in token else None
    except ValueError:
        value = None
    if value is None:
        hint = ": write decimals with a point" if "," in token else ""
        raise BadLine(at, f"weight {token[:40]!r} is not a number{hint}")
    if not np.isfinite(value):
        raise BadLine(at, f"weight {token[:40]!r} is not a finite number")
    return value


def _wrong(syntax: LineSyntax, at: int, text: np.ndarray, state: list[int]) -> BadLine:
    """Return the error that a state describes."""
    problem, begin, end, field = state[parse.PROBLEM : parse.FIELD + 1]
    token = text[begin:end].tobytes()
    shown = token.decode(errors="replace")
    word = repr(shown[:40])
    messages = {
        parse.TOO_LONG: lines.TOO_LONG,
        parse.EMPTY: f"field {field + 1} is empty",
        parse.FIELDS: f"{counted(field, 'field')} where the first line has {syntax.num_fields}",
        parse.NOT_AN_ID: f"vertex {word} is not a whole number: if ids are text, say labels='string'",
        parse.TOO_LARGE: f"vertex {word} is beyond 64 bits: read ids as text, by labels='string'",
        parse.MIXED: f"vertex {word} is negative and another beyond 63 bits: no integer of 64 bits holds both",
        parse.UNTAGGED: f"a line begins with {syntax.tag!r}, and this one is {word}",
        parse.OPEN_QUOTE: f"field {field + 1} begins with a quote that does not end on the line",
        parse.AFTER_QUOTE: f"field {field + 1} goes on after its closing quote",
        parse.COMMENT: lines.hidden_edge(shown),
        parse.ZERO_BYTE: lines.NO_TEXT,
    }
    if b"\0" in token and problem != parse.TOO_LONG:
        problem = parse.ZERO_BYTE
    return BadLine(at + begin, messages[problem])
