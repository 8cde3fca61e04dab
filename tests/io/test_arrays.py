"""Edges in memory: arrays, CSR and SciPy; errors name the wrong argument."""

from __future__ import annotations

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest
import scipy.sparse
from edge_checks import as_rows, assert_chunks_agree, read_edges, whole

import mgraph as mg
from mgraph.errors import InputError, UsageError
from mgraph.io.arrays import csr_source, edges_source, scipy_source


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
def test_ids_of_every_dtype(dtype):
    source = edges_source(np.array([0, 5], dtype), np.array([3, 1], dtype))
    assert as_rows(whole(source)) == [(0, 3), (5, 1)]
    assert (source.num_vertices, source.num_input_edges, source.directed) == (6, 2, False)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("uint8", "uint8"),
        ("int8", "int32"),
        ("int16", "int32"),
        ("int32", "int32"),
        ("uint32", "uint32"),
        ("int64", "int64"),
        ("uint64", "int64"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        (">f8", "float64"),
    ],
)
def test_weights_of_every_dtype(dtype, kept):
    source = edges_source([0, 1], [1, 2], np.array([3, 7], dtype))
    assert source.weight_dtype == kept
    assert as_rows(whole(source)) == [(0, 1, 3), (1, 2, 7)]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_graph_without_edges(n):
    source = edges_source([], [], [], num_vertices=n)
    assert (source.num_vertices, len(whole(source, 3))) == (n, 0)


def test_edges_do_not_depend_on_the_number_of_chunks():
    rng = np.random.default_rng(1)
    u = rng.integers(0, 50, 200)
    v = rng.integers(0, 50, 200)
    w = rng.random(200)
    assert_chunks_agree(edges_source(u, v, w))
    matrix = scipy.sparse.coo_array((w, (u, v)), shape=(60, 60)).tocsr()
    source = csr_source(matrix.indptr, matrix.indices, matrix.data)
    assert_chunks_agree(source)
    rows = np.repeat(np.arange(60), np.diff(matrix.indptr))
    assert as_rows(whole(source)) == sorted(
        zip(rows.tolist(), matrix.indices.tolist(), matrix.data.tolist(), strict=True)
    )


@pytest.mark.parametrize("indptr_dtype", ["int32", "uint64"])
def test_csr_with_empty_rows(indptr_dtype):
    source = csr_source(np.array([0, 0, 2, 2, 3, 3], indptr_dtype), [0, 4, 1])
    assert as_rows(whole(source)) == [(1, 0), (1, 4), (3, 1)]
    assert_chunks_agree(source)


