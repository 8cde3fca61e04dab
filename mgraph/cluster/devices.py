"""The GPUs that this process may use, queried from NVML, which creates no CUDA context."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU: its index on the host, and its globally unique id."""

    index: int
    uuid: str


def visible_gpus() -> list[Gpu]:
    """Return the GPUs in the order in which CUDA numbers them in this process."""
    gpus = _host_gpus()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in filter(None, (entry.strip() for entry in visible.split(","))):
        named = [gpu for gpu in gpus if entry == str(gpu.index) or (entry[:1].isalpha() and gpu.uuid.startswith(entry))]
        # A MIG slice is identified by the entry itself: NVML does not list slices here, and no two workers share one.
        if gpus and entry.startswith("MIG-"):
            named = [Gpu(len(gpus) + len(chosen), entry)]
        # As in CUDA, the list ends at the first invalid entry.
        if len(named) != 1:
            break
        chosen += named
    return chosen


def cuda_is_installed() -> bool:
    """Return whether CuPy is installed, without importing it."""
    return importlib.util.find_spec("cupy") is not None


def _host_gpus() -> list[Gpu]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        # No driver, or no permission: treated as no GPU.
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [Gpu(i, str(pynvml.nvmlDeviceGetUUID(handle))) for i, handle in enumerate(handles)]
    finally:
        pynvml.nvmlShutdown()
