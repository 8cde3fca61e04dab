"""Text edge lists and MatrixMarket: every separator, every chunk, exact numbers, and errors with file:line."""

from __future__ import annotations

import gzip
import pickle
import re

import numpy as np
import pytest
from edge_checks import as_rows, assert_chunks_agree, read_edges, whole

from mgraph.errors import InputError, UsageError
from mgraph.io import text
from mgraph.io.formats import read_source
from mgraph.io.lines import MAX_LINE_BYTES


def cut(monkeypatch, num_bytes):
    """Divide text into pieces of so many bytes."""
    monkeypatch.setattr(text, "PIECE_BYTES", num_bytes)
    monkeypatch.setattr(text, "MIN_PIECE_BYTES", num_bytes)


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.el", "0 1\n1 2\n", [(0, 1), (1, 2)]),
        ("a.el", "0 1\n1 2", [(0, 1), (1, 2)]),
        ("a.txt", "# from\tto\n0\t1\r\n\r\n  % more\n 1   2 \n", [(0, 1), (1, 2)]),
        ("a.wel", "0 1 7\n1 0 300\n", [(0, 1, 7), (1, 0, 300)]),
        ("a.csv", "0,1\n1,2\n", [(0, 1), (1, 2)]),
        ("a.csv", "source,target,weight\n0,1,0.5\n1,2,-1e-3\n", [(0, 1, 0.5), (1, 2, -0.001)]),
        ("a.csv", '# made by hand\n"source", "target"\n0 , 1\n1,2\n', [(0, 1), (1, 2)]),
        ("a.csv", "\ufeffu,v\n3,4\n", [(3, 4)]),
        ("a.tsv", "u\tv\tw\n0\t1\t2\n", [(0, 1, 2)]),
        ("a.txt", "# from\r0 1\r\r 1 2 \r", [(0, 1), (1, 2)]),
        ("a.txt", "0 1\r1 2", [(0, 1), (1, 2)]),
        ("a.csv", "source,target\r0,1\r1,2\r", [(0, 1), (1, 2)]),
        ("a.csv", "# c\r\nsource,target\r\n0,1\r\n\r\n1,2\r\n", [(0, 1), (1, 2)]),
        ("a.txt", "0 1\r2 3\n4 5\r\r\n", [(0, 1), (2, 3), (4, 5)]),
        pytest.param("a.el", f"# {'5 6 7 ' * 30_000}\n1 2\n", [(1, 2)], id="a comment of 180 kB"),
    ],
)
def test_text_files_are_read(write, name, content, rows):
    source = read_edges(write(name, content))
    assert as_rows(whole(source)) == rows
    assert source.num_input_edges == len(rows)
    assert source.num_vertices == max(max(row[:2]) for row in rows) + 1
    assert (source.name, source.directed) == ("a", False)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [16, 1000, 16 << 20])
def test_edges_do_not_depend_on_the_number_of_chunks(write, monkeypatch, block, end):
    cut(monkeypatch, block)
    monkeypatch.setattr("mgraph.io.lines.SEEK_BYTES", 7)
    rng = np.random.default_rng(block)
    lines = ["source,target,weight"]
    for u, v, w in zip(rng.integers(0, 10**6, 500), rng.integers(0, 50, 500), rng.random(500), strict=True):
        lines.append(
            "# a comment, or" if u % 9 == 0 else "" if u % 7 == 0 else f"{u},{v},{w!r}".replace("np.float64", "")
        )
    lines = [line.replace("(", "").replace(")", "") for line in lines]
    source = read_source(write("a.csv", end.join(lines)))
    assert_chunks_agree(source)
    expected = [line.split(",") for line in lines[1:] if line and line[0] != "#"]
    assert as_rows(whole(source, 5)) == sorted((int(u), int(v), float(w)) for u, v, w in expected)
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        (["1", "255"], "uint8"),
        (["0", "256"], "uint16"),
        (["65536"], "uint32"),
        (["4294967296"], "int64"),
        (["123456789012345678"], "int64"),
        (["9223372036854775807", "-9223372036854775808", "-0"], "int64"),
        (["9223372036854775808", "0.5"], "float64"),
        (["-1", "5"], "int32"),
        (["-2147483649"], "int64"),
        (["1", "2.5"], "float64"),
        (["1", "2.0"], "float64"),
        (["1e3"], "float64"),
        (["1e0", "12345678901234567890"], "float64"),
        (["123456789012345678901234567890.0"], "float64"),
        (["000000000000000000000000000000001"], "uint8"),
    ],
)
def test_weights_are_integers_or_floats_as_written(write, weights, dtype):
    source = read_edges(write("a.wel", "".join(f"0 1 {weight}\n" for weight in weights)))
    assert source.weight_dtype == dtype
    assert whole(source).weights.tolist() == [float(w) if dtype == "float64" else int(w) for w in weights]


