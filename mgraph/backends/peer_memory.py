"""Device memory that kernels of other processes on this host reach, through CUDA IPC.

A handle names an allocation and not a place in it, so that what is shared is allocated outside of CuPy's pool.
Two GPUs reach each other only if each can do atomics in the other's memory, which NVLink can and PCIe cannot.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import struct

import cupy
from cupy.cuda import runtime

# CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
NATIVE_ATOMICS = 3
# Handle, process, the host's boot, the bus on which the GPU is.
NAME = struct.Struct("=64sq36s16s")


def allocate(num_bytes: int) -> cupy.ndarray:
    """Return zeroed bytes in an allocation of their own."""
    array = cupy.ndarray(num_bytes, cupy.uint8, cupy.cuda.MemoryPointer(cupy.cuda.Memory(num_bytes), 0))
    array.fill(0)
    cupy.cuda.get_current_stream().synchronize()
    return array


def name_of(array: cupy.ndarray) -> bytes:
    """Return what another process must know to reach the array."""
    handle = runtime.ipcGetMemHandle(array.data.ptr)
    bus = runtime.deviceGetPCIBusId(runtime.getDevice())
    return NAME.pack(handle, os.getpid(), _boot(), bus.encode())


def reach(name: bytes) -> int | None:
    """Return the address here of another process's array, None if the current device does not reach it."""
    handle, process, boot, bus = NAME.unpack(name)
    # CUDA opens no handle of the same process, and a kernel that waits for another on its own GPU may wait for ever.
    if process == os.getpid() or boot != _boot():
        return None
    try:
        here, there = runtime.getDevice(), runtime.deviceGetByPCIBusId(bus.rstrip(b"\0").decode())
        if here == there or not runtime.deviceCanAccessPeer(here, there) or not _has_atomics(here, there):
            return None
        return runtime.ipcOpenMemHandle(handle)
    except runtime.CUDARuntimeError:
        return None


def _boot() -> bytes:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()


def _has_atomics(here: int, there: int) -> bool:
    """Ask the driver, since CuPy does not."""
    driver, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
    failed = driver.cuDeviceGetP2PAttribute(ctypes.byref(value), NATIVE_ATOMICS, here, there)
    return not failed and bool(value.value)
