"""Which GPUs this process may use, asked of NVML: no CUDA context is made by asking."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU: its place among those of the host, and the name that is its own on any host."""

    index: int
    uuid: str


def visible_gpus() -> list[Gpu]:
    """Return the GPUs in the order in which CUDA would number them here."""
    gpus = _host_gpus()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in filter(None, (entry.strip() for entry in visible.split(","))):
        named = [gpu for gpu in gpus if entry == str(gpu.index) or (entry[:1].isalpha() and gpu.uuid.startswith(entry))]
        # A slice of a GPU is taken by its name: NVML lists slices elsewhere, and no two workers share one.
        if gpus and entry.startswith("MIG-"):
            named = [Gpu(len(gpus) + len(chosen), entry)]
        # Like CUDA: the list ends at the first entry that names no GPU.
        if len(named) != 1:
            break
        chosen += named
    return chosen


def cuda_is_installed() -> bool:
    """Return whether the array library of the CUDA backend is there, without importing it."""
    return importlib.util.find_spec("cupy") is not None


def _host_gpus() -> list[Gpu]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        # No driver, or no permission: as good as no GPU.
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [Gpu(i, str(pynvml.nvmlDeviceGetUUID(handle))) for i, handle in enumerate(handles)]
    finally:
        pynvml.nvmlShutdown()
