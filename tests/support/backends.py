"""The backends that tests run on: one entry each, made where it can run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from mgraph.backends import base as backend
from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.create import make_backend

# In the tests' own process threads share small inputs too, or hardly any kernel would meet another.
backend.SERIAL_ITEMS = 2


@functools.cache
def has_gpu() -> bool:
    """Return whether CuPy is there and sees a device."""
    try:
        import cupy
    except ImportError:
        return False
    return cupy.is_available()


@functools.cache
def gpu_count() -> int:
    """Return how many GPUs there are, without touching them."""
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


# Two threads, so that kernels meet on any machine.
BACKENDS = {
    "cpu": BackendUnderTest(lambda: CpuBackend(2)),
    # Small blocks and few of them, so that small inputs cross their edges.
    "emulated": BackendUnderTest(_emulated),
    "cuda": BackendUnderTest(lambda: make_backend("cuda"), has_gpu),
}


def available_backends() -> list[str]:
    """Return the names of the backends that can run here."""
    return [name for name, backend in BACKENDS.items() if backend.is_available()]
