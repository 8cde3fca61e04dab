"""Parse lines of edges into arrays, in compiled code: files of 10^8 lines are common.

Fields are separated by spaces, tabs or a comma, lines by LF, CR LF or CR; empty lines and lines that begin with # or %
are skipped. A weight becomes the nearest float64, exactly as by Python's float().
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.io.lines import MAX_LINE_BYTES

# Values of report[0]; report[1:4] are begin and end of the token at fault, and the number of fields found.
OK, NOT_AN_ID, NEGATIVE, OUT_OF_RANGE, FIELDS, EMPTY, TOO_LONG = range(7)

# Kinds of numbers: an integer of 64 signed bits, an integer beyond them, or one written as a float.
INTEGER, BEYOND, FLOAT = range(3)

# Powers of ten as sums of two doubles, for exponents -60 .. 60; numbers beyond are left to Python's float().
_MAX_POWER = 60
_powers = [Fraction(10) ** q for q in range(-_MAX_POWER, _MAX_POWER + 1)]
POWER_HIGH = np.array([float(power) for power in _powers])
POWER_LOW = np.array([float(power - Fraction(float(power))) for power in _powers])
_SPLITTER = 134217729.0  # 2^27 + 1 splits a double into two halves (Dekker, Veltkamp)
_ERROR_BOUND = 2.0**-95  # relative; the arithmetic below has a smaller error

_TEN = np.uint64(10)
_U0 = np.uint64(0)
_SIGN = np.uint64(1 << 63)
_SPACE = 32
_TAB = 9
_RETURN = 13
_NEWLINE = 10
_COMMA = 44
_HASH = 35
_PERCENT = 37
_MINUS = 45
_PLUS = 43
_DOT = 46
_ZERO = 48
_NINE = 57
_LARGEST_ID = 4 * 10**17  # one more digit fits int64


@inline
def to_double(mantissa, power):
    """Return (mantissa * 10^power as the nearest double, whether the rounding is certain)."""
    if mantissa == _U0:
        return 0.0, True
    if abs(power) > _MAX_POWER:
        return 0.0, False
    high = np.float64(mantissa)
    rest = np.float64(np.int64(mantissa - np.uint64(high)))
    ten = POWER_HIGH[power + _MAX_POWER]
    ten_rest = POWER_LOW[power + _MAX_POWER]
    # The product and its rounding error by Dekker's algorithm, without fused multiply-add.
    product = high * ten
    t = _SPLITTER * high
    high_1 = t - (t - high)
    high_2 = high - high_1
    t = _SPLITTER * ten
    ten_1 = t - (t - ten)
    ten_2 = ten - ten_1
    error = ((high_1 * ten_1 - product) + high_1 * ten_2 + high_2 * ten_1) + high_2 * ten_2
    error += high * ten_rest + rest * ten
    bound = product * _ERROR_BOUND
    low = product + (error - bound)
    top = product + (error + bound)
    return top, low == top


@inline
def parse_number(text, i, end):
    """Return (value, value as an integer, its kind, whether the value is certain) of text[i:end]."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    mantissa = _U0
    digits = 0
    seen = 0
    power = 0
    kind = INTEGER
    fraction = False
    while i < end and (_ZERO <= text[i] <= _NINE or (text[i] == _DOT and not fraction)):
        if text[i] == _DOT:
            fraction = True
            kind = FLOAT
        else:
            seen += 1
            if digits > 0 or text[i] != _ZERO:
                digits += 1
            if digits <= 19:
                mantissa = mantissa * _TEN + np.uint64(text[i] - _ZERO)
                power -= fraction
        i += 1
    certain = seen > 0 and digits <= 19
    if i < end and (text[i] == 69 or text[i] == 101):  # E, e
        kind = FLOAT
        i = i + 1
        sign = -1 if i < end and text[i] == _MINUS else 1
        if i < end and (text[i] == _MINUS or text[i] == _PLUS):
            i += 1
        certain = certain and i < end
        exponent = 0
        while i < end and _ZERO <= text[i] <= _NINE:
            exponent = min(exponent * 10 + (text[i] - _ZERO), 9999)
            i += 1
        power += sign * exponent
    value, sure = to_double(mantissa, power)
    integer = np.int64(mantissa)
    if kind == INTEGER and (digits > 19 or mantissa > _SIGN or (mantissa == _SIGN and not negative)):
        kind = BEYOND
    return -value if negative else value, -integer if negative else integer, kind, certain and sure and i == end