def test_scipy_keeps_parallel_edges_and_zeros():
    entries = scipy.sparse.coo_array(([5.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 2])), shape=(4, 4))
    assert as_rows(whole(scipy_source(entries))) == [(0, 1, 2.0), (0, 1, 5.0), (1, 2, 0.0)]
    assert scipy_source(entries).num_vertices == 4


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia"])
def test_scipy_formats_give_the_same_edges(kind):
    matrix = scipy.sparse.coo_array(([5, 2], ([0, 3], [1, 2])), shape=(4, 4)).asformat(kind)
    assert as_rows(whole(scipy_source(matrix, directed=True))) == [(0, 1, 5), (3, 2, 2)]
    assert scipy_source(matrix.astype(bool)).weight_dtype is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: edges_source([0.0, 1.0], [1, 2]), r"sources are float64, not integers: convert them"),
        (lambda: edges_source([True], [False]), r"sources are bool, not integers"),
        (lambda: edges_source(["a"], ["b"]), r"sources are <U1, not integers"),
        (lambda: edges_source([[0]], [[1]]), r"sources must be one-dimensional, not of shape \(1, 1\)"),
        (lambda: edges_source([0, 1], [1]), r"there are 2 sources and 1 targets"),
        (lambda: edges_source([0, 1], [1, -2]), r"targets\[1\] = -2 is negative"),
        (lambda: edges_source([0, 7], [1, 2], num_vertices=7), r"sources\[1\] = 7 is not below .* 7"),
        (lambda: edges_source(np.array([2**64 - 1], "u8"), [0]), r"sources\[0\] = 18446744073709551615 is beyond 63"),
        (lambda: edges_source([0], [1], [1, 2]), r"one for each of the 1 edges, not of shape \(2,\)"),
        (lambda: edges_source([0, 0], [1, 2], [1, np.nan]), r"weights\[1\] = nan is not a finite number"),
        (lambda: edges_source([0], [1], [-np.inf]), r"weights\[0\] = -inf is not a finite number"),
        (lambda: edges_source([0], [1], [1j]), r"weights are complex128: use integers, float32 or float64"),
        (lambda: edges_source([0], [1], np.array([2**63], "u8")), r"weights\[0\] = .* is beyond 64 signed bits"),
        (lambda: edges_source([0, 0], [1, 2], [-1, 2**63]), r"weights\[1\] = 9223372036854775808 is beyond 64 signed"),
        (lambda: edges_source([0], [1], np.array([2**63], ">u8")), r"weights\[0\] = .* is beyond 64 signed bits"),
        (
            lambda: edges_source(np.ma.array([0, 1], mask=[0, 1]), [1, 2]),
            "sources are masked: leave out",
        ),
        (lambda: edges_source([0, 1], [1, 2], np.ma.masked_less([1, -1], 0)), "weights are masked"),
        (lambda: csr_source([], []), r"indptr is empty"),
        (lambda: csr_source([0, 2, 1, 3], [0, 1, 2]), r"indptr\[2\] = 1 is below indptr\[1\] = 2: offsets must rise"),
        (lambda: csr_source([0, 2], [0, 0, 0]), r"indptr goes from 0 to 2, not from 0 to the number of arcs, 3"),
        (lambda: csr_source([0, 1], [1]), r"indices\[0\] = 1 is not below the number of vertices, 1"),
        (lambda: csr_source([0, 1], [0.0]), r"indices are float64"),
        (lambda: scipy_source(np.eye(3)), r"ndarray is not a SciPy sparse array: scipy.sparse.coo_array\(x\)"),
        (lambda: scipy_source(scipy.sparse.coo_array((2, 3))), r"of shape \(2, 3\): an adjacency matrix is square"),
    ],
)
def test_wrong_input_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


class OnGpu:
    """A stub of an array on a GPU: it has the CUDA array interface and refuses implicit copies."""

    def __init__(self, values, copies=None):
        self._values = np.asarray(values)
        self.dtype = np.asarray(values).dtype
        self.__cuda_array_interface__ = {"shape": self._values.shape, "typestr": self._values.dtype.str, "version": 3}
        if copies:
            setattr(self, copies, lambda: OnHost(self._values) if copies == "cpu" else self._values)

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")


class OnHost:
    """A stub of a PyTorch tensor on the host."""

    def __init__(self, values):
        self.numpy = lambda: values


@pytest.mark.parametrize("copies", ["get", "copy_to_host", "cpu", "to_numpy"])
def test_arrays_on_a_gpu_are_copied_to_the_host(copies):
    arrays = [OnGpu(values, copies) for values in ([0, 5], [3, 1], [0.5, 2.0])]
    source = edges_source(*arrays)
    assert as_rows(whole(source)) == [(0, 3, 0.5), (5, 1, 2.0)]
    source = csr_source(OnGpu([0, 1, 2], copies), OnGpu([1, 0], copies), OnGpu([4, 5], copies))
    assert as_rows(whole(source)) == [(0, 1, 4), (1, 0, 5)]
    with pytest.raises(InputError, match="sources are float64, not integers"):
        edges_source(arrays[2], arrays[1])


@pytest.mark.parametrize("make", [edges_source, csr_source])
@pytest.mark.parametrize("k", range(3))
def test_arrays_on_a_gpu_that_cannot_be_copied_are_refused(make, k):
    arrays = [[0, 1], [0], [1.0]] if make is csr_source else [[0], [1], [1.0]]
    arrays[k] = OnGpu(arrays[k])
    what = (["indptr", "indices"] if make is csr_source else ["sources", "targets"]) + ["weights"]
    with pytest.raises(InputError, match=rf"^{what[k]} are a .*OnGpu on a GPU: .* cupy\.asnumpy\({what[k]}\)$"):
        make(*arrays)


