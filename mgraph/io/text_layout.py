"""Find the layout of a text of edges from its first lines: names of columns, separator, ends and weight.

What the first lines leave open is asked, not guessed: whether a third column without a name is a weight, and whether
the first of two lines of words has the names of the columns.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.formatting import counted
from mgraph.io.columns import Columns, find_columns, listed, names_ends
from mgraph.io.input_file import InputFile
from mgraph.io.lines import first_lines, hidden_edge, placed, text_begin
from mgraph.io.parse import OK, PADDING, LineSyntax, after_blanks, next_field

INTEGER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
DIGITS = re.compile(r"[\"+-]?\d")
# What decoding puts in place of bytes that are not UTF-8.
REPLACED = "\N{REPLACEMENT CHARACTER}"
QUOTED = re.compile(r'"[^"]*"')
# Characters that often separate fields, and are no part of most names.
SEPARATORS = ";|:"
# Lines that say whether the first has names.
FIRST_LINES = 20


@dataclass(frozen=True)
class Layout:
    """Where the edges begin, and the syntax of their lines."""

    begin: int
    syntax: LineSyntax


@dataclass(frozen=True)
class _Line:
    """One of the first lines: its text, where it begins, and where the next line begins."""

    text: str
    begin: int
    end: int

    def fields(self, separator: str) -> list[str]:
        """Return the fields, without quotes around them."""
        data = np.frombuffer(self.text.encode() + bytes(PADDING), np.uint8)
        size = len(data) - PADDING
        byte = ord(separator) if separator else 0
        found = []
        i = after_blanks(data, 0, byte)
        while True:
            begin, end, i, problem = next_field(data, i, size, byte)
            token = data[begin:end].tobytes().decode(errors="replace")
            quoted = problem == OK and begin > 0 and data[begin - 1] == ord('"')
            found.append(token.replace('""', '"') if quoted else token)
            if i >= size:
                return found
            i = after_blanks(data, i + 1, byte) if separator else i


def find_layout(
    path: object,
    file: InputFile,
    name: str,
    wanted: Columns,
    directed: bool,
    *,
    as_text: bool,
    separator: str | None,
) -> Layout:
    """Return the layout of the lines of a file called `name`."""
    lines, empty = _first_rows(path, file)
    if not lines:
        return Layout(empty, LineSyntax(2, is_text=as_text))
    first = lines[0]
    if separator is None:
        separator = _separator(first.text, name)
        _refuse_other_separators(path, first, separator)
    separator = separator.strip(" ")
    fields = first.fields(separator)
    header = _header(path, lines, separator, wanted, as_text=as_text)
    edge = first
    if header:
        edge = lines[1] if len(lines) > 1 else dataclasses.replace(first, begin=first.end)
        if len(lines) > 1:
            fields = edge.fields(separator)
            if len(fields) != len(header):
                raise InputError(
                    f"{path}: {counted(len(header), 'column')} in the line of names ({listed(header)}), and "
                    f"{counted(len(fields), 'field')} in the next line: give every column a name"
                )
    if len(fields) < 2:
        if not fields[0].isprintable() or REPLACED in fields[0]:
            raise InputError(f"{path} does not begin with text: is it of another format (format=, --format)?")
        hint = next((f": {_choose(c)} if that separates fields" for c in SEPARATORS if c in fields[0]), "")
        raise InputError(f"{path}: a line needs two vertices, and the first one is {fields[0][:40]!r}{hint}")
    if wanted.weight is None and not header and len(fields) == 3 and name.endswith(".wel"):
        wanted = dataclasses.replace(wanted, weight=False if wanted.ends_only else 2)
    source, target, weight = find_columns(path, wanted, len(fields), header, directed)
    syntax = LineSyntax(len(fields), source, target, weight, separator)
    if as_text or (edge.begin < edge.end and not _are_integers(path, file, edge, fields, (source, target))):
        if not separator and "\t" in edge.text and edge.fields("\t") != fields:
            raise InputError(f"{placed(path, file, edge.begin, '')}fields have blanks in them: {_choose(chr(9))}")
        syntax = dataclasses.replace(syntax, is_text=True)
        # Behind a header a line that begins as a comment does may be an edge of strings: the parser refuses it.
        if header:
            return Layout(first.end, syntax)
        _refuse_hidden_edge(path, file, syntax, edge.begin)
    return Layout(edge.begin, syntax)


def _separator(line: str, name: str) -> str:
    """Return the character between the fields of a line, "" for blanks: a comma, or in files for tables a tab."""
    bare = QUOTED.sub("", line)
    if "\t" in bare and (name.endswith(".tsv") or ("," not in bare and name.endswith(".csv"))):
        return "\t"
    return "," if "," in bare else ""


def _refuse_other_separators(path: object, line: _Line, separator: str) -> None:
    """Refuse a line with other separators inside of what the guessed one makes the ends of an edge.

    In tables with commas in numbers, other characters separate: 1;2;2,5 would be an edge from "1;2;2" to 5.
    """
    unquoted = _Line(QUOTED.sub("", line.text), line.begin, line.end)
    ends = unquoted.fields(separator)[:2]
    found = [c for c in ";|\t" if len(ends) == 2 and any(c in field for field in ends)]
    if separator == "," and all(INTEGER.fullmatch(field) for field in [*unquoted.fields("")[:2], ends[-1]]):
        found.append(" ")
    if found:
        what = {";": "semicolons", "|": "bars", "\t": "tabs", " ": "blanks"}[found[0]]
        raise UsageError(
            f"{path}: its first line begins with {line.text[:40]!r}: {_choose(found[0])} if {what} separate fields, "
            f"or {_choose(separator or ' ')} if they do not"
        )


def _choose(separator: str) -> str:
    return f"give sep={separator!r} (--sep {separator!r})"


def _first_rows(path: object, file: InputFile) -> tuple[list[_Line], int]:
    """Return the first line of fields, perhaps with the next such lines, and where another would begin."""
    at = text_begin(path, file)
    found: list[_Line] = []
    size = file.stat().st_size
    for end, line in first_lines(path, file, at, comments=False):
        # Comments that first_lines skips may lie before the line. The last line may have no end.
        begin = end - len(line) - (end < size or _ends_with_line(file))
        text = line.decode(errors="replace").strip("\r\n ")
        if text.strip() and text[0] not in "#%":
            found.append(_Line(text, begin, end))
            # The next lines say whether the first, of words, has names.
            if len(found) == FIRST_LINES or DIGITS.match(found[0].text):
                break
        at = end
    return found, at


def _refuse_hidden_edge(path: object, file: InputFile, syntax: LineSyntax, before: int) -> None:
    """Refuse a line before byte `before` that begins as a comment does, and has the fields of an edge of strings."""
    begin = text_begin(path, file)
    for end, line in first_lines(path, file, begin):
        if begin >= before:
            return
        text = line.decode(errors="replace").strip()
        # Only quotes hide separators: without them most comments are told by the number of these.
        if text and ('"' in text or len(text.split(syntax.separator or None)) == syntax.num_fields):
            fields = _Line(text, begin, end).fields(syntax.separator)
            if _may_be_edge(fields, syntax) and not names_ends([fields[0].strip("#% "), *fields[1:]]):
                raise placed(path, file, begin, hidden_edge(text))
        begin = end


def _may_be_edge(fields: list[str], syntax: LineSyntax) -> bool:
    is_whole = len(fields) == syntax.num_fields and all(fields[end] for end in (syntax.source, syntax.target))
    return is_whole and (syntax.weight < 0 or _is_number(fields[syntax.weight]))


def _ends_with_line(file: InputFile) -> bool:
    with file.open("rb") as raw:
        raw.seek(-1, 2)
        return raw.read(1) in (b"\n", b"\r")


def _header(path: object, lines: list[_Line], separator: str, wanted: Columns, *, as_text: bool) -> list[str]:
    """Return the names of the columns if the first line has them, else []."""
    names = [field.strip().strip("\"'") for field in lines[0].fields(separator)]
    if all(INTEGER.fullmatch(name) for name in names[:2]):
        return []
    by_name = [column for column in wanted.given if isinstance(column, str) and not column.isdigit()]
    # Names of known columns, or one that the user gives, are a header.
    if names_ends(names) or any(column in names for column in by_name):
        return names
    numbers = [int(end) for end in (wanted.source, wanted.target) if end is not None and str(end).isdigit()]
    ends = numbers if len(numbers) == 2 and max(numbers) < len(names) else range(min(len(names), 2))
    if not any(_begins_name(names[end]) for end in ends):
        return []
    # Words over numbers are names; words over words may be an edge.
    edge = lines[1].fields(separator) if len(lines) > 1 else []
    if not as_text and edge and all(_is_number(field) for end in ends for field in edge[end : end + 1]):
        return names
    if _is_over_numbers(names, [line.fields(separator) for line in lines[1:]], ends):
        return names
    # Words between blanks are an edge; between commas the first line may be either.
    if not separator or wanted.source is not None:
        return []
    if len(names) > 2:
        return names
    raise UsageError(
        f"{path}: its first line ({listed(names)}) may have the names of the columns or be an edge: give source= and "
        "target= (--source-column, --target-column) as names if it has them, and as numbers, 0 and 1, if it is an edge"
    )


def _is_over_numbers(names: list[str], rows: list[list[str]], ends: Sequence[int]) -> bool:
    """Return whether the first line has no number, and in a column besides the ends a word above numbers alone."""
    if any(_is_number(name) for name in names):
        return False
    for k, name in enumerate(names):
        column = [row[k] for row in rows if k < len(row) and row[k].strip()]
        if k not in ends and _begins_name(name) and column and all(map(_is_number, column)):
            return True
    return False


def _begins_name(name: str) -> bool:
    return name[:1].isalpha() or name[:1] == "_"


def _is_number(field: str) -> bool:
    return NUMBER.fullmatch(field.strip()) is not None


def _are_integers(path: object, file: InputFile, edge: _Line, fields: list[str], ends: tuple[int, int]) -> bool:
    """Return whether the ends of the first edge are integers; refuse other numbers."""
    tokens = [fields[end].strip() for end in ends]
    if all(INTEGER.fullmatch(token) for token in tokens):
        return True
    for end, token in zip(ends, tokens, strict=True):
        if not token or (_is_number(token) and not INTEGER.fullmatch(token) and token[:1].isdigit()):
            problem = f"vertex {token[:40]!r} is not a whole number: if ids are text, say labels='string'"
            raise placed(path, file, edge.begin, problem if token else f"field {end + 1} is empty")
    return False
