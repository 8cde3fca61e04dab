"""The CPU cores beside a GPU, for searches that they do sooner."""

from __future__ import annotations

from mgraph.backends.base import PersistentBackend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory


class HostBackend(CpuBackend):
    """The CPU cores beside a GPU; what stops the calls of the GPU stops those of the cores."""

    def __init__(self, device: PersistentBackend) -> None:
        super().__init__(own_limit=device.own_limit)
        self._device = device
        self.stop_word = device.stop_word

    def free_memory(self) -> FreeMemory:
        return self.host_memory()

    @property
    def stopped(self) -> str | None:
        return self._device.stopped

    @stopped.setter
    def stopped(self, reason: str | None) -> None:
        self._device.stopped = reason
