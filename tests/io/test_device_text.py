"""Text that is parsed in device memory gives the edges, or the error, that the parser on the host gives."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.errors import InputError
from mgraph.io import device_text
from mgraph.io.columns import Columns
from mgraph.io.device_text import parsed_on_device
from mgraph.io.line_pieces import LineEdges, parsed
from mgraph.io.lines import BadLine
from mgraph.io.parse import PADDING, LineSyntax
from mgraph.io.text import read_text

FIELDS = st.one_of(
    st.integers(0, 99).map(str),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(0, 1e6).map(repr),
    st.sampled_from(["", '"7"', "x", "9007199254740993", "1e400", "18446744073709551616", "0.1e-5"]),
)


def on_host(edges: LineEdges) -> list[np.ndarray | None]:
    """Return sources, targets and weights, ids as int64."""
    assert edges.beyond is None
    ends = [np.asarray(ids, np.int64) for ids in (edges.sources, edges.targets)]
    return [*ends, None if edges.weights is None else np.asarray(edges.weights)]


def outcome(parse) -> object:
    """Return what a parser finds, or its error."""
    try:
        return parse()
    except BadLine as bad:
        return bad.at, bad.problem


@given(data=st.data())
@examples(60)
def test_device_and_host_parse_alike(data):
    separator = data.draw(st.sampled_from(["", ",", "\t", ";"]))
    weighted = data.draw(st.booleans())
    syntax = LineSyntax(
        2 + weighted, weight=2 if weighted else -1, separator=separator, floats=data.draw(st.booleans())
    )
    fields = st.integers(0, 99).map(str) if data.draw(st.booleans()) else FIELDS
    line = st.lists(fields, min_size=2, max_size=3).map((separator or " ").join)
    lines = data.draw(st.lists(line, max_size=12))
    ends = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = (data.draw(st.sampled_from(["", "# comment\n"])) + ends.join(lines)).encode()
    padded = np.zeros(len(text) + PADDING, np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    backend = EmulatedBackend(seed=data.draw(st.integers(0, 99)))
    found = outcome(lambda: parsed_on_device(backend, syntax, padded[: len(text)], 10))
    if found is None:
        return
    expected = outcome(lambda: parsed(syntax, padded, len(text), 10))
    if not isinstance(found, LineEdges):
        assert found == expected
        return
    assert isinstance(expected, LineEdges)
    for ours, theirs in zip(on_host(found), on_host(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_plain_text_is_parsed_on_the_device(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\n" + "".join(f"{i},{i + 1},{i / 8}\n" for i in range(50)))
    monkeypatch.setattr("mgraph.io.text.parsed", None)
    piece = read_text(path).piece(0, EmulatedBackend(seed=1))
    assert len(piece) == 50
    np.testing.assert_array_equal(np.asarray(piece.weights), np.arange(50) / 8)


def test_lines_that_are_not_plain_keep_their_place(tmp_path: pathlib.Path):
    path = tmp_path / "edges.csv"
    path.write_text('source,target,weight\n1,2,3\n"4",5,6\n# comment\n7,8,"9"\n')
    piece = read_text(path).piece(0, EmulatedBackend(seed=1))
    assert np.asarray(piece.sources).tolist() == [1, 4, 7]
    assert np.asarray(piece.weights).tolist() == [3, 6, 9]
    assert np.asarray(piece.weights).dtype == np.int64


def test_error_on_the_device_names_file_and_line(tmp_path: pathlib.Path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n3 4\n5 x\n")
    with pytest.raises(InputError, match=r"edges\.txt:3: vertex 'x' is not a whole number"):
        read_text(path).piece(0, EmulatedBackend(seed=1))


def test_text_with_many_odd_lines_is_left_to_the_host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device_text, "MAX_ODD_LINES", 1)
    path = tmp_path / "edges.csv"
    path.write_text('"1",2\n3,"4"\n5,6\n')
    piece = read_text(path, columns=Columns(weight=False)).piece(0, EmulatedBackend(seed=1))
    assert np.asarray(piece.targets).tolist() == [2, 4, 6]
