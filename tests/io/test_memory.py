"""Edges in memory as tables: arrays, pairs and CSR; errors name the wrong argument, and the edge."""

from __future__ import annotations

import array

import dask
import dask.array
import dask.bag
import dask.dataframe
import networkx
import numpy as np
import pandas
import pyarrow
import pytest
import scipy.sparse
import tiers
from edge_checks import as_rows, as_source, assert_chunks_agree, whole
from hypothesis import given
from hypothesis import strategies as st
from memory_checks import read_back

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import InputError, UsageError
from mgraph.io import memory
from mgraph.io.memory import csr_table, edges_table, id_options
from mgraph.io.parts import in_parts


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
def test_ids_of_every_dtype(dtype):
    source = as_source(edges_table(np.array([0, 5], dtype), np.array([3, 1], dtype)))
    assert as_rows(whole(source)) == [(0, 3), (5, 1)]
    assert (source.num_vertices, source.num_input_edges, source.directed) == (6, 2, False)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("int8", "uint8"),
        ("int64", "uint8"),
        ("uint64", "uint8"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        (">f8", "float64"),
    ],
)
def test_weights_of_every_dtype(dtype, kept):
    source = as_source(edges_table([0, 1], [1, 2], np.array([3, 7], dtype)))
    assert source.weight_dtype == kept
    assert as_rows(whole(source)) == [(0, 1, 3), (1, 2, 7)]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_graph_without_edges(n):
    source = as_source(edges_table([], [], [], how=id_options(n)))
    assert (source.num_vertices, len(whole(source, 3))) == (n, 0)
    assert as_source(edges_table([])).num_vertices == 0


def test_edges_do_not_depend_on_the_number_of_chunks():
    rng = np.random.default_rng(1)
    u = rng.integers(0, 50, 200)
    v = rng.integers(0, 50, 200)
    w = rng.random(200)
    assert_chunks_agree(edges_table(u, v, w))
    matrix = scipy.sparse.coo_array((w, (u, v)), shape=(60, 60)).tocsr()
    table = csr_table(matrix.indptr, matrix.indices, matrix.data)
    assert_chunks_agree(table)
    rows = np.repeat(np.arange(60), np.diff(matrix.indptr))
    assert as_rows(whole(table)) == sorted(
        zip(rows.tolist(), matrix.indices.tolist(), matrix.data.tolist(), strict=True)
    )


# Every kind of column that holds the ids 0, 1, ... as numbers.
KINDS = {
    "list": np.ndarray.tolist,
    "tuple": lambda ids: tuple(ids.tolist()),
    "array": lambda ids: array.array("q", ids.tolist()),
    "memoryview": memoryview,
    "numpy": lambda ids: ids,
    "reversed": lambda ids: ids[::-1].copy()[::-1],
    "every third": lambda ids: np.repeat(ids, 3)[::3],
    "read-only": lambda ids: np.frombuffer(ids.tobytes(), ids.dtype),
    "series": pandas.Series,
    "index": pandas.Index,
    "nullable series": lambda ids: pandas.Series(ids).astype("Int64"),
    "arrow": pyarrow.array,
    "chunked": lambda ids: pyarrow.chunked_array([ids[:1], ids[1:]]),
    "dictionary": lambda ids: pyarrow.array(ids).dictionary_encode(),
}
TEXT_KINDS = {
    "list": lambda names: names,
    "numpy": np.array,
    "objects": lambda names: np.array(names, object),
    "series": pandas.Series,
    "categories": lambda names: pandas.Series(names).astype("category"),
    "arrow": pyarrow.array,
    "large": lambda names: pyarrow.array(names, pyarrow.large_string()),
    "chunked": lambda names: pyarrow.chunked_array([names[:1], names[1:]]),
    "dictionary": lambda names: pyarrow.array(names).dictionary_encode(),
}


