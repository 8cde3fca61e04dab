"""The layout of text: separators, quotes, names of columns, strings; and what is asked rather than guessed."""

from __future__ import annotations

import numpy as np
import pytest
from edge_checks import BACKEND, as_rows, read_edges, whole

from mgraph.errors import InputError, UsageError
from mgraph.io import text
from mgraph.io.formats import read_source
from mgraph.labels.strings import Strings

ENDS = {"source": 0, "target": 1}
MATRIX = "%%MatrixMarket matrix coordinate pattern general\n1 1 0\n"


def names_of(table):
    """Return the edges of a table of strings, in order."""
    edges = []
    for k in range(table.num_pieces):
        piece = table.piece(k, BACKEND)
        assert isinstance(piece.sources, Strings)
        columns = [piece.sources.tolist(), piece.targets.tolist()]
        columns += [] if piece.weights is None else [piece.weights.tolist()]
        edges += zip(*columns, strict=True)
    return edges


@pytest.mark.parametrize(
    ("name", "content", "options", "rows"),
    [
        ("a.txt", "0;1;0.5\n1;2;2\n", {"sep": ";", "weight": 2}, [(0, 1, 0.5), (1, 2, 2.0)]),
        ("a.csv", "a|b\n0|1\n", {"sep": "|"}, [(0, 1)]),
        ("a.tsv", "u\tv\tcity\n0\t1\tNew York\n1\t2\t\n", {"weight": False}, [(0, 1), (1, 2)]),
        ("a.csv", "u,v,city\n0,1,Rome\n1,2,\n", {"weight": False}, [(0, 1), (1, 2)]),
        ("a.csv", 'u,v,city\n0,1,"a, b"\n1,2,"say ""x"""\n', {"weight": False}, [(0, 1), (1, 2)]),
        ("a.csv", '"u","v"\n"0","1"\n" 2","3" \n'.replace(" 2", "2"), {}, [(0, 1), (2, 3)]),
        ("a.csv", "u,v\n 0 , 1 \n2,+3\n", {}, [(0, 1), (2, 3)]),
        ("a.csv", "\ufeffu,v\r\n0,1\r\n\r\n# c\r\n1,2\r\n", {}, [(0, 1), (1, 2)]),
        ("a.csv", "n,b,a\n9,1,0\n", {"source": "a", "target": "b", "weight": False}, [(0, 1)]),
        ("a.csv", "n,b,a\n9,1,0\n", {"source": 2, "target": 1, "weight": 0}, [(0, 1, 9)]),
        ("a.txt", "9 1 0\n8 2 0\n", {"source": 2, "target": 1, "weight": 0}, [(0, 1, 9), (0, 2, 8)]),
        ("a.txt", "0 1 7 3\n", {"weight": 3}, [(0, 1, 3)]),
        ("a.txt", "FromNodeId ToNodeId\n0 1\n", {}, [(0, 1)]),
        ("a.wel", "0 1 7\n", {}, [(0, 1, 7)]),
        ("a.wel", "0 1 7\n", {"weight": False}, [(0, 1)]),
        ("a.txt", "1 2\n3 1\n", {"base": 1}, [(0, 1), (2, 0)]),
        ("a.txt", "0\t 1\n1 \t\t 2\t\n", {}, [(0, 1), (1, 2)]),
        ("a.csv", "\n\nsource , target\n0 , 1", {}, [(0, 1)]),
        ("a.csv", "u,v\n4294967294,4294967295\n0,9223372036854775806\n", {}, None),
    ],
)
def test_lines_of_numbers_are_read(write, name, content, options, rows):
    found = whole(read_edges(write(name, content), **options))
    assert as_rows(found) == (rows or [(0, 2**63 - 2), (2**32 - 2, 2**32 - 1)])