@pytest.mark.parametrize(
    "weight", ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "+99999999999999999999"]
)
def test_integer_weights_beyond_64_bits_are_refused(write, monkeypatch, weight):
    cut(monkeypatch, 64)
    lines = ["0 1 5\n"] * 100
    lines[70] = lines[80] = f"0 1 {weight}\n"
    match = rf"a\.wel:71: weight {re.escape(weight)} is beyond 64 signed bits, and no weight of the file is a float"
    with pytest.raises(InputError, match=match):
        read_edges(write("a.wel", "".join(lines)))
    # In a column of floats it is the nearest float.
    for place in (0, 99):
        lines[place] = "0 1 0.5\n"
        source = read_edges(write("a.wel", "".join(lines)))
        assert source.weight_dtype == np.float64
        assert whole(source).weights[70] == float(weight)
    with pytest.raises(InputError, match=r"a\.mtx:4: weight .* is beyond 64 signed bits"):
        read_edges(write("a.mtx", MATRIX.format("integer", "general", f"2 2 1\n1 2 {weight}")))
    source = read_edges(write("a.mtx", MATRIX.format("real", "general", f"2 2 1\n1 2 {weight}")))
    assert whole(source).weights.tolist() == [float(weight)]


def test_floats_equal_those_of_python_to_the_bit(write):
    rng = np.random.default_rng(5)
    numbers = np.concatenate((rng.random(3000), np.exp(rng.normal(0, 100, 3000)), -np.exp(rng.normal(0, 20, 1000))))
    tokens = [repr(float(x)) for x in numbers]
    tokens += [f"{x:.{digits}g}" for digits in range(1, 25) for x in np.exp(rng.normal(0, 15, 100))]
    tokens += [
        "0",
        "-0.0",
        "1.",
        ".5",
        "007",
        "+3",
        "1E5",
        "1e-400",
        "9007199254740993",
        "5e-324",
        "1.7976931348623157e308",
    ]
    # Halfway between two doubles.
    tokens += [f"{x}.5" for x in rng.integers(2**52, 2**53, 200).tolist()]
    tokens += [str(2 * x + 1) for x in rng.integers(2**52, 2**53, 200).tolist()]
    source = read_edges(write("a.wel", "".join(f"0 0 {token}\n" for token in tokens)))
    found = whole(source).weights
    expected = np.array([float(token) for token in tokens])
    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))


def test_weight_column_is_chosen_by_name_or_number(write):
    path = write("a.csv", "u,v,time,cost,weight\n0,1,10,20,30\n")
    assert as_rows(whole(read_edges(path))) == [(0, 1, 30)]
    assert as_rows(whole(read_edges(path, weight="cost"))) == [(0, 1, 20)]
    assert as_rows(whole(read_edges(path, weight=2))) == [(0, 1, 10)]
    assert as_rows(whole(read_edges(path, weight=False))) == [(0, 1)]
    # A column that is not read need not contain numbers.
    assert as_rows(whole(read_edges(write("b.csv", "u,v,w,name\n0,1,2,rail\n")))) == [(0, 1, 2)]


def test_num_vertices_and_direction_may_be_given(write):
    source = read_edges(write("a.el", "0 1\n"), num_vertices=5 * 10**9, directed=True)
    assert (source.num_vertices, source.directed) == (5 * 10**9, True)
    assert whole(source).sources.dtype == np.int64
    assert read_edges(write("b.el", "0 3999999999999999999\n")).num_vertices == 4 * 10**18


