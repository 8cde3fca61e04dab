r"""Lines of a text file: where they begin, the first ones, and the number of one.

A line ends at "\n", at "\r\n" or at "\r" alone. None is longer than MAX_LINE_BYTES, comments and blanks included, so
that neither the search for the beginning of a line nor what is held of one depends on the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from mgraph.errors import InputError
from mgraph.formatting import readable_bytes

if TYPE_CHECKING:
    from mgraph.io.ranges import InputFile

# With its end. An edge takes less than 100 bytes; comments may be long, and columns that are not read many.
MAX_LINE_BYTES = 1 << 20
# Where the end of a line is looked for, a piece at a time.
SEEK_BYTES = 1 << 12
FIRST_BYTES = 1 << 16
_UTF16_MARKS = b"\xff\xfe", b"\xfe\xff"
# Whole lines from the beginning on that are blank or comments.
_BLANK_LINES = re.compile(rb"(?:[ \t]*+(?:[#%][^\r\n]*+)?[\r\n])+")
_UTF8_MARK = b"\xef\xbb\xbf"
# What may be wrong with a line of any format.
TOO_LONG = f"the line is longer than {readable_bytes(MAX_LINE_BYTES)}: is it text, an edge a line?"
NO_TEXT = "there are zero bytes, which are no text: was the file written whole, and is it UTF-8?"


class BadLine(Exception):
    """A line with byte `at` in it is wrong; placing_errors() makes it an InputError."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(at, problem)
        self.at, self.problem = at, problem


@contextmanager
def placing_errors(path: object, file: InputFile) -> Iterator[None]:
    """Give a BadLine the number of its line, as file:line; only the error that is raised pays for the counting."""
    try:
        yield
    except BadLine as bad:
        line, left, last = 1, bad.at, b""
        with file.open("rb") as raw:
            while left > 0 and (piece := raw.read(min(left, 1 << 20))):
                line += piece.count(b"\n") + piece.count(b"\r") - (last + piece).count(b"\r\n")
                left, last = left - len(piece), piece[-1:]
        raise InputError(f"{path}:{line}: {bad.problem}") from None


def text_begin(path: object, file: InputFile) -> int:
    """Return where the text begins, after a mark of UTF-8; UTF-16 is refused."""
    with file.open("rb") as raw:
        first = raw.read(len(_UTF8_MARK))
    if first[:2] in _UTF16_MARKS:
        raise InputError(f"{path} is UTF-16 text: convert it to UTF-8, as in iconv -f UTF-16 -t UTF-8")
    return len(_UTF8_MARK) if first == _UTF8_MARK else 0


def first_lines(path: object, file: InputFile, begin: int, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield (where the next line begins, a line without its end); between CR and LF is an empty one.

    Without `comments` most lines that are blank or comments are passed over: there may be millions.
    """
    at, rest = begin, b""
    with placing_errors(path, file), file.open("rb") as raw:
        raw.seek(begin)
        while piece := raw.read(FIRST_BYTES):
            text = rest + piece
            if not comments and (blank := _BLANK_LINES.match(text)):
                if b"\0" in blank[0]:
                    raise BadLine(at + blank[0].index(b"\0"), NO_TEXT)
                at, text = at + blank.end(), text[blank.end() :]
            *lines, rest = re.split(rb"[\r\n]", text)
            for line in lines:
                _check_line(at, line)
                at += len(line) + 1
                yield at, line
            _check_line(at, rest)
    if rest:
        yield at + len(rest), rest


def _check_line(at: int, line: bytes) -> None:
    """Refuse a line that is too long or no text, which begins at byte `at`."""
    if len(line) >= MAX_LINE_BYTES:
        raise BadLine(at, TOO_LONG)
    if b"\0" in line:
        raise BadLine(at, NO_TEXT)


def line_start(raw: IO[bytes], at: int, begin: int) -> int:
    """Return where the first line that begins at `at` or later does."""
    if at <= begin:
        return begin
    first = at = at - 1
    raw.seek(at)
    while piece := raw.read(SEEK_BYTES):
        ends = [k for k in (piece.find(b"\n"), piece.find(b"\r")) if k >= 0]
        if ends:
            return at + min(ends) + 1
        at += len(piece)
        if at - first >= MAX_LINE_BYTES:
            raise BadLine(first, TOO_LONG)
    return at


def bounded_lines(path: object, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on the pieces of a packed file up to a line that is too long, before the rest of it is unpacked."""
    at, begin = 0, 0
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        begin = at + end + 1 if end >= 0 else begin
        at += len(piece)
        if at - begin >= MAX_LINE_BYTES:
            raise InputError(f"{path}, at byte {begin} of what it unpacks to: {TOO_LONG}")
        yield piece
