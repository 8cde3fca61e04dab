"""From .cu text to a compiled module to a launch: the only file that compiles CUDA."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import alloc, driver, get_current_stream, runtime

from mgraph.backends import peer_memory
from mgraph.backends.base import LIMITS, Fresh, FusingBackend, Given
from mgraph.backends.cuda_source import OPTIONS, module_text

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel
    from mgraph.types import Array

# Threads a multiprocessor holds at once at up to 32 registers each; more only queue up.
THREADS_PER_SM = 2048
# More than any kernel has.
MOST_PARAMETERS = 32


@functools.cache
def _module(
    source: pathlib.Path, typedefs: tuple[tuple[str, str], ...], cooperative: bool, device: int
) -> cupy.RawModule:
    text = module_text(source, dict(typedefs))
    return cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=cooperative)


@functools.cache
def _function(kernel: Kernel, dtypes: tuple[np.dtype | None, ...], device: int) -> cupy.cuda.Function:
    """Return what the driver launches for arguments of these dtypes."""
    typedefs = tuple(sorted(kernel.typedefs(dtypes).items()))
    function = _module(kernel.source, typedefs, kernel.cooperative, device).get_function(kernel.name)
    # Beyond 48 KiB shared memory must be allowed first; a launch still takes only what it asks for.
    most = cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]
    function.max_dynamic_shared_size_bytes = most - function.shared_size_bytes
    return function.kernel


@functools.cache
def _blocks_at_once(function: int, block: int, shared_bytes: int) -> int:
    """Return how many blocks a multiprocessor holds at once."""
    return driver.occupancyMaxActiveBlocksPerMultiprocessor(function, block, shared_bytes)


def _bits(number: float) -> int:
    """Return the integer that has the bits of a float64."""
    return struct.unpack("q", struct.pack("d", number))[0]


# What an argument that is no array becomes in the 8 bytes that every parameter of a kernel has: a number, null.
_WORDS: dict[type, Callable[..., int]] = {
    type(None): lambda _: 0,
    **dict.fromkeys((bool, int, np.int64, np.uint64), int),
    **dict.fromkeys((float, np.float64), _bits),
}


class _Parameters:
    """Where the driver finds the arguments of a launch; it copies them before the launch returns."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * MOST_PARAMETERS)()
        first = ctypes.addressof(self.words)
        self._addresses = (ctypes.c_void_p * MOST_PARAMETERS)(*range(first, first + 8 * MOST_PARAMETERS, 8))
        self.address = ctypes.addressof(self._addresses)

    def take(self, args: Sequence) -> int:
        """Write down the arguments; return the address of their addresses."""
        # Most are arrays, and a call takes longer than a test.
        words = [a.data.ptr if type(a) is cupy.ndarray else _WORDS[type(a)](a) for a in args]
        self.words[: len(args)] = words
        return self.address


class _OwnParameters(_Parameters, threading.local):
    """Those of this thread."""


# How many blocks of how many threads a launch has: the driver's arguments from the function to the shared memory.
Shape = tuple[int, int, int, int, int, int, int, int]


def _start(shape: Shape, cooperative: bool, parameters: int) -> None:
    """Launch on CuPy's current stream; by the driver itself, as through CuPy's own objects it takes twice as long."""
    stream = get_current_stream().ptr
    if cooperative:
        driver.launchCooperativeKernel(*shape, stream, parameters)
    else:
        driver.launchKernel(*shape, stream, parameters, 0)


