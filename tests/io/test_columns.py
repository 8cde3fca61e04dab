"""Tables with named columns, as text and as Parquet: the intended graph or an error, for any names of columns."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from edge_checks import as_rows, read_edges, whole
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.errors import InputError, UsageError
from mgraph.io.columns import PAIRS

FORMATS = (".csv", ".tsv", ".parquet")
SOURCES = [5, 7, 9]
TARGETS = [1, 2, 3]
WEIGHTS = [10, 20, 30]
EDGES = list(zip(SOURCES, TARGETS, strict=True))
WEIGHTED = list(zip(SOURCES, TARGETS, WEIGHTS, strict=True))


def save(path: pathlib.Path, columns: dict[str, list]) -> pathlib.Path:
    """Write a table in the format of the suffix."""
    if path.suffix == ".parquet":
        pandas.DataFrame(columns).to_parquet(path)
    else:
        pandas.DataFrame(columns).to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


def save_text(path: pathlib.Path, text: str) -> pathlib.Path:
    """Write lines of integers below a line of names, which may be repeated, in the format of the suffix."""
    if path.suffix == ".parquet":
        names, *lines = [line.split(",") for line in text.splitlines()]
        values = np.array(lines, np.int64).T
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(list(map(pyarrow.array, values)), names), path)
    else:
        path.write_text(text if path.suffix == ".csv" else text.replace(",", "\t"))
    return path


def table(names: str) -> dict[str, list]:
    """Return a table of these columns: from 5, 7, 9 to 1, 2, 3 where `>` is before a source and `<` before a target."""
    given = {">": SOURCES, "<": TARGETS}
    return {name.lstrip("<>"): given.get(name[:1], [100 + k] * 3) for k, name in enumerate(names.split(","))}


def rows(path, **options):
    return as_rows(whole(read_edges(path, **options)))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "names",
    [
        "<dst,>src",
        "<target,>source",
        "<to,>from",
        "tx_id,>from_id,<to_id",
        "timestamp,>src,<dst",
        "<dest,when,>SRC",
        ">FromNodeId,<ToNodeId",
        "<ToNodeId,>FromNodeId",
        "<target_id,>source_id",
        "<TargetID,>SourceID",
        "<id_dst,>id_src",
        "<dst id,>src id",
        "<:END_ID,>:START_ID",
        "<v,>u",
        "<v_id,>u_id",
        "<j,>i",
        "<col,>row",
        "<node2,>node1",
        "<node_2,>node_1",
        "<destination,>origin",
        "<target,source_name,>source,target_name",
        # Two columns of unknown names are the ends in their order.
        ">follower,<followee",
        ">a,<b",
        ">v,<w",
        ">uid,<vid",
        ">src,<friend",
        ">friend,<dst",
    ],
)
def test_known_names_decide_source_and_target(tmp_path, names, suffix):
    path = save(tmp_path / f"a{suffix}", table(names))
    assert rows(path, directed=True, weight=False) == EDGES


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("tx_id,user,shop", "has the columns tx_id, user, shop, and no two of them are known as the ends of edges"),
        ("a,b,weight", "has the columns a, b, weight, and no two"),
        ("source,friend,weight", "no two of them are known"),
        ("uid,vid,w", "no two of them are known"),
        ("dst,friend", "has the columns dst, friend, and no two of them are known"),
        ("friend,source", "no two of them are known"),
        ("source,weight", "no two of them are known"),
        ("source,target,src,dst", r"several columns that may be ends of edges \(source, target, src, dst\)"),
        ("u,v,source,target", r"several columns that may be ends of edges \(u, v, source, target\)"),
        ("source,target,target_id", r"several columns that may be ends of edges \(source, target, target_id\)"),
        ("Source,source,target", "has two columns called 'Source'"),
        ("head,tail", "a directed edge goes from tail to head or from head to tail"),
    ],
)
def test_ambiguous_columns_are_refused(tmp_path, names, message, suffix):
    path = save(tmp_path / f"a{suffix}", table(names))
    for weight in (None, False):
        with pytest.raises(InputError, match=message):
            read_edges(path, directed=True, weight=weight)


@pytest.mark.parametrize("suffix", FORMATS)
def test_repeated_names_of_columns_that_are_read_are_refused(tmp_path, suffix):
    for text, options, message in (
        ("source,source\n0,1\n", {}, "two columns called 'source': give each its own name"),
        ("a,a\n0,1\n", {}, "two columns called 'a': give each its own name"),
        ("u,v,weight,Weight\n0,1,2,3\n", {}, "two columns called 'weight': give each its own name"),
        ("u,v,cost,cost\n0,1,2,3\n", {"weight": "cost"}, "two columns called 'cost': give its number, or each"),
        ("a,a,b\n0,1,2\n", {"source": "a", "target": "b"}, "two columns called 'a': give its number, or each"),
    ):
        path = save_text(tmp_path / f"a{suffix}", text)
        with pytest.raises((InputError, UsageError), match=message):
            read_edges(path, **options)


@pytest.mark.parametrize("suffix", FORMATS)
def test_repeated_names_of_columns_that_nobody_reads_are_left_alone(tmp_path, suffix):
    path = save_text(tmp_path / f"a{suffix}", "x,source,x,target,x,cost\n9,0,9,1,9,5\n9,1,9,2,9,6\n")
    assert rows(path, weight=False) == [(0, 1), (1, 2)]
    assert rows(path, weight="cost") == [(0, 1, 5), (1, 2, 6)]
    assert rows(path, source=1, target=5, weight=False) == [(0, 5), (1, 6)]
    twice = save_text(tmp_path / f"b{suffix}", "u,v,weight,Weight\n0,1,2,3\n")
    assert rows(twice, weight=False) == [(0, 1)]
    assert rows(twice, weight=3) == [(0, 1, 3)]


def test_columns_of_one_name_are_chosen_by_number(tmp_path):
    text = "a,a,b\n0,1,2\n"
    assert rows(save_text(tmp_path / "a.csv", text), source=0, target=1, weight=False) == [(0, 1)]
    with pytest.raises(InputError, match="two columns called 'a': give each its own name"):
        read_edges(save_text(tmp_path / "a.parquet", text), source=0, target=1, weight=False)


@pytest.mark.parametrize("suffix", FORMATS)
def test_head_and_tail_are_ends_of_undirected_edges(tmp_path, suffix):
    for names in (">head,<tail", ">tail,<head"):
        assert {frozenset(row) for row in rows(save(tmp_path / f"a{suffix}", table(names)))} == set(
            map(frozenset, EDGES)
        )


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", ["weight", "Weight", "WEIGHTS", "w"])
def test_column_called_weight_is_the_weight(tmp_path, name, suffix):
    columns = {"time": [0] * 3, name: WEIGHTS, "dst": TARGETS, "src": SOURCES}
    path = save(tmp_path / f"a{suffix}", columns)
    assert rows(path) == WEIGHTED
    assert rows(path, weight="time") == [(*edge, 0) for edge in EDGES]
    assert rows(path, weight=1) == WEIGHTED
    assert rows(path, weight=False) == EDGES


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("names", [">src,<dst,timestamp", "timestamp,>src,<dst", ">src,<dst,a,b", ">src,<dst,weight,w"])
def test_column_of_another_name_is_not_the_weight(tmp_path, names, suffix):
    path = save(tmp_path / f"a{suffix}", table(names))
    for weight in (None, True):
        with pytest.raises(
            UsageError, match=r"columns \(.*\): say which is the weight, or that there is none: weight=NAME \(--w"
        ):
            read_edges(path, weight=weight)
    assert rows(path, weight=False) == EDGES
    for weight in ("src", "dst"):
        with pytest.raises(UsageError, match="are the ends"):
            read_edges(path, weight=weight)


def test_index_column_of_a_frame_is_ignored(tmp_path):
    frame = pandas.DataFrame({"dst": TARGETS, "src": SOURCES}, index=[70, 80, 90])
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    pandas.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv")  # an index, and "Unnamed: 0"
    for name in ("a.csv", "a.parquet", "b.csv"):
        assert rows(tmp_path / name) == EDGES
    frame.set_axis(["a", "b"], axis=1).to_csv(tmp_path / "a.csv")
    with pytest.raises(InputError, match="has the columns '', a, b, and no two of them"):
        read_edges(tmp_path / "a.csv")


def test_errors_list_some_of_many_columns(tmp_path):
    path = save(tmp_path / "a.parquet", {f"column{k}": [1] for k in range(500)})
    with pytest.raises(InputError, match=r"the columns column0, .*column11 and 488 more, and no two"):
        read_edges(path)


PAIR = st.sampled_from(PAIRS[:-1]).flatmap(lambda pair: st.tuples(*(st.sampled_from(names.split()) for names in pair)))
SPELL = st.sampled_from((str, str.upper, str.title, lambda name: f" {name}"))


@examples(60)
@given(st.data())
def test_order_of_named_columns_does_not_matter(data):
    (source, target) = data.draw(PAIR)
    spell = data.draw(SPELL)
    before, after = data.draw(st.sampled_from([("", ""), ("", "_id"), ("id_", ""), ("node_", ""), ("", "_vertex")]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    edges = {"source": rng.integers(0, 9, 20), "target": rng.integers(0, 9, 20), "weight": rng.integers(1, 5, 20)}
    columns = [(spell(before + name + after), edges[key]) for name, key in ((source, "source"), (target, "target"))]
    columns += [("Weight", edges["weight"]), ("since", rng.integers(0, 9, 20)), ("note", np.arange(20))]
    shuffled = dict(data.draw(st.permutations(columns)))
    with tempfile.TemporaryDirectory() as folder:
        expected = rows(save(pathlib.Path(folder, "canonical.csv"), edges), directed=True)
        for suffix in FORMATS:
            assert rows(save(pathlib.Path(folder, f"a{suffix}"), shuffled), directed=True) == expected


@pytest.mark.parametrize("header", ["target,foo", "foo,source", "column,x", "x,node1", "end_id,x", "x,head"])
def test_target_name_first_is_refused(tmp_path, header):
    (tmp_path / "edges.csv").write_text(f"{header}\n0,1\n")
    with pytest.raises(InputError, match="no two of them are known as the ends of edges"):
        read_edges(tmp_path / "edges.csv", directed=True)