@inline
def parse_id(text, begin, end, base, limit):
    """Return (the id in text[begin:end] less `base`, OK or the problem)."""
    value = 0
    i = begin
    while i < end and _ZERO <= text[i] <= _NINE and value < _LARGEST_ID:
        value = value * 10 + (text[i] - _ZERO)
        i += 1
    if i < end and value < _LARGEST_ID:
        return value, NEGATIVE if text[begin] == _MINUS and end > begin + 1 else NOT_AN_ID
    value -= base
    return value, OUT_OF_RANGE if i < end or value < 0 or value > limit else OK


@inline
def ends_field(byte):
    """Return whether the byte separates fields or lines."""
    return byte in (_SPACE, _COMMA, _TAB, _NEWLINE, _RETURN)


@inline
def after_blanks(text, i):
    """Return the end of the blanks that begin at i."""
    while i < len(text) and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@inline
def after_line(text, i):
    """Return the beginning of the next line after i."""
    while i < len(text) and text[i] != _NEWLINE and text[i] != _RETURN:
        i += 1
    return i + 1


@inline
def count_lines(text):
    """Return an upper bound of the number of edges."""
    ends = 0
    for i in range(len(text) - 1):
        ends += (text[i] == _NEWLINE) | ((text[i] == _RETURN) & (text[i + 1] != _NEWLINE))
    # An edge takes at least four bytes with the end of its line, which the last line may lack.
    return min(ends + 1, len(text) // 4 + 1)


@inline
def edge_begin(text, edge):
    """Return where the line of an edge begins."""
    i = 0
    while i < len(text):
        line = i
        i = after_blanks(text, i)
        is_edge = i < len(text) and text[i] not in (_NEWLINE, _RETURN, _HASH, _PERCENT)
        if is_edge and edge == 0:
            return line
        edge -= is_edge
        i = after_line(text, i)
    return len(text)


@inline
def note_weight(report, slow, edge, begin, end, kind, is_sure):
    """Count a float; note a token beyond 64 bits, or one that needs Python's float(), as in parse_lines."""
    report[5] += kind == FLOAT
    if kind == BEYOND and report[7] == 0:
        report[6] = begin
        report[7] = end
    if not is_sure:
        slow[0, report[4]] = edge
        slow[1, report[4]] = begin
        slow[2, report[4]] = end
        report[4] += 1


@inline
def note_problem(report, problem, begin, end, field):
    """Write the first error, as parse_lines reports it."""
    report[0] = problem
    report[1] = begin
    report[2] = end
    report[3] = field


@inline
def parse_lines(text, fields, base, limit, sources, targets, weights, integers, slow, report):
    """Parse whole lines.

    Return the number of edges, up to the first error, which is written to `report`. `fields` is (number of fields,
    field of the source, of the target, of the weight or -1). `base` is subtracted from both ends, which must then be in
    0..limit. If a weight is an integer, integers[i] is exact. slow[:, j] = (edge, begin, end) of the report[4] tokens
    that need Python's float(). report[5] counts weights written as floats; report[6:8] are begin and end of the first
    integer beyond 64 signed bits, zeros if there is none.
    """
    num_fields, source_field, target_field, weight_field = fields
    i = 0
    size = len(text)
    edge = 0
    report[:] = 0
    while i < size:
        line = i
        i = after_blanks(text, i)
        field = 0
        comma = False
        problem = OK
        if i == size or text[i] == _NEWLINE or text[i] == _RETURN or text[i] == _HASH or text[i] == _PERCENT:
            i = after_line(text, i)
            if i - line <= MAX_LINE_BYTES:
                continue
            problem = TOO_LONG
            begin = line
        while problem == OK:
            begin = i
            while i < size and (text[i] > _COMMA or not ends_field(text[i])):
                i += 1
            if i == begin:
                # The end of the line; or, before or after a comma, an empty field.
                problem = EMPTY if comma or (i < size and text[i] == _COMMA) else OK
                break
            if field == source_field:
                sources[edge], problem = parse_id(text, begin, i, base, limit)
            elif field == target_field:
                targets[edge], problem = parse_id(text, begin, i, base, limit)
            elif field == weight_field:
                weights[edge], integers[edge], kind, sure = parse_number(text, begin, i)
                note_weight(report, slow, edge, begin, i, kind, sure)
            if problem == OK:
                field += 1
                i = after_blanks(text, i)
                comma = i < size and text[i] == _COMMA
                i = after_blanks(text, i + comma)
        if problem == OK and field != num_fields:
            problem = FIELDS
            begin = line
        if (problem != OK or i - line >= MAX_LINE_BYTES) and after_line(text, i) - line > MAX_LINE_BYTES:
            problem = TOO_LONG
            begin = line
        if problem != OK:
            note_problem(report, problem, begin, i, field)
            return edge
        edge += 1
        i += 1
    return edge