@tiers.examples(40)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS)), st.sampled_from((1, 2, 3, 7)))
def test_columns_of_every_kind_are_the_edges_of_plain_arrays(data, sources, targets, num_ranks):
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 100)] * 2), min_size=1, max_size=30))
    u, v = np.array(pairs).T.copy()
    weights = data.draw(st.sampled_from((None, u + 1, (u * 0.5).tolist(), pyarrow.array(u + 0.5))))
    expected = read_back(edges_table(u, v, None if weights is None else np.asarray(weights)))
    table = edges_table(KINDS[sources](u), KINDS[targets](v), weights)
    assert read_back(table, num_ranks) == expected
    assert read_back(in_parts(table, num_ranks)) == expected


@tiers.examples(40)
@given(st.data(), st.sampled_from(sorted(TEXT_KINDS)), st.sampled_from(sorted(TEXT_KINDS)), st.sampled_from((1, 3)))
def test_strings_of_every_kind_are_labels(data, sources, targets, num_ranks):
    names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)
    pairs = data.draw(st.lists(st.tuples(names, names), min_size=1, max_size=20))
    u, v = map(list, zip(*pairs, strict=True))
    table = edges_table(TEXT_KINDS[sources](u), TEXT_KINDS[targets](v))
    expected = len({*u, *v}), sorted(pairs)
    assert read_back(table, num_ranks) == expected
    assert read_back(in_parts(table, num_ranks)) == expected


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 1), (1, 2)],
        ([0, 1], [1, 2]),
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 1], [1, 2]], order="F"),
        np.array([[0, 9, 1], [1, 9, 2]])[:, ::2],
    ],
)
def test_pairs_of_ends_are_edges(pairs):
    assert read_back(edges_table(pairs)) == (3, [(0, 1), (1, 2)])
    assert as_rows(whole(edges_table(pairs, None, [5, 6]))) == [(0, 1, 5), (1, 2, 6)]


def test_pieces_of_plain_arrays_share_their_memory():
    u, v = np.random.default_rng(2).integers(0, 99, (2, 5 * memory.MIN_PIECE_EDGES))
    table = edges_table(u, v)
    assert table.num_pieces == 5
    assert all(np.shares_memory(table.piece(k, None).sources, u) for k in range(5))


def test_a_part_has_the_pieces_of_its_rank_only():
    u, v = np.random.default_rng(2).integers(0, 99, (2, 5 * memory.MIN_PIECE_EDGES))
    parts = in_parts(edges_table(u, v), 2)
    assert [sorted(part.pieces) for part in parts] == [[0, 2, 4], [1, 3]]
    assert all(piece.sources.dtype == np.uint32 for part in parts for piece in part.pieces.values())


