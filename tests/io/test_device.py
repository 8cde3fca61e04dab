"""Arrays on a GPU: used where they are if the ranks have that GPU, else copied to the host piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS
from memory_checks import DeviceArray, OnGpu, read_back

import mgraph as mg
from mgraph.errors import InputError
from mgraph.io import device, memory
from mgraph.io.memory import csr_table, edges_table
from mgraph.io.parts import in_parts


@pytest.fixture
def no_cupy(monkeypatch):
    """Hide CuPy and the GPU, where there are any."""
    monkeypatch.setattr(device, "borrow", lambda values: None)


@pytest.mark.parametrize("copies", ["get", "copy_to_host", "cpu", "to_numpy"])
@pytest.mark.usefixtures("no_cupy")
def test_arrays_on_a_gpu_are_copied_to_the_host_without_cupy(copies):
    arrays = [OnGpu(values, copies) for values in ([0, 5], [3, 1], [0.5, 2.0])]
    assert read_back(edges_table(*arrays))[1] == [(0, 3, 0.5), (5, 1, 2.0)]
    table = csr_table(OnGpu([0, 1, 2], copies), OnGpu([1, 0], copies), OnGpu([4, 5], copies))
    assert read_back(table)[1] == [(0, 1, 4), (1, 0, 5)]
    with pytest.raises(InputError, match="sources are float64, not integers"):
        edges_table(arrays[2], arrays[1])


@pytest.mark.parametrize("make", [edges_table, csr_table])
@pytest.mark.parametrize("k", range(3))
@pytest.mark.usefixtures("no_cupy")
def test_arrays_on_a_gpu_that_cannot_be_copied_are_refused(make, k):
    arrays = [[0, 1], [0], [1.0]] if make is csr_table else [[0], [1], [1.0]]
    arrays[k] = OnGpu(arrays[k])
    what = (["indptr", "indices"] if make is csr_table else ["sources", "targets"]) + ["weights"]
    with pytest.raises(InputError, match=rf"^{what[k]} are a .*OnGpu on a GPU: .* cupy\.asnumpy\({what[k]}\)$"):
        make(*arrays)


@pytest.fixture
def borrowed(monkeypatch):
    """Let arrays of the stub be borrowed as CuPy's are."""
    monkeypatch.setattr(device, "is_on_device", lambda values: isinstance(values, DeviceArray))
    monkeypatch.setattr(device, "borrow", lambda values: values)


@pytest.mark.parametrize("kind", ["cpu", "emulated"])
@pytest.mark.usefixtures("borrowed")
def test_arrays_on_another_device_are_copied_piece_by_piece(kind):
    m = 3 * memory.MIN_PIECE_EDGES
    u, v = np.random.default_rng(1).integers(0, 50, (2, m))
    w = np.linspace(0, 1, m)
    arrays = [DeviceArray(values) for values in (u, v, w)]
    table = edges_table(*arrays)
    assert not any(array.copies for array in arrays)
    assert read_back(table, 2, BACKENDS[kind].make()) == read_back(edges_table(u, v, w))
    assert all(array.copies == [memory.MIN_PIECE_EDGES] * 3 for array in arrays)


@pytest.mark.usefixtures("borrowed")
def test_arrays_on_a_device_are_sent_to_ranks_of_other_processes_in_parts():
    u, v = np.random.default_rng(1).integers(0, 50, (2, 100))
    assert read_back(in_parts(edges_table(DeviceArray(u), DeviceArray(v)), 3)) == read_back(edges_table(u, v))
    with pytest.raises(InputError, match=r"sources must be one-dimensional, not of shape \(2, 2\)"):
        edges_table(TwoDimensional(np.eye(2, dtype=int)), [1])


class TwoDimensional(DeviceArray):
    shape = (2, 2)


@pytest.mark.gpu
def test_cupy_arrays_stay_on_the_device():
    import cupy

    from mgraph.backends.create import make_backend

    u = cupy.array([0, 5])
    v = cupy.array([3, 1], "uint32")
    w = cupy.array([0.5, 2.0], "float32")
    piece = edges_table(u, v, w).piece(0, make_backend("cuda"))
    assert [piece.sources.data.ptr, piece.weights.data.ptr] == [u.data.ptr, w.data.ptr]
    for sources in (u, OnlyDlpack(u), OnlyInterface(u)):
        with mg.from_edges(sources, v, w, cluster=mg.connect(backend="cuda")) as g:
            assert (g.num_vertices, g.num_edges) == (6, 2)
        assert read_back(edges_table(sources, v, w)) == (6, [(0, 3, 0.5), (5, 1, 2.0)])
    with pytest.raises(InputError, match=r"edge 1: vertex -2 is negative"):
        mg.from_edges(u, cupy.array([1, -2]), labels=False)


@pytest.mark.gpu
def test_a_producer_on_another_stream_is_waited_for():
    import cupy

    with cupy.cuda.Stream(non_blocking=True) as stream:
        big = cupy.arange(1 << 24)
        for _ in range(50):
            big = big[::-1].copy()
        table = edges_table(OnlyInterface(big, stream.ptr), big)
    with mg.from_edges(table.sources.values, table.targets.values, cluster=mg.connect(backend="cuda")) as g:
        assert g.info.num_loops == 1 << 24


class OnlyInterface:
    """An array of another library: `__cuda_array_interface__` of version 3, with its stream."""

    def __init__(self, array, stream=None):
        self._array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "version": 3, "stream": stream}


class OnlyDlpack:
    """An array of another library: DLPack alone."""

    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__
