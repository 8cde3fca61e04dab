"""Parse lines of edges where the text is in device memory: find the lines, then parse each by one thread.

Lines that are not plain, such as those with quotes, with errors, or with a float of uncertain rounding, are left
to the parser on the host (mgraph/io/parse.py).
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.io.lines import MAX_LINE_BYTES
from mgraph.io.numbers import FLOAT, INTEGER, POWER_HIGH, POWER_LOW, parse_number

# Bytes in which one thread counts line feeds.
TILE_BYTES = 64
# Kinds of lines: without an edge, with one, or left to the host.
SKIPPED, EDGE, ODD = range(3)
# The powers of ten as sums of two doubles, for the CUDA twin: all high parts, then all low parts.
POWERS = np.concatenate([POWER_HIGH, POWER_LOW])

_SPACE = 32
_TAB = 9
_RETURN = 13
_NEWLINE = 10
_HASH = 35
_PERCENT = 37
_MINUS = 45
_QUOTE = 34
_ZERO = 48
_NINE = 57
_MAX_DIGITS = 18  # of an id: any more might not fit int64
_MAX_WHOLE = 2.0**53  # integers up to this are float64 exactly


@inline
def is_blank(byte, separator):
    """Return whether the byte may surround a field."""
    return byte in (_SPACE, _TAB) and byte != separator


@inline
def after_blanks(text, i, end, separator):
    """Return the end of the blanks that begin at i."""
    while i < end and is_blank(text[i], separator):
        i += 1
    return i


@inline
def field_end(text, i, end, separator):
    """Return where the separator or the blank after the field at i is, -1 if a byte is not plain."""
    while i < end and text[i] != separator and (separator != 0 or not is_blank(text[i], separator)):
        if (text[i] < _SPACE and text[i] != _TAB) or text[i] == _QUOTE:
            return -1
        i += 1
    return i


@inline
def parse_plain_id(text, i, end):
    """Return (the integer text[i:end], whether it is a plain one)."""
    negative = text[i] == _MINUS
    i += negative
    if not 0 < end - i <= _MAX_DIGITS:
        return 0, False
    value = 0
    while i < end:
        if not _ZERO <= text[i] <= _NINE:
            return 0, False
        value = value * 10 + (text[i] - _ZERO)
        i += 1
    return -value if negative else value, True


@inline
def parse_plain_line(text, begin, end, fields):
    """Return (kind, source, target, weight, whether it is written as a float) of the line text[begin:end]."""
    num_fields = fields & 255
    source_field = (fields >> 8) & 255
    target_field = (fields >> 16) & 255
    weight_field = (fields >> 24) & 255
    separator = (fields >> 32) & 255
    source = target = 0
    weight = 0.0
    is_float = False
    if end - begin > MAX_LINE_BYTES:
        return ODD, source, target, weight, is_float
    if begin < end and text[end - 1] == _NEWLINE:
        end -= 1
    if begin < end and text[end - 1] == _RETURN:
        end -= 1
    i = after_blanks(text, begin, end, separator)
    if i == end:
        return SKIPPED, source, target, weight, is_float
    if text[i] == _HASH or text[i] == _PERCENT:
        # The host refuses zero bytes and lone carriage returns in comments, which may hide lines.
        while i < end and text[i] != 0 and text[i] != _RETURN:
            i += 1
        return SKIPPED if i == end else ODD, source, target, weight, is_float
    for field in range(num_fields):
        after = field_end(text, i, end, separator)
        stop = after
        while stop > i and is_blank(text[stop - 1], separator):
            stop -= 1
        is_plain = stop > i
        if is_plain and field == source_field:
            source, is_plain = parse_plain_id(text, i, stop)
        elif is_plain and field == target_field:
            target, is_plain = parse_plain_id(text, i, stop)
        elif is_plain and field == weight_field:
            weight, _, number, is_plain = parse_number(text, i, stop)
            is_float = number == FLOAT
            is_plain = is_plain and (is_float or (number == INTEGER and abs(weight) <= _MAX_WHOLE))
        if not is_plain:
            return ODD, source, target, weight, is_float
        has_separator = separator != 0 and after < end and field + 1 < num_fields
        i = after_blanks(text, after + has_separator, end, separator)
    return EDGE if i == end else ODD, source, target, weight, is_float


@kernel()
def count_line_feeds(lo, hi, text, size, counts):
    """Count the line feeds of each tile of TILE_BYTES."""
    for tile in range(lo, hi):
        count = 0
        for i in range(tile * TILE_BYTES, min((tile + 1) * TILE_BYTES, size)):
            count += text[i] == _NEWLINE
        counts[tile] = count


@kernel()
def list_line_begins(lo, hi, text, size, before, begins):
    """Write the beginning of each line but the first; `before` is the number of line feeds in earlier tiles."""
    for tile in range(lo, hi):
        line = before[tile] + 1
        for i in range(tile * TILE_BYTES, min((tile + 1) * TILE_BYTES, size)):
            if text[i] == _NEWLINE:
                begins[line] = i + 1
                line += 1


@kernel()
def parse_plain_lines(lo, hi, text, begins, fields, powers, sources, targets, weights, kinds, num_floats):
    """Parse line i = text[begins[i] : begins[i + 1]], and write its kind.

    `fields` has five bytes: the number of fields; the fields of the source, of the target and of the weight (255:
    none); the character between fields (0: blanks). Weights are float64; num_floats[0] counts those that are not
    written as integers.
    """
    floats = 0
    for line in range(lo, hi):
        kind, source, target, weight, is_float = parse_plain_line(text, begins[line], begins[line + 1], fields)
        kinds[line] = kind
        if kind == EDGE:
            sources[line] = source
            targets[line] = target
            if weights is not None:
                weights[line] = weight
            floats += is_float
    atomic_add(num_floats, 0, floats)
