"""The CUDA backend: compiles .cu text to modules, and launches their kernels."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
from cupy.cuda import alloc, driver, get_current_stream, runtime

from mgraph.backends import cuda_ipc
from mgraph.backends.base import LIMITS, Allocated, Bound, PersistentBackend
from mgraph.backends.compile_clock import CLOCK, say_once
from mgraph.backends.copies import BLOCK_BYTES, MIN_DOWNLOAD_BYTES, MIN_UPLOAD_BYTES, download, upload
from mgraph.backends.cuda_host_link import CudaHostLink
from mgraph.backends.cuda_source import OPTIONS, module_text
from mgraph.backends.device_limit import device_limit
from mgraph.backends.host_memory import FreeMemory
from mgraph.backends.kernel import NO_ELEMENTS
from mgraph.backends.recycled import RecycledMemory

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel
    from mgraph.types import Array

# Resident threads of a multiprocessor at up to 32 registers each; further blocks only wait.
THREADS_PER_SM = 2048
# A module that takes longer is compiled, and not loaded from CuPy's cache.
COMPILES_S = 0.5
CUPY_CACHE = os.path.expanduser("~/.cupy/kernel_cache")
# An upper bound of the parameters of a kernel.
MAX_PARAMETERS = 32


@functools.cache
def _module(
    source: pathlib.Path, typedefs: tuple[tuple[str, str], ...], cooperative: bool, device: int
) -> cupy.RawModule:
    text = module_text(source, dict(typedefs))
    return cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=cooperative)


@functools.cache
def _function(kernel: Kernel, dtypes: tuple[np.dtype | None, ...], device: int) -> cupy.cuda.Function:
    """Return the compiled function for arguments of these dtypes."""
    typedefs = tuple(sorted(kernel.typedefs(dtypes).items()))
    with CLOCK.running():
        began = time.perf_counter()
        function = _module(kernel.source, typedefs, kernel.cooperative, device).get_function(kernel.name)
    if time.perf_counter() - began > COMPILES_S:
        say_once(f"sm_{cupy.cuda.Device(device).compute_capability}", os.environ.get("CUPY_CACHE_DIR", CUPY_CACHE))
    # More than 48 KiB of shared memory needs this attribute; a launch still uses only what it requests.
    most = cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"]
    function.max_dynamic_shared_size_bytes = most - function.shared_size_bytes
    return function.kernel


@functools.cache
def _blocks_at_once(function: int, block: int, shared_bytes: int) -> int:
    """Return how many blocks are resident on a multiprocessor."""
    return driver.occupancyMaxActiveBlocksPerMultiprocessor(function, block, shared_bytes)


def _bits(number: float) -> int:
    """Return the bits of a float64 as an integer."""
    return struct.unpack("q", struct.pack("d", number))[0]


# Converts an argument that is not an array to the 8 bytes of a kernel's parameter: a number, or a null pointer.
_WORDS: dict[type, Callable[..., int]] = {
    type(None): lambda _: 0,
    **dict.fromkeys((bool, int, np.int64, np.uint64), int),
    **dict.fromkeys((float, np.float64), _bits),
}


class _Parameters:
    """The argument buffer of a launch; the driver copies it before the launch returns."""

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * MAX_PARAMETERS)()
        first = ctypes.addressof(self.words)
        self._addresses = (ctypes.c_void_p * MAX_PARAMETERS)(*range(first, first + 8 * MAX_PARAMETERS, 8))
        self.address = ctypes.addressof(self._addresses)

    def set(self, args: Sequence) -> int:
        """Write the arguments into the buffer.

        Return the address of the array of their addresses.
        """
        # Most arguments are arrays, and a type test is faster than the call of a converter.
        words = [a.data.ptr or NO_ELEMENTS if type(a) is cupy.ndarray else _WORDS[type(a)](a) for a in args]
        self.words[: len(args)] = words
        return self.address


class _ThreadParameters(_Parameters, threading.local):
    """The argument buffer of the calling thread."""


# The driver's arguments of a launch: function, grid (x, y, z), block (x, y, z), dynamic shared memory.
Shape = tuple[int, int, int, int, int, int, int, int]


def _launch(shape: Shape, cooperative: bool, parameters: int) -> None:
    """Launch on CuPy's current stream by the driver's API: CuPy's own launch takes twice as long."""
    stream = get_current_stream().ptr
    if cooperative:
        driver.launchCooperativeKernel(*shape, stream, parameters)
    else:
        driver.launchKernel(*shape, stream, parameters, 0)


