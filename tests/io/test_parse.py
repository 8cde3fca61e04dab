"""The compiled parser of lines: equal to Python's split, int and float on random lines of every syntax."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import tiers
from hypothesis import given
from hypothesis import strategies as st

from mgraph.io.line_pieces import parsed
from mgraph.io.lines import BadLine
from mgraph.io.parse import PADDING, LineSyntax
from mgraph.labels.strings import Strings

NAMES = ("source", "target", "weight", "other", "more")
BLANKS = LineSyntax(2)


def parse(syntax, content):
    """Return the rows of a text."""
    data = content.encode() if isinstance(content, str) else content
    text = np.frombuffer(data + bytes(PADDING), np.uint8)
    found = parsed(syntax, text, len(data), 0)
    columns = [end.tolist() for end in (found.sources, found.targets)]
    columns += [] if found.weights is None else [found.weights.tolist()]
    return list(zip(*columns, strict=True))


signed = st.one_of(st.integers(0, 99), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**33), st.integers(0, 10**16))
weights = st.one_of(
    st.integers(0, 300).map(str),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(0, 10**6, places=3).map(str),
    st.sampled_from(["-0", "+7", ".5", "5.", "1e3", "0.1e-7", "00000000000000000001", "123456789.123456789"]),
)

unsigned = st.one_of(st.integers(0, 99), st.integers(0, 2**64 - 1))
rows = st.one_of(st.lists(st.tuples(ids, ids, weights), max_size=40) for ids in (signed, unsigned))


@pytest.mark.ci
@tiers.examples(300)
@given(
    rows,
    st.permutations(NAMES),
    st.sampled_from([" ", "\t", ",", ";", "  ", " , "]),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.booleans(),
)
def test_numbers_equal_those_of_python(rows, order, between, end, last):
    places = {name: order.index(name) for name in NAMES}
    lines = []
    for u, v, w in rows:
        fields = {"source": u, "target": v, "weight": w, "other": "x-y", "more": "1.5"}
        lines.append(between.join(str(fields[name]) for name in order))
    content = end.join(lines) + end * last
    places = places["source"], places["target"], places["weight"]
    found = parse(LineSyntax(len(NAMES), *places, separator=between.strip(" ") or ""), content)
    whole = all(w.lstrip("+-").isdigit() for _, _, w in rows)
    # An integer -0 has no sign among floats either.
    expected = [(u, v, int(w) if whole or w == "-0" else float(w)) for u, v, w in rows]
    assert found == expected
    assert [np.float64(w).tobytes() for *_, w in found] == [np.float64(w).tobytes() for *_, w in expected]


labels = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@tiers.examples(200)
@given(st.lists(st.tuples(labels, labels), max_size=30), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))
def test_strings_equal_those_of_the_csv_module(rows, separator, end):
    lines = [separator.join('"' + name.replace('"', '""') + '"' for name in row) for row in rows]
    found = parse(LineSyntax(2, separator=separator, is_text=True), end.join(lines))
    assert found == rows
    assert found == [tuple(row) for row in csv.reader(lines, delimiter=separator)]


@pytest.mark.parametrize("syntax", [BLANKS, LineSyntax(2, separator=","), LineSyntax(3, weight=2, is_text=True)])
@tiers.examples(300)
@given(st.text(st.sampled_from('01a ,"\t\r\n#.-e\0'), max_size=60))
def test_any_text_is_parsed_or_refused(syntax, content):
    try:
        rows = parse(syntax, content)
    except BadLine as bad:
        assert 0 <= bad.at <= len(content)  # noqa: PT017  of any line
        return
    assert len(rows) <= content.count("\n") + content.count("\r") + 1


@pytest.mark.parametrize(
    ("syntax", "content", "rows"),
    [
        (LineSyntax(3, weight=2, tag="a", comments="cp"), "c x\np sp 3 2\na 1 2 5\na 2  3 7\n", [(1, 2, 5), (2, 3, 7)]),
        (LineSyntax(2, tag="e", comments="cp"), "c x\np edge 3 2\ne 1 2\n e\t2 3\n", [(1, 2), (2, 3)]),
        (LineSyntax(2, comments="c"), "c 1 2\n1 2\n", [(1, 2)]),
        (LineSyntax(4, weight=2, comments="%"), "% sym\n1 2 1 1082040961\n", [(1, 2, 1)]),
    ],
)
def test_formats_of_tagged_lines_are_parsed(syntax, content, rows):
    assert parse(syntax, content) == rows
    with pytest.raises(BadLine, match="a line begins with 'a', and this one is 'b 1 2 3'"):
        parse(LineSyntax(3, weight=2, tag="a", comments="cp"), "a 1 2 3\nb 1 2 3\n")


def test_ids_are_narrow_until_one_does_not_fit():
    text = np.frombuffer(b"0 1\n2 4294967294\n" + bytes(PADDING), np.uint8)
    assert parsed(BLANKS, text, len(text) - PADDING, 0).sources.dtype == np.uint32
    for wide in (b"4294967295 1", b"-1 1", b"1 99999999999999999"):
        text = np.frombuffer(b"0 1\n" * 100 + wide + bytes(PADDING), np.uint8)
        found = parsed(BLANKS, text, len(text) - PADDING, 0)
        assert found.sources.dtype == found.targets.dtype == np.int64
        assert [found.sources[-1], found.targets[-1]] == [int(word) for word in wide.split()]
        assert found.sources[:100].max() == 0


def test_ids_of_64_unsigned_bits_are_kept():
    large = [2**63, 2**64 - 1, 12345678901234567890]
    for before in (b"", b"7 8\n" * 50, b"4294967295 1\n"):
        lines = b"".join(b"%d %d\n" % (u, u // 3) for u in large)
        text = np.frombuffer(before + lines + b"3 1234567890123456\n" + bytes(PADDING), np.uint8)
        found = parsed(BLANKS, text, len(text) - PADDING, 0)
        assert found.sources.dtype == found.targets.dtype == np.uint64
        assert found.sources[-4:].tolist() == [*large, 3]
        assert found.targets[-4:].tolist() == [*(u // 3 for u in large), 1234567890123456]
    for wrong in ("-1 2\n9223372036854775808 1\n", "9223372036854775808 1\n1 -2\n", "-2 9223372036854775808\n"):
        with pytest.raises(BadLine, match="no integer of 64 bits holds both"):
            parse(BLANKS, wrong)
    for wrong in ("18446744073709551616 1\n", "1 -9223372036854775809\n", "1 100000000000000000000\n"):
        with pytest.raises(BadLine, match="is beyond 64 bits"):
            parse(BLANKS, wrong)
    assert parse(BLANKS, "00000000000000000000000000000000000001 2\n") == [(1, 2)]


def test_strings_keep_their_bytes():
    found = parsed(LineSyntax(2, is_text=True), np.frombuffer(b"a\xff b\n" + bytes(PADDING), np.uint8), 5, 0)
    assert isinstance(found.sources, Strings)
    assert found.sources.data.tobytes() == b"a\xff"
