"""Labels as records of 64-bit words, and loads and stores by address.

A record is a header, length << 32 | code, and the label's bytes as words in big-endian order, the last padded with
zeros: labels compare by their words as numbers, then by length. Integers are labels of one word. Records of several
arrays are named by their addresses, so that kernels need not know which array has them; the caller keeps those alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic

from mgraph.backends.kernel import inline

# Its type says nothing of the functions that it makes, which lose their first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic

_BYTE = np.uint64(8)
_SHIFT = np.uint64(32)
_WORD_BITS = np.uint64(64)
_LOW = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.uint64(0)


@_intrinsic
def load_word(_context, address) -> Any:
    """Return the 8 bytes at any address as a word."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.uint64), codegen


@_intrinsic
def load_byte(_context, address) -> Any:
    """Return the byte at an address."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        byte = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return builder.zext(byte, ir.IntType(64))

    return types.uint64(types.uint64), codegen


@_intrinsic
def store_word(_context, address, word) -> Any:
    """Write a word to any address."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)
        return args[1]

    return types.uint64(types.uint64, types.uint64), codegen


@_intrinsic
def store_byte(_context, address, byte) -> Any:
    """Write the low byte of a word to an address."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        low = builder.trunc(args[1], ir.IntType(8))
        builder.store(low, builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return args[1]

    return types.uint64(types.uint64, types.uint64), codegen


@_intrinsic
def swap_bytes(_context, word) -> Any:
    """Reverse the bytes of a word."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@_intrinsic
def fold_product(_context, a, b) -> Any:
    """Return the upper half of a 128-bit product, xor the lower one."""

    def codegen(_context, builder, _signature, args) -> ir.Value:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        return builder.xor(upper, builder.trunc(product, ir.IntType(64)))

    return types.uint64(types.uint64, types.uint64), codegen


@inline
def bytes_as_word(address, length, limit):
    """Return up to 8 bytes as a big-endian word padded with zeros; nothing is read from `limit` on."""
    if address + _BYTE <= limit:
        word = swap_bytes(load_word(address))
    else:
        word = _ZERO
        for i in range(min(length, 8)):
            word |= load_byte(address + np.uint64(i)) << np.uint64(56 - 8 * i)
    return word if length >= 8 else word & (_ONES << (_WORD_BITS - _BYTE * np.uint64(length)))


@inline
def write_big_endian(address, word, length):
    """Write the first 8 bytes of a big-endian word, or fewer if the label ends."""
    if length >= 8:
        store_word(address, swap_bytes(word))
    else:
        for i in range(length):
            store_byte(address + np.uint64(i), word >> np.uint64(56 - 8 * i))


@inline
def copy_bytes(source, target, length):
    """Copy bytes between addresses that do not overlap."""
    whole = length & ~7
    for i in range(0, whole, 8):
        store_word(target + np.uint64(i), load_word(source + np.uint64(i)))
    for i in range(whole, length):
        store_byte(target + np.uint64(i), load_byte(source + np.uint64(i)))


@inline
def header_of(length, code):
    """Return a record's header."""
    return np.uint64(length) << _SHIFT | np.uint64(code)


@inline
def length_of(header):
    """Return the length of a label in bytes."""
    return np.int64(header >> _SHIFT)


@inline
def code_of(header):
    """Return the code of a label."""
    return np.int64(header & _LOW)


@inline
def words_of(length):
    """Return how many words a label has."""
    return (length + 7) >> 3


@inline
def word_of_record(address, depth):
    """Return word `depth` of the record at an address."""
    return load_word(address + _BYTE * np.uint64(depth + 1))


@inline
def compare_records(a, b, depth):
    """Return -1, 0 or 1 as the label at address a is below, equal to or above that at b; words before `depth` agree."""
    length_a = length_of(load_word(a))
    length_b = length_of(load_word(b))
    for d in range(depth, words_of(min(length_a, length_b))):
        word_a = word_of_record(a, d)
        word_b = word_of_record(b, d)
        if word_a != word_b:
            return -1 if word_a < word_b else 1
    if length_a == length_b:
        return 0
    return -1 if length_a < length_b else 1


def address_of(array: np.ndarray) -> np.uint64:
    """Return the address of an array's first element."""
    return np.uint64(array.ctypes.data)