class _Prepared:
    """A launch with fixed arguments but for the addresses of a few arrays.

    See Backend.prepared.
    """

    def __init__(self, shape: Shape, kernel: Kernel, args: tuple) -> None:
        self._shape = shape
        self._cooperative = kernel.cooperative
        self._empty = args[1] <= args[0]
        self._bound = [i for i, a in enumerate(args) if type(a) is Bound]
        allocated = [(i, a) for i, a in enumerate(args) if type(a) is Allocated]
        self._allocated = [(i, a.nbytes) for i, a in allocated]
        self._arrays = [(a.count, a.dtype) for _, a in allocated]
        # References that keep the arrays alive while their addresses are in the buffer.
        self._fixed = [None if isinstance(a, (Bound, Allocated)) else a for a in args]
        self._parameters = _Parameters()
        self._parameters.set(self._fixed)

    def __call__(self, *bound: cupy.ndarray) -> list[cupy.ndarray]:
        words = self._parameters.words
        for i, array in zip(self._bound, bound, strict=True):
            words[i] = array.data.ptr or NO_ELEMENTS
        memory = []
        for i, num_bytes in self._allocated:
            memory.append(new := alloc(num_bytes))
            words[i] = new.ptr or NO_ELEMENTS
        if not self._empty:
            _launch(self._shape, self._cooperative, self._parameters.address)
        # Overlaps with the kernel: making an array object takes twice as long as allocating its memory.
        return [cupy.ndarray(*array, new) for array, new in zip(self._arrays, memory, strict=True)]


class _Mark:
    """An event, which is recorded again and again; calling it waits for all launches before it."""

    def __init__(self) -> None:
        self._event = cupy.cuda.Event(disable_timing=True)

    def record(self) -> _Mark:
        """Record the event in CuPy's current stream."""
        self._event.record()
        return self

    def __call__(self) -> None:
        self._event.synchronize()


def _pinned(count: int, dtype: type) -> tuple[cupy.ndarray, np.ndarray]:
    """Return zeros in pinned host memory, as a CuPy array and as a NumPy array."""
    num_bytes = count * np.dtype(dtype).itemsize
    memory = cupy.cuda.alloc_pinned_memory(num_bytes)
    on_host: np.ndarray = np.frombuffer(memory, dtype, count)
    on_host[:] = 0
    owner = cupy.cuda.UnownedMemory(memory.ptr, num_bytes, memory, runtime.getDevice())
    return cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(owner, 0)), on_host


class _PeakHook(cupy.cuda.MemoryHook):
    """Records the peak of a number of bytes, checked at every allocation of this thread."""

    name = "mgraph high water"

    def __init__(self, taken: Callable[[], int]) -> None:
        self.taken = taken
        self.peak = taken()

    def malloc_postprocess(self, **event: object) -> None:
        self.peak = max(self.peak, self.taken())