def test_gzip_files_are_read(write):
    content = "".join(f"{i} {i + 1} {i % 5}\n" for i in range(1000)).encode()
    source = read_edges(write("a.wel.gz", gzip.compress(content)))
    assert source.name == "a"
    assert_chunks_agree(source)
    assert len(whole(source)) == 1000
    with pytest.raises(InputError, match=r"b.el.gz is damaged or truncated"):
        read_edges(write("b.el.gz", gzip.compress(content)[:-20]))


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("0 1\n0 -3\n", 2, "vertex -3 is negative: vertices are numbered from 0"),
        ("# c\n\n0 1\n0 x\n", 4, "vertex 'x' is not a whole number"),
        ("0 1\n0 1.0\n", 2, "vertex '1.0' is not a whole number"),
        ("0 1\n0 99999999999999999999\n", 2, "vertex '99999999999999999999' is beyond 64 bits: read ids as text"),
        ("0 1\n0 1 2\n", 2, "3 fields where the first line has 2"),
        ("0 1 2\n0 1\n", 2, "2 fields where the first line has 3"),
        ("0,1\n0,\n", 2, "field 2 is empty"),
        ("0,1\n,1\n", 2, "field 1 is empty"),
        ("0 1 2\n0 1 nan\n", 2, "weight 'nan' is not a finite number"),
        ("0 1 2\n0 1 inf\n", 2, "weight 'inf' is not a finite number"),
        ("0 1 2\n0 1 1e999\n", 2, "weight '1e999' is not a finite number"),
        ("0 1 2\n0 1 two\n", 2, "weight 'two' is not a number"),
        ("0 1 2\n0 1 1_0\n", 2, "weight '1_0' is not a number"),
        ("0 1 2\n0 1 1.2.3\n", 2, "weight '1.2.3' is not a number"),
        ("0 1 2\n0 1 1e\n", 2, "weight '1e' is not a number"),
        ("0 1\n1 2\x0c3 4\n", 2, "is not a whole number"),
        ("1.0 2.0\n", 1, "vertex '1.0' is not a whole number: if ids are text, say labels='string'"),
        ('0 1\n0 "1\n', 2, "field 2 begins with a quote that does not end on the line"),
        ('0 1\n0 "1"2\n', 2, "field 2 goes on after its closing quote"),
    ],
)
def test_error_names_the_wrong_line(write, content, line, message):
    path = write("a.wel", content)
    with pytest.raises(InputError, match=message) as caught:
        read_edges(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_first_wrong_line_of_many_blocks_is_reported(write, monkeypatch, end):
    cut(monkeypatch, 64)
    lines = ["1 2"] * 300
    lines[200] = "1 b"
    lines[250] = "1 c"
    with pytest.raises(InputError, match=r"a.el:201: vertex 'b'"):
        read_edges(write("a.el", end.join(lines)))


@pytest.mark.covering
@pytest.mark.parametrize("block", [1 << 16, 16 << 20])
@pytest.mark.parametrize("fill", ["#", " ", "1", "0 1 "])
@pytest.mark.parametrize("end", ["\r", ""])
def test_line_length_is_bounded(write, monkeypatch, block, fill, end):
    cut(monkeypatch, block)
    before = "0 1\n" * 100_000
    long = (fill * MAX_LINE_BYTES)[: MAX_LINE_BYTES - 1]
    path = write("a.el", f"{before}{long}\n1 2\n")
    if fill[0] in "# ":
        assert len(whole(read_edges(path))) == 100_001
    with pytest.raises(InputError, match=r"a\.el:100001: the line is longer than 1 MiB: is it text, an edge a line\?$"):
        read_edges(write("a.el", f"{before}{long}{long}{end}1 2\n"))
    with pytest.raises(InputError, match=r"a\.el:1: the line is longer than 1 MiB"):
        read_edges(write("a.el", f"{long}{long}{end}1 2\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1 2\n".encode("utf-16"), "a.txt is UTF-16 text: convert it to UTF-8"),
        ("0 1\n1 2\n".encode("utf-16-be"), "a.txt:1: there are zero bytes, which are no text"),
        (b"0 1\n1 2\n" + bytes(1000), "a.txt:3: there are zero bytes, which are no text"),
        (b"0 1\n" * 100_000 + bytes(1000), "a.txt:100001: there are zero bytes, which are no text"),
    ],
)
def test_error_names_the_bytes_that_are_not_text(write, content, message):
    with pytest.raises(InputError, match=message):
        read_edges(write("a.txt", content))


def test_id_beyond_the_given_num_vertices_is_refused(write):
    with pytest.raises(InputError, match=r"a.el:2: vertex 5 is not in 0..4"):
        read_edges(write("a.el", "0 4\n5 0\n"), num_vertices=5)


def test_file_that_has_shrunk_is_refused(write):
    path = write("a.el", "0 1\n" * 100)
    source = read_source(path)
    path.write_text("0 9\n" * 99)
    with pytest.raises(InputError, match=r"a.el ended at byte 396 while being read: it has changed"):
        whole(source)


@pytest.mark.parametrize(
    ("content", "weight", "message"),
    [
        ("0 1 2 3\n", None, "has 4 columns: say which is the weight"),
        ("0 1\n", True, "has 2 columns: say which is the weight"),
        ("0 1 2\n", "cost", "has no column 'cost', and the first line names none"),
        ("u,v,w\n0,1,2\n", "cost", "has no column 'cost', only u, v, w"),
        ("0 1 2\n", 3, "no weight in column 3"),
        ("0 1 2\n", 1, "no weight in column 1"),
        ("0 1 2\n", "²", "has no column '²'"),
        ("0 1 2\n", "9" * 5000, "has no column '999"),
        ("0 1 2\n", 2.5, "weight 2.5 is neither the name nor the number of a column"),
    ],
)
def test_wrong_weight_column_is_refused(write, content, weight, message):
    with pytest.raises(UsageError, match=message):
        read_edges(write("a.csv", content), weight=weight)


