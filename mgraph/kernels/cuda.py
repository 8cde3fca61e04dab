"""From .cu text to a compiled module to a launch: the only file that compiles CUDA."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import cupy
import numpy as np
from cupy.cuda import driver

from mgraph.kernels import peer_memory
from mgraph.kernels.backend import LIMITS, FusingBackend
from mgraph.kernels.source import OPTIONS, module_text, widen

if TYPE_CHECKING:
    from mgraph.kernels.pair import Kernel
    from mgraph.types import Array

# Threads a multiprocessor holds at once at up to 32 registers each; more only queue up.
THREADS_PER_SM = 2048


@functools.cache
def _module(
    source: pathlib.Path, typedefs: tuple[tuple[str, str], ...], cooperative: bool, device: int
) -> cupy.RawModule:
    text = module_text(source, dict(typedefs))
    return cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=cooperative)


@functools.cache
def _function(kernel: Kernel, dtypes: tuple[np.dtype | None, ...], device: int) -> cupy.RawKernel:
    typedefs = tuple(sorted(kernel.typedefs(dtypes).items()))
    function = _module(kernel.source, typedefs, kernel.cooperative, device).get_function(kernel.name)
    # Beyond 48 KiB shared memory must be allowed first; a launch still takes only what it asks for.
    most = cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]
    function.max_dynamic_shared_size_bytes = most - function.shared_size_bytes
    return function


@functools.cache
def _blocks_at_once(function: cupy.RawKernel, block: int, shared_bytes: int) -> int:
    """Return how many blocks a multiprocessor holds at once."""
    return driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, block, shared_bytes)


def _pinned(count: int, dtype: type) -> tuple[cupy.ndarray, np.ndarray]:
    """Return zeros in pinned host memory, as the device and as the host see them."""
    num_bytes = count * np.dtype(dtype).itemsize
    memory = cupy.cuda.alloc_pinned_memory(num_bytes)
    on_host: np.ndarray = np.frombuffer(memory, dtype, count)
    on_host[:] = 0
    owner = cupy.cuda.UnownedMemory(memory.ptr, num_bytes, memory, cupy.cuda.runtime.getDevice())
    return cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(owner, 0)), on_host


class _Watch(cupy.cuda.MemoryHook):
    """Notes the most that a pool holds, at every allocation of this thread."""

    name = "mgraph high water"

    def __init__(self, pool: cupy.cuda.MemoryPool) -> None:
        self.pool, self.most = pool, pool.total_bytes()

    def malloc_postprocess(self, **event: object) -> None:
        self.most = max(self.most, self.pool.total_bytes())


class CudaBackend(FusingBackend):
    """The current CUDA device, on CuPy's current stream."""

    name = "cuda"
    xp = cupy
    limits = LIMITS["cuda"]

    def __init__(self) -> None:
        self.device = cupy.cuda.runtime.getDevice()
        attributes = cupy.cuda.Device(self.device).attributes
        self.multiprocessors = attributes["MultiProcessorCount"]
        self.shared_bytes = attributes["MaxSharedMemoryPerBlockOptin"]
        self.cache_bytes = attributes["L2CacheSize"]
        self.abort_word = _pinned(1, np.uint32)[0]
        self.arrived = cupy.zeros(1, np.int64)
        self._host_words = _pinned(1, np.int64)

    def launch(self, kernel: Kernel, args: tuple) -> None:
        if args[1] <= args[0]:
            return
        function = _function(kernel, kernel.dtypes(args), self.device)
        grid, shared_bytes = self.grid(kernel, args[1] - args[0]), kernel.shared_bytes(args)
        if kernel.cooperative:
            grid = min(grid, self.multiprocessors * _blocks_at_once(function, kernel.block, shared_bytes))
        function((grid,), (kernel.block,), widen(args), shared_mem=shared_bytes)

    def grid(self, kernel: Kernel, items: int) -> int:
        """Return how many blocks share `items` work items.

        No more than the device holds at once; but where an item is a block's work each gets its own, so
        that a multiprocessor which is done early takes the next.
        """
        blocks = -(-items * kernel.lanes // kernel.block)
        if kernel.lanes == kernel.block:
            return blocks
        return min(blocks, self.multiprocessors * (THREADS_PER_SM // kernel.block))

    def synchronize(self) -> None:
        cupy.cuda.get_current_stream().synchronize()

    def to_host(self, array: Array) -> np.ndarray:
        return cupy.asnumpy(array)

    def to_device(self, array: np.ndarray) -> Array:
        return cupy.asarray(array)

    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        if count > len(self._host_words[0]):
            self._host_words = _pinned(count, np.int64)
        return self._host_words

    def share(self, num_bytes: int) -> tuple[Array, bytes]:
        array = peer_memory.allocate(num_bytes)
        return array, peer_memory.name_of(array)

    def reach(self, name: bytes, num_bytes: int) -> int | None:
        return peer_memory.reach(name)

    def leave(self, addresses: list[int]) -> None:
        with cupy.cuda.Device(self.device):
            for address in addresses:
                cupy.cuda.runtime.ipcCloseMemHandle(address)

    def host_word(self) -> tuple[Array, np.ndarray]:
        return _pinned(1, np.uint32)

    def release(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()

    def free_bytes(self) -> int:
        return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()

    @contextmanager
    def high_water(self) -> Iterator[Callable[[], int]]:
        """Look at the pool, which holds what was freed until it is told to give it back."""
        self.release()
        pool = cupy.get_default_memory_pool()
        before = pool.total_bytes()
        hook = _Watch(pool)
        with hook:
            yield lambda: hook.most - before

    def close(self) -> None:
        self.release()
