"""Copy arrays between a GPU and the host through pinned memory, in blocks of one size.

CuPy's pool of pinned memory keeps blocks of every size that was ever asked for. A copy to memory that is not pinned is
made by one thread, which also takes the page faults of a new array. An upload of several blocks waits for the kernels
of other threads at each of them: CUDA's own copy, from memory that is not pinned, is faster there.
"""

from __future__ import annotations

import cupy
import numpy as np
from cupy.cuda import get_current_stream, runtime

from mgraph.backends.cpu import available_cores
from mgraph.backends.thread_pool import Helpers

BLOCK_BYTES = 1 << 22
# Arrays from this size on are worth it.
MIN_UPLOAD_BYTES = 1 << 20
MIN_DOWNLOAD_BYTES = 1 << 24
DOWNLOAD_THREADS = 8


class _Block:
    """Pinned memory, as an array of bytes."""

    def __init__(self) -> None:
        self._memory = cupy.cuda.alloc_pinned_memory(BLOCK_BYTES)
        self.address = self._memory.ptr
        self.bytes = np.frombuffer(self._memory, np.uint8, BLOCK_BYTES)


def upload(array: np.ndarray) -> cupy.ndarray:
    """Copy a contiguous array of at most a block to the device; it may be changed as soon as this returns."""
    result = cupy.empty(array.shape, array.dtype)
    block = _Block()
    block.bytes[: array.nbytes] = array.reshape(-1).view(np.uint8)
    stream = get_current_stream()
    result.data.copy_from_host_async(block.address, array.nbytes, stream)
    # Then the block goes back to the pool.
    stream.synchronize()
    return result


def download(array: cupy.ndarray) -> np.ndarray:
    """Copy a contiguous array to the host by several threads, each with a stream of its own."""
    result = np.empty(array.shape, array.dtype)
    target = result.reshape(-1).view(np.uint8)
    device = runtime.getDevice()
    get_current_stream().synchronize()
    begins = iter(range(0, len(target), BLOCK_BYTES))

    def work() -> None:
        runtime.setDevice(device)
        stream = cupy.cuda.Stream(non_blocking=True)
        block = _Block()
        # next() on a range iterator is one bytecode under the GIL: no block is given to two threads.
        for begin in begins:
            size = min(BLOCK_BYTES, len(target) - begin)
            (array.data + begin).copy_to_host_async(block.address, size, stream)
            stream.synchronize()
            target[begin : begin + size] = block.bytes[:size]

    helpers = Helpers(min(available_cores(), DOWNLOAD_THREADS) - 1)
    try:
        helpers.run(work)
    finally:
        helpers.close()
    return result
