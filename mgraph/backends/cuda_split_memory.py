"""Memory of which the first bytes are in host memory and the rest on a GPU, at one range of virtual addresses.

Kernels, copies and CuPy access both parts alike: those in host memory over the link, without a copy and without
migration. Addresses are reserved once; physical memory is mapped behind what is mapped already, in handles of at most
HANDLE_BYTES, so that the end can be freed.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
import sys
from ctypes import POINTER, byref, c_byte, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p
from typing import TYPE_CHECKING

import cupy
import numpy as np
from cupy.cuda import runtime

from mgraph.backends.host_link import SplitMemory
from mgraph.errors import UsageError

if TYPE_CHECKING:
    from mgraph.backends.cuda_host_link import CudaHostLink

HANDLE_BYTES = 1 << 30
# Values of enums of the driver's API.
OUT_OF_MEMORY = 2
PINNED = 1
ON_DEVICE = 1
ON_HOST_NODE = 3
READ_AND_WRITE = 3
NEAREST_NODE = 134
NODES = pathlib.Path("/sys/devices/system/node")


class _Location(ctypes.Structure):
    _fields_ = (("kind", c_int), ("number", c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("kind", c_int),
        ("handle_kinds", c_int),
        ("location", _Location),
        ("windows_metadata", c_void_p),
        ("compression", c_ubyte),
        ("direct_access", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_byte * 4),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", c_int))


# Parameters of the driver's functions, all of which return an error code.
_PARAMETERS = {
    "cuMemGetAllocationGranularity": (POINTER(c_size_t), POINTER(_Properties), c_int),
    "cuMemAddressReserve": (POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemAddressFree": (c_uint64, c_size_t),
    "cuMemCreate": (POINTER(c_uint64), c_size_t, POINTER(_Properties), c_uint64),
    "cuMemRelease": (c_uint64,),
    "cuMemMap": (c_uint64, c_size_t, c_size_t, c_uint64, c_uint64),
    "cuMemUnmap": (c_uint64, c_size_t),
    "cuMemSetAccess": (c_uint64, c_size_t, POINTER(_Access), c_size_t),
}


@functools.cache
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    for name, parameters in _PARAMETERS.items():
        getattr(driver, name).argtypes = parameters
    return driver


def _call(name: str, *args: object) -> None:
    """Call a function of the driver; raise MemoryError where memory is short, UsageError where it cannot do this."""
    code = getattr(_driver(), name)(*args)
    if code == OUT_OF_MEMORY:
        raise MemoryError(f"{name}: out of memory")
    if code:
        raise UsageError(
            f"the layout split needs memory of the host at addresses beside the device's, and {name} of this driver "
            f"refuses it (error {code}): use layout compact or host"
        )


def _properties(location: _Location) -> _Properties:
    return _Properties(kind=PINNED, location=location)


@functools.cache
def _host_nodes(device: int) -> list[_Location]:
    """Return the NUMA nodes of the host, the nearest to a device first.

    Nodes without cores are the memory of devices.
    """
    nearest = max(runtime.deviceGetAttribute(NEAREST_NODE, device), 0)
    nodes = [path for path in NODES.glob("node[0-9]*") if (path / "cpulist").read_text().strip()]
    others = {int(path.name[4:]) for path in nodes} - {nearest}
    return [_Location(ON_HOST_NODE, node) for node in (nearest, *sorted(others))]


def _created(size: int, location: _Location) -> int:
    """Return a handle of physical memory."""
    handle = c_uint64()
    _call("cuMemCreate", byref(handle), size, byref(_properties(location)), 0)
    return int(handle.value)


def _granularity(location: _Location) -> int:
    size = c_size_t()
    _call("cuMemGetAllocationGranularity", byref(size), byref(_properties(location)), 0)
    return int(size.value)


class CudaSplitMemory(SplitMemory):
    """Reserved addresses, and the memory that is mapped to the first of them."""

    def __init__(self, link: CudaHostLink, most_bytes: int) -> None:
        self._link = link
        self._device = runtime.getDevice()
        # Address, bytes, handle, and whether it is in host memory, of all that is mapped, in order.
        self._mapped: list[tuple[int, int, int, bool]] = []
        self._end = 0
        self._reserved = 0
        # Creates the device's context where there is none: the driver's functions need one.
        runtime.deviceSynchronize()
        self._on_device = _Location(ON_DEVICE, self._device)
        self._host_nodes = list(_host_nodes(self._device))
        self._granule = max(map(_granularity, (self._on_device, self._host_nodes[0])))
        # A reservation is never empty.
        reserved = max(self._rounded(most_bytes), self._granule)
        first = c_uint64()
        _call("cuMemAddressReserve", byref(first), reserved, 0, 0, 0)
        self._first = int(first.value)
        self._reserved = reserved

    def _rounded(self, num_bytes: int) -> int:
        return -(-num_bytes // self._granule) * self._granule

    def grow(self, num_bytes: int, *, on_host: bool) -> None:
        while self._end < num_bytes:
            self._map(min(self._rounded(num_bytes - self._end), HANDLE_BYTES), on_host=on_host)

    def _map(self, size: int, *, on_host: bool) -> None:
        handle = self._created_on_host(size) if on_host else self._created_on_device(size)
        address = self._first + self._end
        try:
            _call("cuMemMap", address, size, 0, handle, 0)
        except BaseException:
            _driver().cuMemRelease(handle)
            raise
        self._mapped.append((address, size, handle, on_host))
        self._end += size
        self._link.count_split(0 if on_host else size)
        _call("cuMemSetAccess", address, size, byref(_Access(self._on_device, READ_AND_WRITE)), 1)

    def _created_on_device(self, size: int) -> int:
        """Return a handle of memory of the device, once CuPy's pool has freed what it does not use."""
        pool = cupy.get_default_memory_pool()
        if size > self._link.room():
            pool.free_all_blocks()
        if size > self._link.room():
            raise MemoryError(f"{size} bytes are more than the limit of the device's memory leaves")
        try:
            return _created(size, self._on_device)
        except MemoryError:
            pool.free_all_blocks()
            return _created(size, self._on_device)

    def _created_on_host(self, size: int) -> int:
        """Return a handle of memory of the first node that has it."""
        while True:
            try:
                return _created(size, self._host_nodes[0])
            except MemoryError:
                if len(self._host_nodes) == 1:
                    raise
                del self._host_nodes[0]

    def shrink(self, num_bytes: int) -> None:
        if self._mapped and self._mapped[-1][0] - self._first >= num_bytes:
            # A kernel that was launched before may still write there.
            self._synchronize()
        while self._mapped and self._mapped[-1][0] - self._first >= num_bytes:
            self._unmap()

    def _unmap(self) -> None:
        address, size, handle, on_host = self._mapped.pop()
        self._end -= size
        self._link.count_split(0 if on_host else -size)
        _driver().cuMemUnmap(address, size)
        _driver().cuMemRelease(handle)

    def _synchronize(self) -> None:
        with cupy.cuda.Device(self._device):
            runtime.deviceSynchronize()

    def array(self, count: int, dtype: np.dtype) -> cupy.ndarray:
        memory = cupy.cuda.UnownedMemory(self._first, self._end, self, self._device)
        return cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def __del__(self) -> None:
        # Waits for the device, in the thread that drops the last reference: no cycle of references may hold the arrays
        # of a graph, as any rank's thread collects those, perhaps while the kernel waits for that rank.
        if sys.is_finalizing():
            return
        with cupy.cuda.Device(self._device):
            if self._mapped:
                runtime.deviceSynchronize()
            while self._mapped:
                self._unmap()
            if self._reserved:
                _driver().cuMemAddressFree(self._first, self._reserved)


def is_split_memory_available(link: CudaHostLink) -> bool:
    """Return whether the driver maps memory of the host: some do not, as on WSL and in some containers."""
    try:
        memory = CudaSplitMemory(link, 1)
        memory.grow(1, on_host=True)
    except (UsageError, MemoryError, OSError, AttributeError):
        return False
    return True
