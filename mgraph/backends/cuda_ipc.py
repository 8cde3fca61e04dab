"""Map device memory of other processes on this host, which kernels then access, through CUDA IPC.

A handle names a whole allocation, so that shared memory is allocated outside of CuPy's pool. Two GPUs share memory
only if each supports atomics in the other's memory: NVLink does, PCIe does not.
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
# IPC handle, process id, boot id of the host, PCI bus id of the GPU.
NAME = struct.Struct("=64sq36s16s")


def allocate(num_bytes: int) -> cupy.ndarray:
    """Return zeroed bytes in an allocation of their own."""
    array = cupy.ndarray(num_bytes, cupy.uint8, cupy.cuda.MemoryPointer(cupy.cuda.Memory(num_bytes), 0))
    array.fill(0)
    cupy.cuda.get_current_stream().synchronize()
    return array


def name_of(array: cupy.ndarray) -> bytes:
    """Return what another process needs to map the array: see NAME."""
    handle = runtime.ipcGetMemHandle(array.data.ptr)
    bus = runtime.deviceGetPCIBusId(runtime.getDevice())
    return NAME.pack(handle, os.getpid(), _boot(), bus.encode())


def reach(name: bytes) -> int | None:
    """Map another process's array.

    Return its address, None if the current device has no peer access to it.
    """
    handle, process, boot, bus = NAME.unpack(name)
    # CUDA opens no handle of the same process. A kernel that waits for another one on its own GPU may wait forever.
    if process == os.getpid() or boot != _boot():
        return None
    try:
        here = runtime.getDevice()
        there = runtime.deviceGetByPCIBusId(bus.rstrip(b"\0").decode())
        if here == there or not runtime.deviceCanAccessPeer(here, there) or not _has_atomics(here, there):
            return None
        return runtime.ipcOpenMemHandle(handle)
    except runtime.CUDARuntimeError:
        return None


def _boot() -> bytes:
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()


def _has_atomics(here: int, there: int) -> bool:
    """Query the driver for peer atomics, which CuPy has no call for."""
    driver = ctypes.CDLL("libcuda.so.1")
    value = ctypes.c_int(0)
    failed = driver.cuDeviceGetP2PAttribute(ctypes.byref(value), NATIVE_ATOMICS, here, there)
    return not failed and bool(value.value)
