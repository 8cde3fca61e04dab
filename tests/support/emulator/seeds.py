"""Other orders of threads for tests that give the emulator fixed seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from emulator.backend import EmulatedBackend


@contextlib.contextmanager
def shifted(shift: int) -> Iterator[None]:
    """Add a number to the seed of every emulator made meanwhile."""
    plain = EmulatedBackend.__init__

    def with_shift(self: EmulatedBackend, *, seed: int = 0, **options: Any) -> None:
        plain(self, seed=seed + shift, **options)

    with mock.patch.object(EmulatedBackend, "__init__", with_shift):
        yield
