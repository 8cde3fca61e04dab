"""Large arrays are the same on a GPU and back on the host."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mgraph.backends.create import make_backend


@pytest.mark.gpu
@pytest.mark.parametrize(
    "num_bytes", [1 << 10, 1 << 20, (3 << 20) + 3, 4 << 20, (5 << 20) + 3, (33 << 20) + 8, 100 << 20]
)
def test_arrays_come_back_as_they_were(num_bytes):
    import cupy

    backend = make_backend("cuda")
    given = np.random.default_rng(num_bytes).integers(0, 256, num_bytes, np.uint8)
    on_device = backend.to_device(given)
    np.testing.assert_array_equal(cupy.asnumpy(on_device), given)
    np.testing.assert_array_equal(backend.to_host(on_device), given, strict=True)
    np.testing.assert_array_equal(backend.to_host(on_device[3:-5]), given[3:-5])
    np.testing.assert_array_equal(backend.to_host(on_device[::2]), given[::2])
    words = given[: num_bytes // 8 * 8].view(np.int64)
    np.testing.assert_array_equal(backend.to_host(backend.to_device(words) + 1), words + 1, strict=True)


@pytest.mark.gpu
def test_arrays_that_are_held_stay_as_they_are():
    """The memory of those freed is used again, that of those held is not."""
    backend = make_backend("cuda")
    word = np.dtype(np.int64)
    held = [backend.to_host(backend.full(1 << 20, k, word)) for k in range(20)]
    for k in range(40):
        if not k % 8:
            del held[0]
        assert (backend.to_host(backend.full(1 << 20, -k, word)) == -k).all()
    assert [array[0] for array in held] == list(range(5, 20))
    assert all((array == array[0]).all() for array in held)


@pytest.mark.gpu
@pytest.mark.parametrize("num_bytes", [3 << 20, 9 << 20])
def test_array_may_change_once_it_is_uploaded_by_any_thread(num_bytes):
    backend = make_backend("cuda")

    def copied(k: int) -> np.ndarray:
        backend.enter_thread()
        given = np.full(num_bytes, k, np.uint8)
        on_device = backend.to_device(given)
        given[:] = 255
        return backend.to_host(on_device)

    with ThreadPoolExecutor(8) as pool:
        for k, found in enumerate(pool.map(copied, range(32))):
            assert (found == k).all()