@pytest.mark.parametrize(
    ("name", "content", "options", "rows"),
    [
        ("a.txt", "alice bob\nbob 7\n", {}, [("alice", "bob"), ("bob", "7")]),
        ("a.csv", "source,target\nAnn Lee,Bob\n", {}, [("Ann Lee", "Bob")]),
        ("a.csv", 'source,target\n"Lee, Ann","say ""x"""\n', {}, [("Lee, Ann", 'say "x"')]),
        ("a.csv", "from,to\n1,b\n", {}, [("1", "b")]),
        ("a.csv", "x,y\na,b\nc,d\n", {"source": "x", "target": "y"}, [("a", "b"), ("c", "d")]),
        ("a.csv", "a,b\nc,d\n", ENDS, [("a", "b"), ("c", "d")]),
        ("a.csv", "s,n,t,w\na,3,b,1.5\n", {"source": "s", "target": "t"}, [("a", "b", 1.5)]),
        ("a.txt", "1 2\n03 +4\n", {"labels": "string"}, [("1", "2"), ("03", "+4")]),
        ("a.tsv", "from\tto\nNew York\tRome\n", {}, [("New York", "Rome")]),
        ("a.txt", 'a "New York"\n"b" c\n', {}, [("a", "New York"), ("b", "c")]),
        ("a.csv", 'source,target\n"#x",y\n"% z",y\n', {}, [("#x", "y"), ("% z", "y")]),
        ("a.csv", "source,target\nü,ß\r\né,日本\r\n", {}, [("ü", "ß"), ("é", "日本")]),
        ("a.csv", "source,target\na;1,b;2\n", {}, [("a;1", "b;2")]),
        ("a.csv", '"a;1",b\n"b;2",c\n', ENDS, [("a;1", "b"), ("b;2", "c")]),
        ("a.txt", "a;1 b\n", {"sep": " "}, [("a;1", "b")]),
        ("a.csv", "1,2,x;y\n", {"weight": False, "labels": "string"}, [("1", "2")]),
        ("a.txt", '"a, b" c\n', {}, [("a, b", "c")]),
        ("a.tsv", "Rome, GA\tOslo\n", ENDS, [("Rome, GA", "Oslo")]),
        ("a.csv", "a,b,1,x\nc,d,2,3\n", ENDS | {"weight": 2}, [("a", "b", 1), ("c", "d", 2)]),
        ("a.csv", "a,b,x\nc,d,3\ne,f,y\n", ENDS | {"weight": False}, [("a", "b"), ("c", "d"), ("e", "f")]),
        ("a.csv", "rank,a,b\n1,c,d\n,e,f\n", {"source": 1, "target": 2, "weight": False}, [("c", "d"), ("e", "f")]),
        ("a.txt", "1_0 nan\nnan inf\n", {}, [("1_0", "nan"), ("nan", "inf")]),
    ],
)
def test_lines_of_strings_are_read(write, name, content, options, rows):
    assert names_of(read_source(write(name, content), **options)) == rows


@pytest.mark.parametrize("num_bytes", [16, 50, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_borders_of_pieces_change_nothing(write, monkeypatch, num_bytes, end):
    monkeypatch.setattr(text, "PIECE_BYTES", num_bytes)
    monkeypatch.setattr(text, "MIN_PIECE_BYTES", num_bytes)
    monkeypatch.setattr("mgraph.io.line_pieces.COUNTED_BYTES", 8)
    monkeypatch.setattr("mgraph.io.line_pieces.SLOW_TOKENS", 2)
    rng = np.random.default_rng(num_bytes)
    rows = [(f"v{u}" if u % 3 else f"a,{u}", f"w {v}", float(w)) for u, v, w in rng.integers(0, 10**9, (300, 3))]
    lines = [f'"{u}", {v},{"" if i % 4 else "+"}{w}e-1' for i, (u, v, w) in enumerate(rows)]
    lines = [line for pair in zip(lines, [""] * 300, strict=True) for line in pair]
    table = read_source(write("a.csv", end.join(["source,target,weight", *lines])))
    expected = [(u, v, float(f"{w}e-1")) for u, v, w in rows]
    assert names_of(table) == expected


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "message"),
    [
        (
            "a.txt",
            "0 1 2\n",
            {},
            UsageError,
            r"has 3 columns: say which is the weight.*: weight=2 \(--weight 2\), or weight=F",
        ),
        ("a.csv", "0,1,2\n", {}, UsageError, r"has 3 columns: say which is the weight"),
        ("a.csv", "p,q,r\n0,1,2\n", {}, InputError, r"columns p, q, r, .*: give the columns as source= and target="),
        ("a.csv", "alice,bob\ncarol,dave\n", {}, UsageError, r"\(alice, bob\) may have the names .* or be an edge"),
        ("a.txt", "0;1\n", {}, InputError, r"a line needs two vertices, .*'0;1': give sep=';' \(--sep ';'\)"),
        ("a.csv", "u,v,cost\n0,1,2\n", {}, UsageError, r"none: weight=NAME \(--weight NAME\), or weight=False \(--w"),
        ("a.csv", b"\xf3{\x05b\x06\x16:\n", {}, InputError, r"a.csv does not begin with text: is it of another format"),
        ("a.csv", "1;2;2,5\n", {}, UsageError, r"'1;2;2,5': give sep=';' \(--sep ';'\) if semicolons .* sep=','"),
        ("a.csv", "source;target;weight\n1;2;2,5\n", {}, InputError, r"give sep=';' \(--sep ';'\)"),
        ("a.csv", "a;b;2,5\n", {}, UsageError, r"give sep=';'"),
        (
            "a.txt",
            "1 2 0,5\n",
            {},
            UsageError,
            r"give sep=' ' \(--sep ' '\) if blanks separate fields, or give sep=','",
        ),
        ("a.csv", "a\tb\t2,5\n", {}, UsageError, r"give sep='\\t' .* if tabs separate"),
        ("a.txt", "New York|Rome\n", {}, UsageError, r"give sep='\|' .* if bars separate"),
        ("a.txt", "1; 2; 2\n", {}, UsageError, r"give sep=';' \(--sep ';'\) if semicolons .* sep=' '"),
        ("a.csv", "1;2;2,5\n", {"sep": ";", "weight": 2}, InputError, r"'2,5' is not a number: write decimals with a"),
        ("a.txt", "0 1\n", {"sep": "ab"}, UsageError, r"sep 'ab' is not one character"),
        ("a.txt", "0 1\n", {"sep": "1"}, UsageError, r"sep '1' is not one character"),
        ("a.txt", "0 1\n1 b\n", {}, InputError, r"a.txt:2: vertex 'b' is not a whole number: .* labels='string'"),
        ("a.csv", "u,v\n1.0,2.0\n", {}, InputError, r"a.csv:2: vertex '1.0' is not a whole number"),
        ("a.csv", "source,target\na,b\n#c,d\n", {}, InputError, r"a.csv:3: '#c,d' may be a comment or an edge"),
        ("a.csv", 'source,target\na,"b\nc",d\n', {}, InputError, r"a.csv:2: field 2 begins with a quote"),
        ("a.csv", 'source,target\na,b\na,"b"c\n', {}, InputError, r"a.csv:3: field 2 goes on after its closing quote"),
        ("a.csv", "source,target\na,\n", {}, InputError, r"a.csv:2: field 2 is empty"),
        ("a.csv", b"source,target\na,b\nc,\xff\n", {}, InputError, r"a.csv:3: b'\\xff' is not UTF-8"),
        ("a.csv", b"source,target\na,b\nc,d\0\n", {}, InputError, r"a.csv:3: there are zero bytes"),
        ("a.txt", "a b\n", {"num_vertices": 3}, InputError, r"a.txt:1: ids are strings, and num_vertices=3 says"),
        ("a.txt", "0 1\n", {"labels": "no"}, UsageError, r"labels 'no' is not one of"),
        ("a.txt", "0 1\n", {"base": -1}, UsageError, r"base -1 is negative"),
        ("a.txt", "0 1\n", {"color": 1}, UsageError, r"'color' is no option"),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate pattern general\n1 1 0\n",
            {"sep": ","},
            UsageError,
            r"sep= cannot",
        ),
    ],
)
def test_what_is_not_known_is_asked(write, name, content, options, error, message):
    path = write(name, content)
    with pytest.raises(error, match=message):
        read_rows(path, options)