class CudaBackend(PersistentBackend):
    """The current CUDA device, on CuPy's current stream."""

    name = "cuda"
    xp = cupy
    limits = LIMITS["cuda"]
    link: CudaHostLink

    def __init__(self) -> None:
        super().__init__()
        self.device = runtime.getDevice()
        attributes = cupy.cuda.Device(self.device).attributes
        self.multiprocessors = attributes["MultiProcessorCount"]
        self.shared_bytes = attributes["MaxSharedMemoryPerBlockOptin"]
        self.cache_bytes = attributes["L2CacheSize"]
        self.abort_word = _pinned(1, np.uint32)[0]
        self.arrived = cupy.zeros(1, np.int64)
        self._host_words = _pinned(1, np.int64)
        self._parameters = _ThreadParameters()
        self._mark = _Mark()
        self._downloads = RecycledMemory()
        self.link = CudaHostLink(cupy)
        self._limit = device_limit()
        if self._limit is not None:
            self.link.limit = self._limit.num_bytes
            cupy.get_default_memory_pool().set_limit(size=self._limit.num_bytes)

    def enter_thread(self) -> None:
        # The current device is per thread, device 0 at first.
        cupy.cuda.Device(self.device).use()

    def borrow_thread(self) -> Callable[[], object]:
        """Use this device and its null stream: calls of several threads must not overlap on streams of theirs."""
        device = runtime.getDevice()
        self.enter_thread()
        stream = get_current_stream()
        cupy.cuda.Stream.null.use()

        def give_back() -> None:
            stream.use()
            runtime.setDevice(device)

        return give_back

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
            _launch(self._shape(kernel, args), kernel.cooperative, self._parameters.set(args))

    def prepared(self, kernel: Kernel, *args: Any) -> Callable[..., list[cupy.ndarray]]:
        return _Prepared(self._shape(kernel, args), kernel, args)

    def _shape(self, kernel: Kernel, args: tuple) -> Shape:
        function = _function(kernel, kernel.dtypes(args), self.device).ptr
        grid = self.grid(kernel, args[1] - args[0])
        shared_bytes = kernel.shared_bytes(args)
        if kernel.cooperative:
            grid = min(grid, self.multiprocessors * _blocks_at_once(function, kernel.block, shared_bytes))
        return function, grid, 1, 1, kernel.block, 1, 1, shared_bytes

    def grid(self, kernel: Kernel, items: int) -> int:
        """Return the number of blocks for `items` work items.

        At most as many as are resident at once; but where a whole block works on one item, each item has its own
        block, so that the hardware gives the next one to the first free multiprocessor.
        """
        blocks = -(-items * kernel.lanes // kernel.block)
        if kernel.lanes == kernel.block:
            return blocks
        return min(blocks, self.multiprocessors * (THREADS_PER_SM // kernel.block))

    def synchronize(self) -> None:
        runtime.streamSynchronize(get_current_stream().ptr)

    def marked(self) -> Callable[[], None]:
        return self._mark.record()

    def full(self, count: int, value: float | int, dtype: np.dtype) -> Array:
        """Fill with memset if all bytes of the value are equal: five times as fast as a fill by 32-bit words."""
        first, *others = np.array(value, dtype).tobytes()
        if others.count(first) < len(others):
            return cupy.full(count, value, dtype)
        array = cupy.empty(count, dtype)
        array.data.memset_async(first, array.nbytes)
        return array

    def to_host(self, array: Array) -> np.ndarray:
        if not (isinstance(array, cupy.ndarray) and array.flags.c_contiguous):
            return cupy.asnumpy(array)
        if array.nbytes >= MIN_DOWNLOAD_BYTES:
            return download(array)
        # Not pinned: to allocate or free such memory may wait for kernels, which may wait for this rank.
        block = self._downloads.empty(array.size, array.dtype)
        return array.get(out=block if array.ndim == 1 else block.reshape(array.shape))

    def to_device(self, array: np.ndarray) -> Array:
        is_block = MIN_UPLOAD_BYTES <= array.nbytes <= BLOCK_BYTES and isinstance(array, np.ndarray)
        return upload(array) if is_block and array.flags.c_contiguous else cupy.asarray(array)

    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        if count > len(self._host_words[0]):
            self._host_words = _pinned(count, np.int64)
        return self._host_words

    def share(self, num_bytes: int) -> tuple[Array, bytes]:
        array = cuda_ipc.allocate(num_bytes)
        return array, cuda_ipc.name_of(array)

    def reach(self, name: bytes, num_bytes: int) -> int | None:
        return cuda_ipc.reach(name)

    def leave(self, addresses: list[int]) -> None:
        with cupy.cuda.Device(self.device):
            for address in addresses:
                runtime.ipcCloseMemHandle(address)

    def host_word(self) -> tuple[Array, np.ndarray]:
        return _pinned(1, np.uint32)

    def release(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()

    def free_bytes(self) -> int:
        pool = cupy.get_default_memory_pool()
        free: int = runtime.memGetInfo()[0]
        if limit := pool.get_limit():
            # Without what split memory has.
            free = max(min(free, limit - pool.total_bytes()), 0)
        return free + pool.free_bytes()

    def _taken_bytes(self) -> int:
        """Return the bytes of the pool, and of memory that is not of the pool."""
        total: int = cupy.get_default_memory_pool().total_bytes()
        return total + self.link.split_bytes

    def free_memory(self) -> FreeMemory:
        return FreeMemory(self.free_bytes(), "" if self._limit is None else self._limit.limit)

    @contextmanager
    def high_water(self) -> Iterator[Callable[[], int]]:
        """Measure the pool, which keeps freed memory until release()."""
        self.release()
        before = self._taken_bytes()
        hook = _PeakHook(self._taken_bytes)
        with hook:
            yield lambda: max(hook.peak, self._taken_bytes()) - before

    def close(self) -> None:
        self.release()
        self.link.limit = None
        if self._limit is not None:
            with cupy.cuda.Device(self.device):
                cupy.get_default_memory_pool().set_limit(size=0)
