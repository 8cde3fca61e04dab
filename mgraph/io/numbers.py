"""Read numbers in text, in compiled code: eight digits at a time, and floats that are exact to the bit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mgraph.backends.kernel import inline

# Kinds of numbers: an integer of 64 signed bits, an integer beyond them, or one written as a float.
INTEGER, BEYOND, FLOAT = range(3)

# What holds an integer: 64 signed bits, or only 64 unsigned ones.
SIGNED, UNSIGNED, NEITHER = range(3)

# Powers of ten as sums of two doubles, for exponents -60 .. 60; numbers beyond are left to Python's float().
_MAX_POWER = 60
_powers = [Fraction(10) ** q for q in range(-_MAX_POWER, _MAX_POWER + 1)]
POWER_HIGH = np.array([float(power) for power in _powers])
POWER_LOW = np.array([float(power - Fraction(float(power))) for power in _powers])
_SPLITTER = 134217729.0  # 2^27 + 1 splits a double into two halves (Dekker, Veltkamp)
_ERROR_BOUND = 2.0**-95  # relative; the arithmetic below has a smaller error
# Integers and powers of ten up to these are doubles, and one operation on two doubles is rounded correctly.
EXACT_INTEGER = np.uint64(1 << 53)
_EXACT_POWER = 22
WHOLE_POWERS = 10 ** np.arange(20, dtype=np.uint64)

_TEN = np.uint64(10)
_U0 = np.uint64(0)
_SIGN = np.uint64(1 << 63)
_LARGEST = np.uint64((1 << 64) - 1)
_MINUS = 45
_PLUS = 43
_DOT = 46
_ZERO = 48
_NINE = 57
# Words of eight equal bytes or halves, to read eight digits at once.
_ZEROS = np.uint64(0x3030303030303030)
_BEYOND_NINE = np.uint64(0x7676767676767676)
_TOP_BITS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_FOURS = np.uint64(0x0000FFFF0000FFFF)
_EIGHTS = np.uint64(0x00000000FFFFFFFF)
_U3 = np.uint64(3)
_U8 = np.uint64(8)
_U16 = np.uint64(16)
_U32 = np.uint64(32)
_HUNDRED = np.uint64(100)
_MYRIAD = np.uint64(10000)


@intrinsic
def load_word(typing: Any, text: Any, at: Any) -> tuple[Any, Any]:
    """Return the eight bytes of `text` at an offset as a word, the first in the lowest bits."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.bitcast(builder.gep(array.data, [args[1]]), cgutils.intp_t.as_pointer())
        address = builder.bitcast(address, ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(text, types.intp), build


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> tuple[Any, Any]:
    """Return the number of zero bits below the lowest bit that is set, 64 for zero."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), build


@inline
def eight_digits(text, i):
    """Return (value, number) of the digits that begin at i, of the first eight bytes; text is longer by eight bytes."""
    word = load_word(text, i) ^ _ZEROS
    count = trailing_zeros(((word + _BEYOND_NINE) | word) & _TOP_BITS) >> _U3
    if count == _U0:
        return _U0, 0
    word <<= (_U8 - count) << _U3
    word = (word * _TEN + (word >> _U8)) & _PAIRS
    word = (word * _HUNDRED + (word >> _U16)) & _FOURS
    word = (word * _MYRIAD + (word >> _U32)) & _EIGHTS
    return word, np.int64(count)


@inline
def many_digits(text, i):
    """Return (value, number) of up to sixteen digits at i; 16 if there may be more."""
    value, count = eight_digits(text, i)
    if count == 8:
        low, more = eight_digits(text, i + 8)
        value = value * WHOLE_POWERS[more] + low
        count += more
    return value, count


@inline
def to_double(mantissa, power):
    """Return (mantissa * 10^power as the nearest double, whether the rounding is certain)."""
    if mantissa == _U0:
        return 0.0, True
    if mantissa <= EXACT_INTEGER and abs(power) <= _EXACT_POWER:
        exact = np.float64(mantissa)
        return exact * POWER_HIGH[power + _MAX_POWER] if power >= 0 else exact / POWER_HIGH[_MAX_POWER - power], True
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
    """Return (value, value as an integer, its kind, whether it is certain) of text[i:end].

    The value of an integer is its nearest double. Numbers that are not certain are left to Python's float().
    """
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
    certain = certain and i == end
    integer = np.int64(mantissa)
    if kind == INTEGER and (digits > 19 or mantissa > _SIGN or (mantissa == _SIGN and not negative)):
        kind = BEYOND
    if kind == INTEGER:
        integer = -integer if negative else integer
        return np.float64(integer), integer, kind, certain
    value, sure = to_double(mantissa, power)
    return -value if negative else value, integer, kind, certain and sure


@inline
def parse_integer(text, i, end):
    """Return (the integer text[i:end] in 64 bits, whether it is one, which of SIGNED, UNSIGNED, NEITHER holds it)."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    is_integer = i < end
    value = _U0
    digits = 0
    overflows = False
    while i < end and _ZERO <= text[i] <= _NINE:
        digit = np.uint64(text[i] - _ZERO)
        if digits > 0 or digit > _U0:
            digits += 1
        # Nineteen digits fit, and twenty up to the largest word.
        if digits > 20 or (digits == 20 and value > (_LARGEST - digit) // _TEN):
            overflows = True
        value = value * _TEN + digit
        i += 1
    integer = np.int64(value)
    held = UNSIGNED
    if overflows or (negative and value > _SIGN):
        held = NEITHER
    elif negative or value < _SIGN:
        held = SIGNED
    return -integer if negative else integer, is_integer and i == end, held
