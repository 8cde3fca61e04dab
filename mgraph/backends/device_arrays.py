"""Arrays of other libraries on a GPU, as CuPy arrays that share their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgraph.backends.base import Backend
    from mgraph.types import Array


def borrow(values: Any) -> Array | None:
    """Return an array with `__cuda_array_interface__` or DLPack as a CuPy array of the same memory.

    None means that this process has no CuPy or no GPU.
    """
    try:
        import cupy
    except ImportError:
        return None
    if not cupy.is_available():
        return None
    if isinstance(values, cupy.ndarray):
        array = values
    elif hasattr(values, "__cuda_array_interface__"):
        array = cupy.asarray(values)
    else:
        array = cupy.from_dlpack(values)
    # CuPy lets this stream wait for the interface's or DLPack's; the ranks read the array in other streams.
    with cupy.cuda.Device(array.device.id):
        cupy.cuda.get_current_stream().synchronize()
    return array


def adopted(array: Array, backend: Backend) -> Array:
    """Return an array of CuPy in memory that kernels of the backend read: itself if it is there, else a copy."""
    if backend.name != "cuda":
        return backend.to_device(array.get())
    # The calling thread is one of a reader's, of which CUDA's current device is another.
    backend.enter_thread()
    if array.device.id == getattr(backend, "device", None) and array.flags.c_contiguous:
        return array
    copied = array.copy()
    backend.synchronize()
    return copied
