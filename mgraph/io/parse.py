"""Lines of edges as text -> arrays, compiled: files of 10^8 lines are common.

Fields are separated by spaces, tabs or a comma, lines by LF, CR LF or CR; empty lines and lines that begin with # or %
are passed over. Weights become the nearest float64, as Python's float() makes them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.io.lines import MAX_LINE_BYTES

# What `report[0]` says; report[1:4] are the token's begin and end and the fields found.
OK, NOT_AN_ID, NEGATIVE, OUT_OF_RANGE, FIELDS, EMPTY, TOO_LONG = range(7)

# What a number is: an integer of 64 signed bits, one beyond them, or written as a float.
INTEGER, BEYOND, FLOAT = range(3)

# Powers of ten as sums of two doubles, for exponents -60 .. 60; other numbers go the slow way.
_MOST_POWER = 60
_powers = [Fraction(10) ** q for q in range(-_MOST_POWER, _MOST_POWER + 1)]
POWER_HIGH = np.array([float(power) for power in _powers])
POWER_LOW = np.array([float(power - Fraction(float(power))) for power in _powers])
_SPLITTER = 134217729.0  # 2^27 + 1 halves a double's digits
_DOUBT = 2.0**-95  # of the value; the arithmetic below errs by less

_TEN, _U0, _SIGN = np.uint64(10), np.uint64(0), np.uint64(1 << 63)
_SPACE, _TAB, _RETURN, _NEWLINE, _COMMA = 32, 9, 13, 10, 44
_HASH, _PERCENT, _MINUS, _PLUS, _DOT, _ZERO, _NINE = 35, 37, 45, 43, 46, 48, 57
_LARGEST_ID = 4 * 10**17  # one more digit fits int64


@inline
def to_double(mantissa, power):
    """Return (mantissa * 10^power as the nearest double, whether that is certain)."""
    if mantissa == _U0:
        return 0.0, True
    if abs(power) > _MOST_POWER:
        return 0.0, False
    high = np.float64(mantissa)
    rest = np.float64(np.int64(mantissa - np.uint64(high)))
    ten, ten_rest = POWER_HIGH[power + _MOST_POWER], POWER_LOW[power + _MOST_POWER]
    # The product and its rounding error (Dekker): no fused multiply-add is needed.
    product = high * ten
    t = _SPLITTER * high
    high_1 = t - (t - high)
    high_2 = high - high_1
    t = _SPLITTER * ten
    ten_1 = t - (t - ten)
    ten_2 = ten - ten_1
    error = ((high_1 * ten_1 - product) + high_1 * ten_2 + high_2 * ten_1) + high_2 * ten_2
    error += high * ten_rest + rest * ten
    doubt = product * _DOUBT
    low, top = product + (error - doubt), product + (error + doubt)
    return top, low == top


@inline
def parse_number(text, i, end):
    """Return (value, value as an integer, its kind, whether it was read with certainty) of text[i:end]."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    mantissa, digits, seen, power, kind = _U0, 0, 0, 0, INTEGER
    fraction = False
    while i < end and (_ZERO <= text[i] <= _NINE or (text[i] == _DOT and not fraction)):
        if text[i] == _DOT:
            fraction, kind = True, FLOAT
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
        kind, i = FLOAT, i + 1
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
    """Return (the id in text[begin:end] less `base`, what is wrong with it)."""
    value, i = 0, begin
    while i < end and _ZERO <= text[i] <= _NINE and value < _LARGEST_ID:
        value = value * 10 + (text[i] - _ZERO)
        i += 1
    if i < end and value < _LARGEST_ID:
        return value, NEGATIVE if text[begin] == _MINUS and end > begin + 1 else NOT_AN_ID
    value -= base
    return value, OUT_OF_RANGE if i < end or value < 0 or value > limit else OK


@inline
def ends_field(byte):
    """Return whether a field ends before this byte."""
    return byte in (_SPACE, _COMMA, _TAB, _NEWLINE, _RETURN)


@inline
def after_blanks(text, i):
    """Return where the blanks that begin at i end."""
    while i < len(text) and (text[i] == _SPACE or text[i] == _TAB):
        i += 1
    return i


@inline
def after_line(text, i):
    """Return where the line after i begins."""
    while i < len(text) and text[i] != _NEWLINE and text[i] != _RETURN:
        i += 1
    return i + 1


@inline
def count_lines(text):
    """Return how many lines there may be that hold an edge."""
    ends = 0
    for i in range(len(text) - 1):
        ends += (text[i] == _NEWLINE) | ((text[i] == _RETURN) & (text[i + 1] != _NEWLINE))
    # An edge takes four bytes with its line's end, which the last may lack; and what the last byte ends was counted.
    return min(ends + 1, len(text) // 4 + 1)


@inline
def parse_lines(text, fields, base, limit, sources, targets, weights, integers, slow, report):
    """Parse whole lines; return how many edges there are, up to an error, which `report` tells.

    `fields` is (how many there are, the source's, the target's, the weight's or -1). The ends are read less
    `base` and are in 0..limit. Where a weight is whole, integers[i] is exact. slow[:, j] = (edge, begin, end)
    of the report[4] tokens that only Python's float() can read. report[5] counts weights written
    as floats; report[6:8] are begin and end of the first integer beyond 64 signed bits, zeros if there is none.
    """
    num_fields, source_field, target_field, weight_field = fields
    i, size, edge = 0, len(text), 0
    report[:] = 0
    while i < size:
        line = i
        i = after_blanks(text, i)
        field, comma, problem = 0, False, OK
        if i == size or text[i] == _NEWLINE or text[i] == _RETURN or text[i] == _HASH or text[i] == _PERCENT:
            i = after_line(text, i)
            if i - line <= MAX_LINE_BYTES:
                continue
            problem, begin = TOO_LONG, line
        while problem == OK:
            begin = i
            while i < size and (text[i] > _COMMA or not ends_field(text[i])):
                i += 1
            if i == begin:
                # The line's end, unless a comma stands on one side of nothing.
                problem = EMPTY if comma or (i < size and text[i] == _COMMA) else OK
                break
            if field == source_field:
                sources[edge], problem = parse_id(text, begin, i, base, limit)
            elif field == target_field:
                targets[edge], problem = parse_id(text, begin, i, base, limit)
            elif field == weight_field:
                weights[edge], integers[edge], kind, sure = parse_number(text, begin, i)
                report[5] += kind == FLOAT
                if kind == BEYOND and report[7] == 0:
                    report[6], report[7] = begin, i
                if not sure:
                    slow[0, report[4]], slow[1, report[4]], slow[2, report[4]] = edge, begin, i
                    report[4] += 1
            if problem == OK:
                field += 1
                i = after_blanks(text, i)
                comma = i < size and text[i] == _COMMA
                i = after_blanks(text, i + comma)
        if problem == OK and field != num_fields:
            problem, begin = FIELDS, line
        if (problem != OK or i - line >= MAX_LINE_BYTES) and after_line(text, i) - line > MAX_LINE_BYTES:
            problem, begin = TOO_LONG, line
        if problem != OK:
            report[0], report[1], report[2], report[3] = problem, begin, i, field
            return edge
        edge += 1
        i += 1
    return edge
