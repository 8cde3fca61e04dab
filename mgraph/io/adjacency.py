"""Parse lines of neighbors into edges, in compiled code: line v of a METIS file lists the neighbors of vertex v.

A line ends at LF. Blanks, tabs and CR separate numbers; a line that begins with % is a comment, and a blank one is a
vertex without neighbors.
"""

from __future__ import annotations

from mgraph.backends.kernel import inline

# Values of report[0]; report[1:3] are begin and end of the token at fault.
OK, NOT_A_NUMBER, NO_WEIGHT, TOO_FEW, TOO_MANY = range(5)

_SPACE = 32
_TAB = 9
_RETURN = 13
_NEWLINE = 10
_PERCENT = 37
_MINUS = 45
_ZERO = 48
_NINE = 57
_LARGEST = 9 * 10**17  # one more digit fits int64


@inline
def is_blank(byte):
    """Return whether the byte separates numbers."""
    return byte in (_SPACE, _TAB, _RETURN)


@inline
def after_line(text, i):
    """Return the beginning of the next line after i."""
    while i < len(text) and text[i] != _NEWLINE:
        i += 1
    return i + 1


@inline
def count_rows(text):
    """Return the number of lines that are no comments."""
    rows = 0
    i = 0
    while i < len(text):
        rows += text[i] != _PERCENT
        i = after_line(text, i)
    return rows


@inline
def row_begin(text, row):
    """Return where a row begins."""
    i = 0
    while i < len(text):
        if text[i] != _PERCENT:
            if row == 0:
                return i
            row -= 1
        i = after_line(text, i)
    return len(text)


@inline
def count_numbers(text):
    """Return the number of tokens, those in comments included."""
    count = 0
    blank = True
    for i in range(len(text)):
        is_space = is_blank(text[i]) or text[i] == _NEWLINE
        count += blank and not is_space
        blank = is_space
    return count


@inline
def next_number(text, i):
    """Return (the number of the token that begins at i, the end of the token, whether it is a number)."""
    begin = i
    negative = text[i] == _MINUS
    i += negative
    first = i
    value = 0
    while i < len(text) and _ZERO <= text[i] <= _NINE and value < _LARGEST:
        value = value * 10 + (text[i] - _ZERO)
        i += 1
    is_number = i > first and (i == len(text) or is_blank(text[i]) or text[i] == _NEWLINE)
    while i < len(text) and not is_blank(text[i]) and text[i] != _NEWLINE:
        i += 1
    return -value if negative else value, max(i, begin + 1), is_number


@inline
def parse_rows(text, layout, sources, targets, weights, report):
    """Parse whole lines.

    Return the number of edges, up to the first error, which is written to `report`. `layout` is (vertex of the first
    line, number of vertices, numbers of the vertex itself at the beginning of a line, whether each neighbor is followed
    by a weight). Weights are kept where there is an array for them.
    """
    vertex, num_vertices, own, weighted = layout
    edge = 0
    i = 0
    report[:] = 0
    while i < len(text):
        if text[i] == _PERCENT:
            i = after_line(text, i)
            continue
        line = i
        count = 0
        while True:
            while i < len(text) and is_blank(text[i]):
                i += 1
            if i >= len(text) or text[i] == _NEWLINE:
                break
            begin = i
            value, i, is_number = next_number(text, i)
            problem = OK if is_number else NOT_A_NUMBER
            if vertex >= num_vertices:
                problem = TOO_MANY
            if problem != OK:
                report[0] = problem
                report[1] = begin
                report[2] = i
                return edge
            at = count - own
            if at >= 0 and (not weighted or at % 2 == 0):
                sources[edge] = vertex + 1
                targets[edge] = value
                edge += not weighted
            elif at >= 0:
                if len(weights):
                    weights[edge] = value
                edge += 1
            count += 1
        # Some programs leave the line of a vertex without edges blank even if vertices have weights.
        if (0 < count < own) or (weighted and count > own and (count - own) % 2):
            report[0] = TOO_FEW if count < own else NO_WEIGHT
            report[1] = line
            report[2] = i
            return edge
        vertex += 1
        i += 1
    return edge
