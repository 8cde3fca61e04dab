"""From .cu text to a compiled module to a launch: the only file that compiles CUDA."""

from __future__ import annotations

import functools
import pathlib
from typing import TYPE_CHECKING

import cupy
import numpy as np

from mgraph.kernels.backend import LIMITS, Backend
from mgraph.kernels.source import OPTIONS, module_text, widen

if TYPE_CHECKING:
    from mgraph.kernels.pair import Kernel
    from mgraph.types import Array

BLOCK = 256
# Blocks a multiprocessor holds at once at 256 threads and up to 32 registers; more only queue up.
BLOCKS_PER_SM = 8


@functools.cache
def _module(source: pathlib.Path, typedefs: tuple[tuple[str, str], ...], device: int) -> cupy.RawModule:
    return cupy.RawModule(code=module_text(source, dict(typedefs)), options=OPTIONS)


@functools.cache
def _function(kernel: Kernel, typedefs: tuple[tuple[str, str], ...], device: int) -> cupy.RawKernel:
    function = _module(kernel.source, typedefs, device).get_function(kernel.name)
    if kernel.shared_bytes > 48 << 10:
        function.max_dynamic_shared_size_bytes = kernel.shared_bytes
    return function


class CudaBackend(Backend):
    """The current CUDA device, on CuPy's current stream."""

    name = "cuda"
    xp = cupy
    limits = LIMITS["cuda"]

    def __init__(self) -> None:
        self.device = cupy.cuda.runtime.getDevice()
        self.multiprocessors = cupy.cuda.Device(self.device).attributes["MultiProcessorCount"]

    def launch(self, kernel: Kernel, args: tuple) -> None:
        if args[1] <= args[0]:
            return
        typedefs = tuple(sorted(kernel.typedefs(args).items()))
        function = _function(kernel, typedefs, self.device)
        function((self.grid(args[1] - args[0], kernel.lanes),), (BLOCK,), widen(args), shared_mem=kernel.shared_bytes)

    def grid(self, items: int, lanes: int) -> int:
        """Return how many blocks share `items` work items: no more than the device holds at once."""
        return min(-(-items * lanes // BLOCK), self.multiprocessors * BLOCKS_PER_SM)

    def synchronize(self) -> None:
        cupy.cuda.get_current_stream().synchronize()

    def to_host(self, array: Array) -> np.ndarray:
        return cupy.asnumpy(array)

    def to_device(self, array: np.ndarray) -> Array:
        return cupy.asarray(array)

    def free_bytes(self) -> int:
        return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()

    def close(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()
