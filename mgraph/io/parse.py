"""Parse lines of edges into arrays, in compiled code: files of 10^9 lines are common.

Lines end with LF, CR LF or CR. A line with only such bytes as expected is parsed in one pass over its words of eight
bytes; every other line, as one with quotes, signs or blanks, by `parse_line`. A parser stops when its arrays are full,
when an id does not fit them, and at a line that is wrong: the caller reads the state, and perhaps goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.io.lines import MAX_LINE_BYTES
from mgraph.io.numbers import (
    BEYOND,
    EXACT_INTEGER,
    FLOAT,
    INTEGER,
    NEITHER,
    SIGNED,
    UNSIGNED,
    WHOLE_POWERS,
    many_digits,
    parse_integer,
    parse_number,
    to_double,
)  # fmt: skip

# Zero bytes after the text, which parsers read: a word after its end.
PADDING = 32
# Why a parser stops, in state[STOP].
DONE, FULL, WIDE, WRONG = range(4)
# What is wrong: state[PROBLEM], about the bytes state[BEGIN] .. state[END], with a number in state[FIELD].
OK, NOT_AN_ID, TOO_LARGE, FIELDS, EMPTY, TOO_LONG, UNTAGGED, OPEN_QUOTE, AFTER_QUOTE, COMMENT, ZERO_BYTE, MIXED = range(
    12
)
# The words of a state. FLOATS: whether weights are floats; HAS_FLOATS: whether any is written so; BEYOND_BEGIN,
# BEYOND_END: the first integer beyond 64 signed bits, zeros if there is none; SLOW: tokens left to Python's float().
(
    AT, EDGE, STOP, FLOATS, HAS_FLOATS, BEYOND_BEGIN, BEYOND_END, SLOW, PROBLEM, BEGIN, END, FIELD, BYTES, NUM_WORDS,
) = range(14)  # fmt: skip

# The value of `widest` for ids of 64 unsigned bits, in arrays of int64.
ANY_WORD = -1
_LARGEST_SIGNED = (1 << 63) - 1

_SPACE = 32
_TAB = 9
_RETURN = 13
_NEWLINE = 10
_COMMA = 44
_QUOTE = 34
_DOT = 46
_ZERO = 48
_NINE = 57
_U0 = np.uint64(0)
_LOWER_E = 101
_UPPER_E = 69
_MANY_DIGITS = 16  # the most that many_digits() finds
_PLAIN_DIGITS = 15
_DECIMAL_DIGITS = 18  # before and after the point: fewer than 64 bits hold


@dataclass(frozen=True)
class LineSyntax:
    """How a line writes an edge: one compiled parser reads edge lists, CSV, SNAP, KONECT, DIMACS, PACE, GTgraph.

    Attributes
    ----------
    num_fields
        Fields of every line, without the tag.
    source, target, weight
        The fields of the ends and of the weight, from 0; -1 for no weight.
    separator
        A character between fields, which may then be empty, quoted, or have blanks around them and inside; "" for any
        blanks. DIMACS: "".
    comments
        Characters with which lines begin that are skipped: "#%" for SNAP and KONECT, "cpn" for DIMACS 9.
    tag
        The first field of every other line: "a" for DIMACS 9 and GTgraph, "e" for DIMACS colorings, "" for none.
    is_text
        Whether the ends are strings. A line that begins with a comment's character is then refused, as it may be an
        edge.
    floats
        Whether weights are floats even where all are written as integers.
    """

    num_fields: int
    source: int = 0
    target: int = 1
    weight: int = -1
    separator: str = ""
    comments: str = "#%"
    tag: str = ""
    is_text: bool = False
    floats: bool = False

    @property
    def words(self) -> tuple[int, ...]:
        """The syntax as the compiled parser takes it."""
        separator = ord(self.separator) if self.separator else 0
        tag = ord(self.tag) if self.tag else 0
        fields = self.num_fields, self.source, self.target, self.weight
        return *fields, separator, tag, int(self.is_text)

    @property
    def skipped(self) -> np.ndarray:
        """Whether a line that begins with a byte is skipped, for every byte."""
        found = np.zeros(256, np.uint8)
        found[list(self.comments.encode())] = 1
        return found


@inline
def ends_line(byte):
    """Return whether a line ends at the byte."""
    return byte in (_NEWLINE, _RETURN)


@inline
def after_blanks(text, i, separator):
    """Return the end of the blanks that begin at i and are no separator."""
    while (text[i] == _SPACE or text[i] == _TAB) and text[i] != separator:
        i += 1
    return i


@inline
def after_line(text, i, size):
    """Return the beginning of the next line after i."""
    while i < size and not ends_line(text[i]):
        i += 1
    return i + 1


@inline
def quoted_field(text, i, size, separator):
    """Return (begin, end, end with the quote and blanks, problem) of the quoted field that begins at i."""
    begin = i + 1
    i = begin
    while True:
        if i >= size or ends_line(text[i]):
            return begin, i, i, OPEN_QUOTE
        if text[i] == _QUOTE:
            if text[i + 1] != _QUOTE:
                break
            i += 1
        i += 1
    end = i
    i += 1
    after = after_blanks(text, i, separator)
    ends = after >= size or ends_line(text[after]) or (after > i if separator == 0 else text[after] == separator)
    return begin, end, after, OK if ends else AFTER_QUOTE


@inline
def next_field(text, i, size, separator):
    """Return (begin, end, where the next separator or end of line is, problem) of the field that begins at i."""
    if text[i] == _QUOTE:
        return quoted_field(text, i, size, separator)
    begin = i
    if separator == 0:
        while i < size and not ends_line(text[i]) and text[i] != _SPACE and text[i] != _TAB:
            i += 1
        return begin, i, after_blanks(text, i, 0), OK
    while i < size and not ends_line(text[i]) and text[i] != separator:
        i += 1
    end = i
    while end > begin and (text[end - 1] == _SPACE or text[end - 1] == _TAB):
        end -= 1
    return begin, end, i, OK


@inline
def note_problem(state, problem, begin, end, field):
    """Write what is wrong with a line."""
    state[STOP] = WRONG
    state[PROBLEM] = problem
    state[BEGIN] = begin
    state[END] = end
    state[FIELD] = field


@inline
def begin_floats(state, integers, floats):
    """Convert the integer weights so far: one weight is a float."""
    if state[FLOATS] == 0:
        for edge in range(state[EDGE]):
            floats[edge] = np.float64(integers[edge])
        state[FLOATS] = 1


@inline
def store_weight(text, begin, end, state, integers, floats, slow):
    """Parse a weight and store it; tokens that need Python's float() are noted in `slow`."""
    edge = state[EDGE]
    value, integer, kind, certain = parse_number(text, begin, end)
    if kind == INTEGER and certain:
        if state[FLOATS]:
            floats[edge] = value
        else:
            integers[edge] = integer
        return
    begin_floats(state, integers, floats)
    floats[edge] = value
    state[HAS_FLOATS] |= kind == FLOAT
    if kind == BEYOND and state[BEYOND_END] == 0:
        state[BEYOND_BEGIN] = begin
        state[BEYOND_END] = end
    if not certain:
        slow[0, state[SLOW]] = edge
        slow[1, state[SLOW]] = begin
        slow[2, state[SLOW]] = end
        state[SLOW] += 1