def read_rows(path, options):
    """Read a file with labels as they are asked for."""
    from mgraph.comm.threads import open_threads
    from mgraph.ingest.read import read_table

    read_table(read_source(path, **options), BACKEND, open_threads(1)[0])


@pytest.mark.parametrize("content", ["source,target\n#a,#b\n#b,#c\nx,#a\n", "source target\n#a #b\nx #a\n"])
def test_edge_of_strings_that_begins_as_a_comment_is_refused_behind_names(write, content):
    with pytest.raises(InputError, match=r"edges\.csv:2: .* may be a comment or an edge"):
        whole(read_source(write("edges.csv", content)))


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("# by hand, in May\n\n#a b\nb c\n", {}),
        ("\ufeff# x y\r\n\r\n%a b\r\nb c\r\n", {}),
        ("# by hand, or so\n\n # b\nb c\n", {}),
        ("#a b w\n%\n#a b 1e3\nb c 2\n", {"weight": 2}),
        ('# x\n#\n#a,"b, c"\nb,c\n', ENDS),
    ],
)
def test_comment_before_edges_of_strings_is_refused_if_it_may_be_one(write, content, options):
    with pytest.raises(InputError, match=r"a\.txt:3: .* may be a comment or an edge"):
        read_source(write("a.txt", content), **options)


def test_comments_before_edges_of_strings_are_skipped(write):
    text = "# two strings\n# Nodes: 2 Edges: 1\n# FromNodeId ToNodeId\n#source target\n%\na b\n"
    assert names_of(read_source(write("a.txt", text))) == [("a", "b")]


@pytest.mark.parametrize("labels", ["auto", "string"])
def test_single_line_of_words_is_asked_for(write, labels):
    with pytest.raises(UsageError, match="may have the names of the columns or be an edge"):
        read_source(write("edges.csv", "alice,bob\n"), labels=labels)


def test_word_over_a_number_makes_a_line_of_names(write):
    path = write("edges.csv", "id_a,id_b,score\nalice,bob,3\n")
    assert names_of(read_source(path, source=0, target=1, weight=False)) == [("alice", "bob")]


def test_missing_column_is_named_beside_those_that_are_there(write):
    path = write("edges.csv", "a,b,score\nx,y,1\n")
    with pytest.raises(UsageError, match="no column 'c', only a, b, score"):
        read_source(path, source="a", target="c", weight=False)