class _Prepared:
    """A launch of which all is known but where a few arrays are; see Backend.prepared."""

    def __init__(self, shape: Shape, kernel: Kernel, args: tuple) -> None:
        self._shape, self._cooperative, self._empty = shape, kernel.cooperative, args[1] <= args[0]
        self._given = [place for place, a in enumerate(args) if type(a) is Given]
        fresh = [(place, a) for place, a in enumerate(args) if type(a) is Fresh]
        self._fresh = [(place, a.count * a.dtype.itemsize) for place, a in fresh]
        self._arrays = [(a.count, a.dtype) for _, a in fresh]
        # Whose memory the words name lives as long as they do.
        self._known = [None if isinstance(a, (Given, Fresh)) else a for a in args]
        self._parameters = _Parameters()
        self._parameters.take(self._known)

    def __call__(self, *given: cupy.ndarray) -> list[cupy.ndarray]:
        words = self._parameters.words
        for place, array in zip(self._given, given, strict=True):
            words[place] = array.data.ptr
        memory = []
        for place, num_bytes in self._fresh:
            memory.append(taken := alloc(num_bytes))
            words[place] = taken.ptr
        if not self._empty:
            _start(self._shape, self._cooperative, self._parameters.address)
        # While the kernel runs: an array takes twice as long to make as its memory.
        return [cupy.ndarray(*array, taken) for array, taken in zip(self._arrays, memory, strict=True)]


class _Mark:
    """A place among the launches of CuPy's current stream, to be waited for."""

    def __init__(self) -> None:
        self._event = cupy.cuda.Event(disable_timing=True)
        self._event.record()

    def __call__(self) -> None:
        self._event.synchronize()


def _pinned(count: int, dtype: type) -> tuple[cupy.ndarray, np.ndarray]:
    """Return zeros in pinned host memory, as the device and as the host see them."""
    num_bytes = count * np.dtype(dtype).itemsize
    memory = cupy.cuda.alloc_pinned_memory(num_bytes)
    on_host: np.ndarray = np.frombuffer(memory, dtype, count)
    on_host[:] = 0
    owner = cupy.cuda.UnownedMemory(memory.ptr, num_bytes, memory, runtime.getDevice())
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
        self.device = runtime.getDevice()
        attributes = cupy.cuda.Device(self.device).attributes
        self.multiprocessors = attributes["MultiProcessorCount"]
        self.shared_bytes = attributes["MaxSharedMemoryPerBlockOptin"]
        self.cache_bytes = attributes["L2CacheSize"]
        self.abort_word = _pinned(1, np.uint32)[0]
        self.arrived = cupy.zeros(1, np.int64)
        self._host_words = _pinned(1, np.int64)
        self._parameters = _OwnParameters()

    def enter_thread(self) -> None:
        # Each thread has a current device of its own, the first one until it says otherwise.
        cupy.cuda.Device(self.device).use()

    def device_facts(self) -> dict[str, str | int]:
        return {
            "name": cupy.cuda.runtime.getDeviceProperties(self.device)["name"].decode(),
            "multiprocessors": self.multiprocessors,
            "cache_bytes": self.cache_bytes,
            "driver": cupy.cuda.runtime.driverGetVersion(),
            "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        }

    def launch(self, kernel: Kernel, args: tuple) -> None:
        if args[1] > args[0]:
            _start(self._shape(kernel, args), kernel.cooperative, self._parameters.take(args))

    def prepared(self, kernel: Kernel, *args: Any) -> Callable[..., list[cupy.ndarray]]:
        return _Prepared(self._shape(kernel, args), kernel, args)

    def _shape(self, kernel: Kernel, args: tuple) -> Shape:
        function = _function(kernel, kernel.dtypes(args), self.device).ptr
        grid, shared_bytes = self.grid(kernel, args[1] - args[0]), kernel.shared_bytes(args)
        if kernel.cooperative:
            grid = min(grid, self.multiprocessors * _blocks_at_once(function, kernel.block, shared_bytes))
        return function, grid, 1, 1, kernel.block, 1, 1, shared_bytes

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
        runtime.streamSynchronize(get_current_stream().ptr)

    def marked(self) -> Callable[[], None]:
        return _Mark()

    def full(self, count: int, value: float | int, dtype: np.dtype) -> Array:
        """Fill by bytes where all of the value's are the same: five times as fast as by numbers of 32 bits."""
        first, *others = np.array(value, dtype).tobytes()
        if others.count(first) < len(others):
            return cupy.full(count, value, dtype)
        array = cupy.empty(count, dtype)
        array.data.memset_async(first, array.nbytes)
        return array

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
                runtime.ipcCloseMemHandle(address)

    def host_word(self) -> tuple[Array, np.ndarray]:
        return _pinned(1, np.uint32)

    def release(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()

    def free_bytes(self) -> int:
        return runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()

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