@inline
def store_end(text, begin, end, state, ids, widest):
    """Parse an id and store it; return the problem. state[STOP] is WIDE if it does not fit."""
    value, is_integer, held = parse_integer(text, begin, end)
    if not is_integer:
        return NOT_AN_ID
    if held == NEITHER:
        return TOO_LARGE
    if widest == ANY_WORD:
        if value < 0 and held == SIGNED:
            return MIXED
    elif held == UNSIGNED or value > widest or (value < 0 and widest < _LARGEST_SIGNED):
        state[STOP] = WIDE
        return OK
    ids[state[EDGE]] = value
    return OK


@inline
def line_head(text, size, syntax, skipped, state):
    """Return where the fields of the line at state[AT] begin, -1 if it has none and is skipped, or is wrong."""
    line = state[AT]
    separator = syntax[4]
    tag = syntax[5]
    i = after_blanks(text, line, separator)
    is_comment = i < size and skipped[text[i]] != 0
    if i >= size or ends_line(text[i]) or is_comment:
        end = after_line(text, i, size)
        if end - line > MAX_LINE_BYTES:
            note_problem(state, TOO_LONG, line, end, 0)
        elif is_comment and syntax[6] != 0:
            note_problem(state, COMMENT, line, end - 1, 0)
        state[AT] = end
        return -1
    if tag != 0:
        after = after_blanks(text, i + 1, separator)
        if text[i] != tag or after == i + 1:
            note_problem(state, UNTAGGED, line, min(after_line(text, i, size) - 1, line + 40), 0)
            return -1
        i = after
    return i


@inline
def end_line(text, size, line, i, state, field, num_fields, problem, begin, end):
    """Check the end of a line of edges at i, and go to the next; note what is wrong."""
    if problem == OK and field != num_fields:
        problem = FIELDS
        begin = line
        end = i
    if (problem != OK or i - line >= MAX_LINE_BYTES) and after_line(text, i, size) - line > MAX_LINE_BYTES:
        problem = TOO_LONG
        begin = line
        end = line
    if problem != OK:
        note_problem(state, problem, begin, end, field)
    elif state[STOP] == DONE:
        state[EDGE] += 1
        state[AT] = i + 1


