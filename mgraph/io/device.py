"""Arrays on a GPU: anything with `__cuda_array_interface__` or DLPack, used where it is if the ranks have that GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.device_arrays import adopted, borrow
from mgraph.errors import InputError
from mgraph.types import Array

# Methods that copy to the host, of cuDF, Numba, PyTorch and CuPy. `get` is last: a cuDF series has another `get`.
HOST_COPIES = ("to_numpy", "copy_to_host", "cpu", "get")
# DLPack's types of devices with memory of CUDA: device memory and managed memory.
CUDA_DEVICES = (2, 13)


@dataclass(frozen=True, eq=False)
class DeviceColumn:
    """Numbers on a GPU, as a CuPy array that shares the memory of the user's."""

    values: Array
    is_text = False

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def part(self, lo: int, hi: int, backend: Backend) -> Array:
        return adopted(self.values[lo:hi], backend)


def is_on_device(values: Any) -> bool:
    """Return whether an array lies in the memory of a GPU."""
    # A torch tensor has the interface only if it is on a GPU.
    if hasattr(values, "__cuda_array_interface__"):
        return True
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack_device__"):
        return False
    try:
        return int(values.__dlpack_device__()[0]) in CUDA_DEVICES
    except Exception:
        # Arrow raises for columns that DLPack does not know, such as those with nulls: they are on the host.
        return False


def borrowed(values: Any, what: str) -> Array | None:
    """Return an array on a GPU as a CuPy array of the same memory, or as a host copy where there is no CuPy.

    The streams of `__cuda_array_interface__` and of DLPack are honoured. None means that it is not on a GPU.
    """
    if not is_on_device(values):
        return None
    array = borrow(values)
    return np.asarray(on_host(values, what)) if array is None else array


def on_host(values: Any, what: str) -> Any:
    """Return a host copy of an array on a GPU, and anything else unchanged.

    Libraries of GPU arrays refuse an implicit copy, as by `np.asarray`.
    """
    if not is_on_device(values):
        return values
    for method in HOST_COPIES:
        if copy := getattr(values, method, None):
            copied = copy()
            return copied.numpy() if method == "cpu" else copied
    try:
        return np.asarray(values)
    except TypeError:
        raise InputError(
            f"{what} are a {type(values).__module__}.{type(values).__name__} on a GPU: "
            f"copy them to the host first, as with cupy.asnumpy({what})"
        ) from None
