"""Persistent kernels: all blocks of a launch run at once, reach grid barriers, and can be aborted."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS
from emulator.model import primitives

from mgraph.backends.base import PersistentBackend


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def launcher(request):
    """Each backend that runs persistent kernels."""
    launcher = BACKENDS[request.param].make()
    assert isinstance(launcher, PersistentBackend)
    return launcher


def test_grid_barriers_order_rounds(launcher):
    n = 192 if launcher.name == "emulated" else 1_000_000
    values = np.random.default_rng(1).integers(0, 1000, n).astype(np.uint32)
    arrived = launcher.xp.zeros(1, np.int64)
    expected = values
    for _ in range(5):
        expected = expected + np.roll(expected, -1)
    for items in (n, 64, n):  # a grid of another size continues with the same counter
        state = launcher.to_device(np.concatenate([values, np.zeros_like(values)]))
        primitives.rounds[launcher](0, items, launcher.abort_word, n, state, arrived)
        np.testing.assert_array_equal(launcher.to_host(state[n:]), expected)


def test_abort_word_ends_a_barrier_that_a_block_misses(launcher):
    xp = launcher.xp
    passed = xp.full(2, 7, np.uint32)
    launcher.abort_word[:] = 1
    try:
        primitives.miss_barrier[launcher](0, 3 * 256, launcher.abort_word, passed, xp.zeros(1, np.int64))
        launcher.synchronize()
    finally:
        launcher.abort_word[:] = 0
    assert passed.tolist() == [0, 0]
