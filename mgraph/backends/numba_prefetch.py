"""Prefetch of array entries into the caches of a CPU core, for loops that know early which entries they will read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from mgraph.backends.kernel import inline

# Its type says nothing of the function that it makes, which loses its first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic
# LLVM's arguments: a read, of entries that are read again soon, in the cache of data.
READ = 0
KEPT = 3
DATA = 1


@_intrinsic
def prefetch(_context, array, index) -> Any:
    """Begin to load array[index]; an index beyond the array does no harm."""

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        struct = context.make_array(array_type)(context, builder, args[0])
        position = context.cast(builder, args[1], index_type, types.intp)
        byte = ir.IntType(8).as_pointer()
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        address = builder.bitcast(builder.gep(struct.data, [position]), byte)
        builder.call(function, [address, *(ir.Constant(word, value) for value in (READ, KEPT, DATA))])
        return context.get_dummy_value()

    return types.void(array, index), codegen


@inline
def prefetch_arcs(targets, weights, first):
    """Begin to load the first arcs of a row."""
    prefetch(targets, first)
    prefetch(weights, first)
