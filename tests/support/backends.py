"""The backends on which tests run, each made if it can run here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from mgraph.backends import cpu
from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.create import make_backend

# In the tests' process several threads share small inputs too, so that races can occur.
cpu.ITEMS_PER_HELPER = 1


@functools.cache
def has_gpu() -> bool:
    """Return whether CuPy is installed and finds a device."""
    try:
        import cupy
    except ImportError:
        return False
    return cupy.is_available()


@functools.cache
def gpu_count() -> int:
    """Return the number of GPUs without initializing them."""
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount()
    except Exception:
        return 0


@dataclass(frozen=True)
class BackendUnderTest:
    """How to make a backend, and whether it can run here."""

    make: Callable[[], Backend]
    is_available: Callable[[], bool] = lambda: True


def _emulated() -> Backend:
    from emulator.backend import EmulatedBackend

    return EmulatedBackend(block=64, blocks=3)


# Two threads, so that races can occur on any machine.
BACKENDS = {
    "cpu": BackendUnderTest(lambda: CpuBackend(2)),
    # A few small thread blocks, so that small inputs span several.
    "emulated": BackendUnderTest(_emulated),
    "cuda": BackendUnderTest(lambda: make_backend("cuda"), has_gpu),
}


def available_backends() -> list[str]:
    """Return the names of the backends that can run here."""
    return [name for name, backend in BACKENDS.items() if backend.is_available()]