def test_single_column_is_refused(write):
    with pytest.raises(InputError, match="a line needs two vertices"):
        read_edges(write("a.txt", "5\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source,target,weight\n0,1\n", r"3 columns in the line of names \(source, target, weight\), and 2 fields in"),
        ("source,target\n1,0,1\n", r"2 columns in the line of names \(source, target\), and 3 fields in the next"),
    ],
)
def test_header_of_another_length_is_refused(write, content, message):
    with pytest.raises(InputError, match=message):
        read_edges(write("a.csv", content))


def test_column_names_between_tabs_may_contain_blanks(write):
    source = read_edges(write("a.tsv", "to node\tfrom node\ttravel time\n0\t1\t2\n"), weight="travel time")
    assert as_rows(whole(source)) == [(1, 0, 2)]


MATRIX = "%%MatrixMarket matrix coordinate {} {}\n% a comment\n{}\n"


@pytest.mark.parametrize(
    ("field", "symmetry", "body", "rows", "dtype"),
    [
        ("pattern", "general", "3 3 2\n1 2\n3 1", [(0, 1), (2, 0)], None),
        ("real", "symmetric", "4 4 2\n2 1 0.5\n3 1 2", [(1, 0, 0.5), (2, 0, 2.0)], "float64"),
        ("integer", "general", "3 3 1\n1 3 300", [(0, 2, 300)], "uint16"),
        ("real", "general", "3 3 0", [], "float64"),
    ],
)
def test_mtx_files_are_read(write, field, symmetry, body, rows, dtype):
    source = read_edges(write("a.mtx", MATRIX.format(field, symmetry, body)))
    assert as_rows(whole(source)) == rows
    assert source.directed == (symmetry == "general")
    assert source.num_vertices == int(body.split()[0])
    assert source.weight_dtype == (None if dtype is None else np.dtype(dtype))
    assert_chunks_agree(source)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MATRIX.format("real", "hermitian", "2 2 0"), "is hermitian: only general, symmetric, skew-symmetric"),
        (MATRIX.format("complex", "general", "2 2 0"), "has complex values"),
        (MATRIX.format("real", "general", "2 3 0"), "is 2 x 3: an adjacency matrix is square"),
        (MATRIX.format("real", "general", "2 2"), "no line of rows, columns and entries, but '2 2'"),
        (MATRIX.format("real", "general", "² ² 0"), "no line of rows, columns and entries, but '² ² 0'"),
        (MATRIX.format("real", "general", f"2 2 {'9' * 5000}"), "no line of rows, columns and entries"),
        (MATRIX.format("real", "general", "2 2 2\n1 1 1"), "has 1 edge where its header says 2: truncated?"),
        (
            MATRIX.format("real", "general", "2 2 1\n0 1 1"),
            r"a.mtx:4: vertex 0 is below the first: ",
        ),
        (MATRIX.format("real", "general", "2 2 1\n1 3 1"), r"a.mtx:4: vertex 3 is not in 1..2"),
        (MATRIX.format("real", "general", "2 2 1\n1 2"), r"a.mtx:4: 2 fields where the first line has 3"),
        ("%%MatrixMarket matrix array real general\n2 2\n", "is a dense array: only coordinate is a graph"),
        ("%%MatrixMarket\n", "does not begin with %%MatrixMarket and four words"),
        ("2 2 1\n1 2 3\n", "does not begin with %%MatrixMarket"),
    ],
)
def test_wrong_mtx_files_are_refused(write, content, message):
    with pytest.raises(InputError, match=message):
        read_edges(write("a.mtx", content))


def test_mtx_is_read_with_any_line_ends(write):
    content = "\ufeff" + MATRIX.format("integer", "general", "\n % more\n3 3 2\n1 3 300\n2 1 4\n")
    for end in ("\n", "\r\n", "\r"):
        source = read_edges(write("a.mtx", content.replace("\n", end)))
        assert as_rows(whole(source)) == [(0, 2, 300), (1, 0, 4)]
        assert source.num_vertices == 3


@pytest.mark.parametrize("fill", ["%", " ", "1"])
def test_mtx_with_a_long_line_is_refused(write, fill):
    for before, line in (
        (MATRIX.format("pattern", "general", ""), 3),
        (MATRIX.format("pattern", "general", "3 3 1"), 4),
    ):
        with pytest.raises(InputError, match=rf"a\.mtx:{line}: the line is longer than 1 MiB"):
            read_edges(write("a.mtx", before.rstrip("\n") + "\n" + fill * 3 * MAX_LINE_BYTES))


def test_mtx_refuses_missing_directions_and_weights(write):
    path = write("a.mtx", MATRIX.format("pattern", "symmetric", "2 2 1\n2 1"))
    for options in ({"directed": True}, {"weight": True}, {"weight": "w"}, {"weight": 1}, {"num_vertices": 7}):
        with pytest.raises(UsageError):
            read_edges(path, **options)
