"""The CPU cores beside a GPU, for searches that they do sooner."""

from __future__ import annotations

from mgraph.backends.base import PersistentBackend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory


class HostBackend(CpuBackend):
    """The CPU cores beside a GPU; what stops the calls of the GPU stops those of the cores, between compiled loops."""

    def __init__(self, device: PersistentBackend) -> None:
        super().__init__(own_limit=device.own_limit)
        self._device = device

    def free_memory(self) -> FreeMemory:
        return self.host_memory()

    @property  # type: ignore[misc]
    def stopped(self) -> str | None:  # type: ignore[override]
        return self._device.stopped