@inline
def parse_line(text, size, syntax, skipped, sources, targets, integers, floats, slow, widest, state):
    """Parse the line at state[AT] of any syntax; state[STOP] says whether it was wrong, or is WIDE."""
    num_fields, source_field, target_field, weight_field, separator = syntax[:5]
    line = state[AT]
    i = line_head(text, size, syntax, skipped, state)
    if i < 0:
        return
    field = 0
    while True:
        begin, end, i, problem = next_field(text, i, size, separator)
        if problem == OK and (field in (source_field, target_field, weight_field)):
            if begin == end:
                problem = EMPTY
            elif field == weight_field:
                store_weight(text, begin, end, state, integers, floats, slow)
            else:
                problem = store_end(text, begin, end, state, sources if field == source_field else targets, widest)
        if problem != OK:
            break
        field += 1
        if i >= size or ends_line(text[i]):
            break
        if separator != 0:
            i = after_blanks(text, i + 1, separator)
    end_line(text, size, line, i, state, field, num_fields, problem, begin, end)


@inline
def decimal(text, whole, count, i):
    """Return (end, value) of the number of `count` digits `whole` before a point and those at i; end 0 if not plain."""
    rest, more = many_digits(text, i)
    stop = text[i + more]
    if more == 0 or count + more > _DECIMAL_DIGITS or stop in (_LOWER_E, _UPPER_E) or _ZERO <= stop <= _NINE:
        return 0, 0.0
    mantissa = whole * WHOLE_POWERS[more] + rest
    if mantissa <= EXACT_INTEGER:
        return i + more, np.float64(mantissa) / np.float64(WHOLE_POWERS[more])
    value, sure = to_double(mantissa, -more)
    return i + more if sure else 0, value


@inline
def unread_field(text, i, between):
    """Return the end of a plain field that is not read: blanks and quotes are not plain."""
    while text[i] > _COMMA or text[i] not in (between, _NEWLINE, _RETURN, _QUOTE, _SPACE, _TAB, 0):
        if text[i] == between:
            break
        i += 1
    return i


@inline
def plain_number(text, i):
    """Return (end, integer, float, whether it is a float) of the plain number at i; the end is i if it is not plain."""
    value, count = many_digits(text, i)
    end = i + count
    stop = text[end]
    if count == 0 or count > _PLAIN_DIGITS or stop in (_LOWER_E, _UPPER_E):
        return i, 0, 0.0, False
    if stop != _DOT:
        return end, np.int64(value), np.float64(value), False
    end, number = decimal(text, value, count, end + 1)
    return max(end, i), 0, number, True


@inline
def ends_plainly(text, i, size, line):
    """Return whether a line from `line` on ends at i, with LF, and is not too long."""
    return text[i] == _NEWLINE and i < size and i - line < MAX_LINE_BYTES


@inline
def parse_lines(text, size, syntax, skipped, between, sources, targets, integers, floats, slow, widest, state):
    """Parse whole lines from state[AT] to `size`, or until state[STOP] says why not.

    `between` is the byte that separates fields in most lines. `integers` and `floats` are the same memory, which holds
    floats if state[FLOATS]. Ids are 0..widest, any of 64 signed bits if that is the largest, or ANY_WORD of 64 bits.
    """
    num_fields, source_field, target_field, weight_field, _, tag, _ = syntax
    state[STOP] = DONE
    limit = np.uint64(widest)
    at = state[AT]
    edge = state[EDGE]
    are_floats = state[FLOATS] != 0
    while at < size and state[STOP] == DONE:
        if edge == len(sources) or state[SLOW] == slow.shape[1]:
            state[STOP] = FULL
            break
        i = at
        field = 0
        if tag != 0:
            i += 2
            field = 0 if text[i - 2] == tag and text[i - 1] == between else num_fields + 1
        while field < num_fields:
            begin = i
            if field in (source_field, target_field):
                value, count = many_digits(text, i)
                i += count
                if count == _MANY_DIGITS or value > limit:
                    break
                (sources if field == source_field else targets)[edge] = value
            elif field == weight_field:
                i, integer, number, is_float = plain_number(text, i)
                if is_float and not are_floats:
                    state[EDGE] = edge
                    begin_floats(state, integers, floats)
                    are_floats = True
                if are_floats:
                    floats[edge] = number
                    state[HAS_FLOATS] |= is_float
                else:
                    integers[edge] = integer
            else:
                i = unread_field(text, i, between)
            # An empty field, and above a line without the tag, is left to parse_line.
            field = field + 1 if i > begin else num_fields + 1
            if field >= num_fields or text[i] != between:
                break
            i += 1
        i += text[i] == _RETURN and text[i + 1] == _NEWLINE
        if field == num_fields and text[i - 1] != between and ends_plainly(text, i, size, at):
            edge += 1
            at = i + 1
        else:
            state[AT] = at
            state[EDGE] = edge
            parse_line(text, size, syntax, skipped, sources, targets, integers, floats, slow, widest, state)
            at = state[AT]
            edge = state[EDGE]
            are_floats = state[FLOATS] != 0
    state[AT] = at
    state[EDGE] = edge


@inline
def nth_edge(text, size, syntax, skipped, edge, state):
    """Set state[AT] to where the line of an edge begins."""
    while state[AT] < size:
        line = state[AT]
        if line_head(text, size, syntax, skipped, state) >= 0:
            if edge == 0:
                return
            edge -= 1
        # Of a line that is wrong, line_head stays at its beginning.
        state[AT] = after_line(text, line, size)
