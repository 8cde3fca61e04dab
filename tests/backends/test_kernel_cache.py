"""What processes that compile at the same time keep on disk for later ones."""

from __future__ import annotations

import numpy as np
import pytest

from mgraph.backends.kernel import inline


def double(x):
    return x + x


@pytest.fixture
def files(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return lambda: sorted(tmp_path.rglob("*.nbc"))


def test_signatures_that_two_processes_compile_at_once_are_kept_in_two_files(files, monkeypatch):
    first = inline(double)
    second = inline(double)
    cache = second._cache._cache_file
    # As if both had read the index before either wrote it.
    before = cache._load_index()
    monkeypatch.setattr(cache, "_load_index", lambda: dict(before))
    assert first(np.int64(3)) == 6
    assert second(np.array([2.5])).tolist() == [5.0]
    assert len(files()) == 2
    # A process that comes later compiles what the index has lost, and loads no other code for it.
    for value, expected in ((np.int64(3), 6), (np.array([2.5]), [5.0])):
        assert np.array(inline(double)(value)).tolist() == expected