@pytest.mark.gpu
def test_cupy_arrays_are_accepted():
    import cupy
    import cupyx.scipy.sparse

    u = cupy.array([0, 5])
    v = cupy.array([3, 1], "uint32")
    w = cupy.array([0.5, 2.0], "float32")
    expected = [(0, 3, 0.5), (5, 1, 2.0)]
    source = edges_source(u, v, w)
    assert as_rows(whole(source)) == expected
    assert source.weight_dtype == np.float32
    assert as_rows(whole(edges_source(u, cupy.asnumpy(v), w.tolist()))) == expected
    matrix = cupyx.scipy.sparse.coo_matrix((w, (u, v)), shape=(6, 6))
    assert as_rows(whole(scipy_source(matrix))) == expected
    rows = matrix.tocsr()
    assert as_rows(whole(csr_source(rows.indptr, rows.indices, rows.data))) == expected
    assert as_rows(whole(scipy_source(rows))) == expected
    with mg.from_edges(u, v, w) as g:
        assert (g.num_vertices, g.num_edges) == (6, 2)
    with pytest.raises(InputError, match=r"targets\[1\] = -2 is negative"):
        edges_source(u, cupy.array([1, -2]))


@pytest.mark.parametrize("directed", ["no", 1, None])
def test_flag_that_is_not_a_bool_is_refused(directed, tmp_path):
    (tmp_path / "a.el").write_text("0 1\n")
    makers = [lambda: edges_source([0], [1], directed=directed), lambda: csr_source([0, 0], [], directed=directed)]
    if directed is not None:
        makers.append(lambda: read_edges(tmp_path / "a.el", directed=directed))
    for make in makers:
        with pytest.raises(UsageError, match=f"directed {directed!r} is not True or False"):
            make()


@pytest.mark.parametrize("num_vertices", [-1, 2.0, True, "3"])
def test_wrong_number_of_vertices_is_refused(num_vertices):
    with pytest.raises(UsageError, match=f"num_vertices {num_vertices!r} is not (an integer|a count of vertices)"):
        edges_source([0], [1], num_vertices=num_vertices)


def lazy_collections():
    """Return lazy Dask collections of several kinds, which may differ in order each time they are computed."""
    frame = dask.dataframe.from_pandas(pandas.DataFrame({"u": [0, 1, 2], "v": [1, 2, 0]}), npartitions=2)
    return {
        "Array": dask.array.from_array(np.arange(3), chunks=2),
        "Series": frame.u,
        "Index": frame.index,
        "DataFrame": frame,
        "Delayed": dask.delayed(np.arange)(3),
        "Bag": dask.bag.from_sequence([0, 1, 2]),
    }


@pytest.mark.parametrize("kind", lazy_collections())
def test_lazy_dask_collections_are_refused_in_every_argument(kind):
    lazy = lazy_collections()[kind]
    ids = [0, 1, 2]
    indptr = [0, 1, 2, 3]
    calls = {
        "sources": lambda: mg.from_edges(lazy, ids),
        "targets": lambda: mg.from_edges(ids, lazy),
        "weights": lambda: mg.from_edges(ids, ids, lazy),
        "num_vertices": lambda: mg.from_edges(ids, ids, num_vertices=lazy),
        "indptr": lambda: mg.from_csr(lazy, ids),
        "indices": lambda: mg.from_csr(indptr, lazy),
        "weights of a CSR": lambda: mg.from_csr(indptr, ids, lazy),
        "matrix": lambda: mg.from_scipy(lazy),
    }
    for what, call in calls.items():
        with pytest.raises(
            InputError, match=rf"^{what.split()[0]}: a lazy dask\S*\.{kind} is not read: .*dask\.compute"
        ):
            call()


def test_lazy_number_of_vertices_is_refused():
    lazy = dask.array.from_array(np.arange(3), chunks=2).max()
    with pytest.raises(InputError, match=r"^num_vertices: a lazy dask\.array\.Array is not read"):
        mg.from_edges([0], [1], num_vertices=lazy)


def test_computed_dask_results_are_accepted():
    sources, targets = dask.compute(dask.array.arange(3, chunks=2), dask.array.from_array(np.array([1, 2, 0])))
    assert as_rows(whole(edges_source(sources, targets))) == [(0, 1), (1, 2), (2, 0)]
