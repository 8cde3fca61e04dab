"""Persistent kernels: all blocks of a launch run at once, reach grid barriers, and can be aborted."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS
from emulator.model import primitives

from mgraph.backends.base import PersistentBackend


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def fusing(request):
    """Each backend that has fused loops."""
    backend = BACKENDS[request.param].make()
    assert isinstance(backend, PersistentBackend)
    return backend


def test_blocks_meet(fusing):
    n = 192 if fusing.name == "emulated" else 1_000_000
    values = np.random.default_rng(1).integers(0, 1000, n).astype(np.uint32)
    arrived = fusing.xp.zeros(1, np.int64)
    expected = values
    for _ in range(5):
        expected = expected + np.roll(expected, -1)
    for items in (n, 64, n):  # grids of other sizes may go on from where one stopped
        state = fusing.to_device(np.concatenate([values, np.zeros_like(values)]))
        primitives.rounds[fusing](0, items, fusing.abort_word, n, state, arrived)
        np.testing.assert_array_equal(fusing.to_host(state[n:]), expected)


def test_the_abort_word_ends_a_meeting_that_a_block_misses(fusing):
    xp = fusing.xp
    met = xp.full(2, 7, np.uint32)
    fusing.abort_word[:] = 1
    try:
        primitives.miss_meeting[fusing](0, 3 * 256, fusing.abort_word, met, xp.zeros(1, np.int64))
        fusing.synchronize()
    finally:
        fusing.abort_word[:] = 0
    assert met.tolist() == [0, 0]
