r"""Lines of a text file: their beginnings, the first lines, and line numbers for errors.

A line ends at "\n", at "\r\n" or at "\r" alone. Lines longer than MAX_LINE_BYTES, comments and blanks included, are
refused: this bounds the memory for a line and the search for the beginning of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from mgraph.errors import InputError
from mgraph.formatting import readable_bytes
from mgraph.io.input_file import InputFile

# With the end of the line. An edge is shorter than 100 bytes, but comments may be long, and unread columns many.
MAX_LINE_BYTES = 1 << 20
# Bytes read at a time to find the end of a line.
SEEK_BYTES = 1 << 12
FIRST_BYTES = 1 << 16
_UTF16_MARKS = b"\xff\xfe", b"\xfe\xff"
# A run of whole lines that are blank or comments.
_BLANK_LINES = re.compile(rb"(?:[ \t]*+(?:[#%][^\r\n]*+)?[\r\n])+")
_UTF8_MARK = b"\xef\xbb\xbf"
# Errors of a line in any format.
TOO_LONG = f"the line is longer than {readable_bytes(MAX_LINE_BYTES)}: is it text, an edge a line?"
NO_TEXT = "there are zero bytes, which are no text: was the file written whole, and is it UTF-8?"


def hidden_edge(line: str) -> str:
    """Return what is wrong with a line among edges of strings that begins as a comment does."""
    return f"{line[:40]!r} may be a comment or an edge: put its first name in quotes, or leave the line out"


class BadLine(Exception):
    """The line that contains byte `at` is wrong; placing_errors() turns this into an InputError."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(at, problem)
        self.at = at
        self.problem = problem


@contextmanager
def placing_errors(path: object, file: InputFile) -> Iterator[None]:
    """Turn a BadLine into an InputError with file:line.

    Lines are counted only when an error is raised.
    """
    try:
        yield
    except BadLine as bad:
        raise placed(path, file, bad.at, bad.problem) from None


def placed(path: object, file: InputFile, at: int, problem: str) -> InputError:
    """Return the error for the line that contains byte `at`."""
    return InputError(f"{path}:{line_of(file, at)}: {problem}")


def line_of(file: InputFile, at: int) -> int:
    """Return the number of the line that contains byte `at`, from 1."""
    line = 1
    left = at
    last = b""
    with file.open("rb") as raw:
        while left > 0 and (piece := raw.read(min(left, 1 << 20))):
            line += piece.count(b"\n") + piece.count(b"\r") - (last + piece).count(b"\r\n")
            left -= len(piece)
            last = piece[-1:]
    return line


def text_begin(path: object, file: InputFile) -> int:
    """Return the offset of the text, after a UTF-8 byte order mark if any.

    UTF-16 is refused.
    """
    with file.open("rb") as raw:
        first = raw.read(len(_UTF8_MARK))
    if first[:2] in _UTF16_MARKS:
        raise InputError(f"{path} is UTF-16 text: convert it to UTF-8, as in iconv -f UTF-16 -t UTF-8")
    return len(_UTF8_MARK) if first == _UTF8_MARK else 0


def first_lines(path: object, file: InputFile, begin: int, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield (offset of the next line, the line without its end).

    CR LF yields an additional empty line. Without `comments` most blank lines and comments are skipped, as there may be
    millions of them.
    """
    at = begin
    rest = b""
    with placing_errors(path, file), file.open("rb") as raw:
        raw.seek(begin)
        while piece := raw.read(FIRST_BYTES):
            text = rest + piece
            if not comments and (blank := _BLANK_LINES.match(text)):
                if b"\0" in blank[0]:
                    raise BadLine(at + blank[0].index(b"\0"), NO_TEXT)
                at = at + blank.end()
                text = text[blank.end() :]
            *lines, rest = re.split(rb"[\r\n]", text)
            for line in lines:
                _check_line(at, line)
                at += len(line) + 1
                yield at, line
            _check_line(at, rest)
    if rest:
        yield at + len(rest), rest


def _check_line(at: int, line: bytes) -> None:
    """Refuse a line, beginning at byte `at`, that is too long or contains zero bytes."""
    if len(line) >= MAX_LINE_BYTES:
        raise BadLine(at, TOO_LONG)
    if b"\0" in line:
        raise BadLine(at, NO_TEXT)


def line_start(raw: IO[bytes], at: int, begin: int) -> int:
    """Return the offset of the first line that begins at byte `at` or later."""
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
    """Yield the pieces of a decompressed file.

    Refuse a line that is too long before the rest is decompressed.
    """
    at = 0
    begin = 0
    for piece in pieces:
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        begin = at + end + 1 if end >= 0 else begin
        at += len(piece)
        if at - begin >= MAX_LINE_BYTES:
            raise InputError(f"{path}, at byte {begin} of what it unpacks to: {TOO_LONG}")
        yield piece
