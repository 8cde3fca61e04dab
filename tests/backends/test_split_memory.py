"""Memory of which the first bytes are on the host and the rest on the device: one array for kernels and copies."""

from __future__ import annotations

import gc

import dask
import numpy as np
import pytest

from mgraph.backends.create import make_backend
from mgraph.shard.rows_kernels import look_up

MIB = 1 << 20


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def on_backend(request):
    """Return a backend with the memory of a device, which is the host's own or a GPU's."""
    backend = make_backend(request.param)
    yield backend
    backend.close()


def split(backend, on_host, on_device):
    """Return memory of this many bytes on the host, and on the device."""
    memory = backend.link.split_memory(on_host + on_device)
    memory.grow(on_host, on_host=True)
    memory.grow(on_host + on_device, on_host=False)
    return memory


@pytest.mark.parametrize("on_host", [0, 12, 3 * MIB + 4, 8 * MIB])
def test_kernels_and_copies_access_both_parts(on_backend, on_host):
    xp = on_backend.xp
    count = 2 * MIB
    array = split(on_backend, on_host, 4 * count - on_host).array(count, np.dtype(np.uint32))
    values = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    array[:] = on_backend.to_device(values)
    np.testing.assert_array_equal(on_backend.to_host(array), values)
    np.testing.assert_array_equal(on_backend.to_host(array[5:-5].copy()), values[5:-5])
    wanted = np.random.default_rng(1).integers(0, count, 10_000).astype(np.uint32)
    found = xp.empty(len(wanted), np.uint32)
    look_up[on_backend](0, len(wanted), on_backend.to_device(wanted), array, found)
    np.testing.assert_array_equal(on_backend.to_host(found), values[wanted])


def test_memory_grows_in_place_and_its_end_is_freed(on_backend):
    memory = on_backend.link.split_memory(64 * MIB)
    dtype = np.dtype(np.uint8)
    for end, on_host in ((3 * MIB, True), (9 * MIB, True), (20 * MIB, False), (40 * MIB, False)):
        memory.grow(end, on_host=on_host)
        memory.array(end, dtype)[end - MIB :] = end // MIB
    memory.shrink(20 * MIB)
    kept = on_backend.to_host(memory.array(20 * MIB, dtype))
    assert [int(kept[end * MIB - 1]) for end in (3, 9, 20)] == [3, 9, 20]
    memory.grow(64 * MIB, on_host=False)
    memory.array(64 * MIB, dtype)[63 * MIB :] = 1


@pytest.mark.gpu
def test_split_memory_counts_as_memory_of_the_device():
    with dask.config.set({"mgraph.device-memory": "256MiB"}):
        backend = make_backend("cuda")
        try:
            gc.collect()  # what other tests have left, which would be freed below
            free = backend.free_bytes()
            with backend.high_water() as peak:
                memory = split(backend, 64 * MIB, 128 * MIB)
                array = memory.array(192 * MIB, np.dtype(np.uint8))
                assert backend.link.split_bytes == 128 * MIB
                assert free - backend.free_bytes() == 128 * MIB
                assert peak() == 128 * MIB
                # An array keeps the memory; the last reference frees it.
                del memory
                gc.collect()
                array[:] = 7
                assert backend.link.split_bytes == 128 * MIB
                del array
                gc.collect()
            assert backend.link.split_bytes == 0
            assert backend.free_bytes() == free
        finally:
            backend.close()


@pytest.mark.gpu
def test_more_than_the_device_has_is_a_memory_error():
    backend = make_backend("cuda")
    memory = backend.link.split_memory(1 << 44)
    with pytest.raises(MemoryError, match="out of memory"):
        memory.grow(1 << 44, on_host=False)
    del memory
    gc.collect()
    assert backend.link.split_bytes == 0
    backend.close()
