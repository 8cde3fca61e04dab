"""The rank/select table of positions agrees with a plain table, for any number of words and pieces."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.backend import EmulatedBackend

from mgraph.backends.cpu import CpuBackend
from mgraph.ingest import ranked
from mgraph.ingest.ranked import rank_positions, ranked_bytes
from mgraph.partition import Partition


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(ranked, "PIECE", 64)


def table_of(n, connected, dtype):
    """Return a permutation as positions; values from `connected` on are isolated vertices."""
    return np.random.default_rng(n).permutation(n).astype(dtype)


@pytest.mark.parametrize("on", [CpuBackend(threads=1), EmulatedBackend(seed=3)], ids=["cpu", "emulated"])
@pytest.mark.parametrize(("n", "connected"), [(1, 0), (31, 5), (32, 10), (200, 90), (257, 1), (640, 0)])
def test_positions_equal_those_of_the_plain_table(n, connected, on):
    backend = on
    partition = Partition(connected, 3, cyclic=True)
    whole = table_of(n, connected, partition.dtype)
    found = rank_positions(backend, partition, backend.to_device(whole))
    if ranked_bytes(n, partition) is not None:
        assert sum(array.nbytes for array in found.arrays) == ranked_bytes(n, partition) < whole.nbytes
    for first, last in ((0, n), (n // 3, n // 2), (n, n)):
        part = backend.to_host(found.of_range(backend, first, last, partition.dtype))
        assert part.dtype == partition.dtype
        np.testing.assert_array_equal(np.minimum(part, connected), np.minimum(whole[first:last], connected))


def test_plain_table_is_used_if_it_is_no_larger():
    backend = CpuBackend(threads=1)
    for n, connected, num_ranks in ((100, 100, 2), (100, 5, 1)):
        whole = table_of(n, connected, np.uint32)
        found = rank_positions(backend, Partition(connected, num_ranks, cyclic=True), whole)
        assert found.table is whole
        assert found.bits is None
        assert found.of_range(backend, 0, n, whole.dtype) is whole
        np.testing.assert_array_equal(found.of_range(backend, 3, 9, whole.dtype), whole[3:9])
    nothing = rank_positions(backend, Partition(10, 2, cyclic=False), None)
    assert nothing.arrays == (None, None, None)
    assert nothing.of_range(backend, 0, 5, np.dtype(np.uint32)) is None