@pytest.mark.parametrize("indptr_dtype", ["int32", "uint64"])
def test_csr_with_empty_rows(indptr_dtype):
    table = csr_table(np.array([0, 0, 2, 2, 3, 3], indptr_dtype), [0, 4, 1])
    assert as_rows(whole(table)) == [(1, 0), (1, 4), (3, 1)]
    assert_chunks_agree(table)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: edges_table([0.0, 1.0], [1, 2]), r"sources are float64, not integers: convert them"),
        (lambda: edges_table([True], [False]), r"sources are bool, neither integers nor strings"),
        (lambda: edges_table(["a"], [1]), r"sources are strings, and targets integers"),
        (lambda: edges_table([1], ["a"]), r"targets are strings, and sources integers"),
        (lambda: edges_table([[0]], [[1]]), r"sources must be one-dimensional, not of shape \(1, 1\)"),
        (lambda: edges_table([0, 1], [1]), r"there are 2 sources and 1 targets"),
        (
            lambda: edges_table([1], [pandas.Timestamp(0)]),
            r"targets are objects, and .* is of type Timestamp: convert",
        ),
        (lambda: edges_table(["a"], ["b"], how=id_options(5)), "edge 0: ids are strings, and .* says that they are"),
        (lambda: edges_table(["a", 1], ["b", "c"], [1, 1]), r"sources\[1\] = 1 is no string, as others are"),
        (lambda: edges_table(["a", None], ["b", "c"]), r"sources\[1\] is missing"),
        (lambda: edges_table([(1, None), (2, 3)]), r"targets\[0\] is missing"),
        (lambda: edges_table(["a"], ["\ud800"]), r"targets\[0\] = '\\ud800' has a surrogate"),
        (lambda: edges_table(pyarrow.array([0, None]), [1, 2]), r"sources\[1\] is missing"),
        # Before version 3, pandas gives them as floats.
        (
            lambda: edges_table([0, 1], pandas.Series([1, None], dtype="Int64")),
            r"targets(\[1\] is missing| are float64, not integers)",
        ),
        (lambda: edges_table(["0", "1"], pandas.Series(["1", None])), r"targets\[1\] is missing"),
        (lambda: edges_table(pyarrow.array([1.5]), [1]), r"sources are float64, not integers"),
        (lambda: edges_table(pyarrow.array([[1]]), ["y"]), r"sources are list<.*, neither numbers nor strings: cast"),
        (lambda: edges_table([0, 1], [1, -2]), r"edge 1: vertex -2 is negative"),
        (lambda: edges_table([0, 7], [1, 2], how=id_options(7)), r"edge 1: vertex 7 is not in 0\.\.6"),
        (lambda: edges_table(np.array([2**64 - 1], "u8"), [0]), r"edge 0: vertex 18446744073709551615 is beyond 63"),
        (lambda: edges_table([0], [1], [1, 2]), r"one for each of the 1 edges, not of shape \(2,\)"),
        (lambda: edges_table([0], [1], np.ones((1, 1))), r"weights must be one-dimensional"),
        (lambda: edges_table([0, 0], [1, 2], [1, np.nan]), r"weights\[1\] = nan is not a finite number"),
        (lambda: edges_table([0], [1], np.array([-np.inf])), r"weights\[0\] = -inf is not a finite number"),
        (lambda: edges_table([0], [1], [1j]), r"weights are complex128: use integers, float32 or float64"),
        (lambda: edges_table([0], [1], ["1"]), r"weights are <U1: use integers, float32 or float64"),
        (lambda: edges_table([0], [1], pyarrow.array([True])), r"weights are bool, neither numbers nor strings"),
        (lambda: edges_table([0], [1], np.array([2**63], "u8")), r"weights\[0\] = .* is beyond 64 signed bits"),
        (lambda: edges_table([0, 0], [1, 2], [-1, 2**63]), r"weights\[1\] = 9223372036854775808 is beyond 64 signed"),
        (lambda: edges_table([0], [1], np.array([2**63], ">u8")), r"weights\[0\] = .* is beyond 64 signed bits"),
        (lambda: edges_table(np.ma.array([0, 1], mask=[0, 1]), [1, 2]), "sources are masked: leave out"),
        (lambda: edges_table([0, 1], [1, 2], np.ma.masked_less([1, -1], 0)), "weights are masked"),
        (lambda: edges_table([(0, 1), (1,)]), "must be pairs of ends"),
        (lambda: edges_table([(0, 1, 5)]), "must be pairs of ends"),
        (lambda: edges_table(["ab", "cd"]), "must be pairs of ends"),
        (lambda: edges_table(np.zeros((2, 3), int)), r"edges of shape \(2, 3\) are no pairs of ends"),
        (lambda: edges_table({1, 2}), "set has no pairs of ends"),
        (lambda: csr_table([], []), r"indptr is empty"),
        (lambda: csr_table([0, 2, 1, 3], [0, 1, 2]), r"indptr\[2\] = 1 is below indptr\[1\] = 2: offsets must rise"),
        (lambda: csr_table([0, 2], [0, 0, 0]), r"indptr goes from 0 to 2, not from 0 to the number of arcs, 3"),
        (lambda: csr_table([0, 1], [1]), r"arc 0: vertex 1 is not in 0\.\.0"),
        (lambda: csr_table([0, 1], [0.0]), r"indices are float64"),
        (lambda: csr_table([0, 1], ["a"]), r"indices are strings"),
    ],
)
def test_wrong_input_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        whole(make())


