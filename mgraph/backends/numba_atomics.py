"""Atomics of the CPU twins: relaxed, but for what barriers are made of, returning the old value, as in CUDA.

Numba has none for the CPU; these are LLVM's `atomicrmw`. A float minimum is the integer minimum of the bits,
which have the same order because distances are never negative and -0.0 never occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic


def _rmw(name: str, operation: Callable[[types.Type], str], ordering: str = "monotonic") -> Callable:
    """Return an intrinsic f(array, index, value) -> old value."""

    def typer(_context, array, index, value):
        if not isinstance(array, types.Array) or array.ndim != 1 or not isinstance(index, types.Integer):
            return None
        dtype = array.dtype

        def codegen(context, builder, signature, args):
            array_type, index_type, value_type = signature.args
            struct = context.make_array(array_type)(context, builder, args[0])
            position = context.cast(builder, args[1], index_type, types.intp)
            pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [position])
            new = context.cast(builder, args[2], value_type, dtype)
            if not isinstance(dtype, types.Float):
                return builder.atomic_rmw(operation(dtype), pointer, new, ordering)
            bits = ir.IntType(dtype.bitwidth)
            pointer = builder.bitcast(pointer, bits.as_pointer())
            value = builder.bitcast(new, bits)
            old = builder.atomic_rmw(operation(types.int64), pointer, value, ordering)
            return builder.bitcast(old, new.type)

        return dtype(array, index, value), codegen

    typer.__name__ = name
    return intrinsic(typer)


atomic_min = _rmw("atomic_min", lambda dtype: "min" if dtype.signed else "umin")
atomic_add = _rmw("atomic_add", lambda dtype: "add")
atomic_or = _rmw("atomic_or", lambda dtype: "or")
# What a core has written before the addition is visible to a core that loads the sum by atomic_load.
atomic_add_ordered = _rmw("atomic_add_ordered", lambda dtype: "add", "acq_rel")
atomic_and = _rmw("atomic_and", lambda dtype: "and")


# Its type says nothing of the function that it makes, which loses its first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic


@_intrinsic
def atomic_compare_and_swap(_context, array, index, expected, value) -> Any:
    """Write array[index] = value if it is `expected`; return the old value."""
    if not isinstance(array, types.Array) or array.ndim != 1 or not isinstance(array.dtype, types.Integer):
        return None
    dtype = array.dtype

    def codegen(context, builder, signature, args) -> ir.Value:
        array_type, index_type, expected_type, value_type = signature.args
        struct = context.make_array(array_type)(context, builder, args[0])
        position = context.cast(builder, args[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [position])
        old = context.cast(builder, args[2], expected_type, dtype)
        new = context.cast(builder, args[3], value_type, dtype)
        swapped = builder.cmpxchg(pointer, old, new, "monotonic", "monotonic")
        return builder.extract_value(swapped, 0)

    return dtype(array, index, expected, value), codegen


@_intrinsic
def atomic_load(_context, array, index) -> Any:
    """Return array[index], of 64-bit words, and see what was written before it was (atomic_add_ordered)."""

    def codegen(context, builder, signature, args) -> ir.Value:
        array_type, index_type = signature.args
        struct = context.make_array(array_type)(context, builder, args[0])
        position = context.cast(builder, args[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [position])
        return builder.load_atomic(pointer, "acquire", array_type.dtype.bitwidth // 8)

    return array.dtype(array, index), codegen
