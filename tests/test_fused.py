"""What fused loops stand on: all blocks of a launch run at once, meet, and can be told to stop."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS
from emulator.model import primitives


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def fusing(request):
    """Each backend that has fused loops."""
    backend = BACKENDS[request.param].make()
    assert backend.fuses
    return backend


def test_blocks_meet(fusing):
    n = 192 if fusing.name == "emulated" else 1_000_000
    values = np.random.default_rng(1).integers(0, 1000, n).astype(np.uint32)
    state = fusing.to_device(np.concatenate([values, np.zeros_like(values)]))
    primitives.rounds[fusing](0, n, fusing.abort_word, n, state, fusing.xp.zeros(1, np.int64))
    expected = values
    for _ in range(5):
        expected = expected + np.roll(expected, -1)
    np.testing.assert_array_equal(fusing.to_host(state[n:]), expected)


def test_the_abort_word_ends_a_wait(fusing):
    """The counter starts so low that no round can end, but for the word."""
    state, arrived = fusing.xp.zeros(2 * 512, np.uint32), fusing.xp.full(1, -(10**9), np.int64)
    fusing.abort_word[:] = 1
    try:
        primitives.rounds[fusing](0, 512, fusing.abort_word, 512, state, arrived)
        fusing.synchronize()
    finally:
        fusing.abort_word[:] = 0
    assert int(arrived[0]) <= -(10**9) + 8