@pytest.mark.parametrize(
    ("values", "reader"),
    [
        ("edges.csv", "mg.read"),
        (scipy.sparse.eye_array(3), "mg.from_scipy"),
        (networkx.path_graph(3), "mg.from_networkx"),
        (pandas.DataFrame({"u": [1], "v": [2]}), "mg.from_table"),
        (pyarrow.table({"u": [1], "v": [2]}), "mg.from_table"),
        ({"u": [1], "v": [2]}, "mg.from_table"),
    ],
)
def test_other_kinds_of_input_are_refused_with_their_reader(values, reader):
    with pytest.raises(UsageError, match=reader):
        mg.from_edges(values)


@pytest.mark.parametrize("directed", ["no", 1, None])
def test_flag_that_is_not_a_bool_is_refused(directed):
    for make in (
        lambda: mg.from_edges([0], [1], directed=directed),
        lambda: mg.from_csr([0, 0], [], directed=directed),
    ):
        with pytest.raises(UsageError, match=f"directed {directed!r} is not True or False"):
            make()


@pytest.mark.parametrize("num_vertices", [-1, 2.0, True, "3"])
def test_wrong_number_of_vertices_is_refused(num_vertices):
    with pytest.raises(UsageError, match=f"num_vertices {num_vertices!r} is not (an integer|a count of vertices)"):
        mg.from_edges([0], [1], num_vertices=num_vertices)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "all"}, "labels 'all' is not one of 'auto', 'string', True, False"),
        ({"labels": 1}, "labels 1 is not one of"),
        ({"labels": "string"}, "labels='string' is for ids of a text, and sources are integers"),
        ({"base": -1}, "base -1 is negative"),
        ({"base": 0.5}, "base 0.5 is not an integer"),
    ],
)
def test_wrong_option_of_ids_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        mg.from_edges([0], [1], **options)


def test_ids_from_one_are_read_with_their_base():
    assert read_back(edges_table([1, 2], [2, 3], how=id_options(base=1))) == (3, [(0, 1), (1, 2)])
    with pytest.raises(InputError, match=r"edge 1: vertex 0 is below the first"):
        whole(edges_table([1, 0], [2, 3], how=id_options(base=1)))


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
        "(sources|edges)": lambda: mg.from_edges(lazy, ids),
        "targets": lambda: mg.from_edges(ids, lazy),
        "weights": lambda: mg.from_edges(ids, ids, lazy),
        "num_vertices": lambda: mg.from_edges(ids, ids, num_vertices=lazy),
        "indptr": lambda: mg.from_csr(lazy, ids),
        "indices": lambda: mg.from_csr(indptr, lazy),
        "weights of a CSR": lambda: mg.from_csr(indptr, ids, lazy),
        "matrix": lambda: mg.from_scipy(lazy),
        "table": lambda: mg.from_table(lazy),
    }
    for what, call in calls.items():
        with pytest.raises(InputError, match=rf"^{what.split()[0]}: a lazy dask\S*\.{kind} is not read.*mg.from_dask"):
            call()


def test_lazy_number_of_vertices_is_refused():
    lazy = dask.array.from_array(np.arange(3), chunks=2).max()
    with pytest.raises(InputError, match=r"^num_vertices: a lazy dask\.array\.Array is not read"):
        mg.from_edges([0], [1], num_vertices=lazy)


def test_computed_dask_results_are_accepted():
    sources, targets = dask.compute(dask.array.arange(3, chunks=2), dask.array.from_array(np.array([1, 2, 0])))
    assert as_rows(whole(edges_table(sources, targets))) == [(0, 1), (1, 2), (2, 0)]


def test_integers_beyond_int64_in_lists_keep_their_values():
    table = edges_table([2**63, 1], [1, 2**64 - 1])
    assert table.piece(0, CpuBackend(threads=1)).sources.tolist() == [2**63, 1]
    with pytest.raises(InputError, match="sources are no array"):
        edges_table([2**64, 1], [1, 2])
