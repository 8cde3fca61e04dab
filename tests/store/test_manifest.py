"""A manifest is read back as it was written; what is not one, or is of another kind, is refused by name."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest
from stores import build_shards, save_shards
from zoo import ZOO

from mgraph.errors import InputError, UsageError
from mgraph.store import manifest
from mgraph.store.manifest import MANIFEST, is_store, open_store


@pytest.fixture
def store(tmp_path):
    return save_shards(build_shards(ZOO["isolated"], 2), tmp_path / "store", "a name")


def write(store, **changes):
    """Write a manifest with changed values and a right checksum."""
    body = json.loads((store.path / MANIFEST).read_bytes()) | changes
    body.pop("crc32")
    lines = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in body.items() if value is not ...]
    text = "".join(["{\n", *lines]).encode()
    (store.path / MANIFEST).write_bytes(text + manifest._last_line(text) + b"\n")


def test_manifest_has_the_facts_of_the_graph(store):
    shards = build_shards(ZOO["isolated"], 2)
    assert store.info == shards[0].info
    assert (store.name, store.partition) == ("a name", shards[0].partition)
    assert (store.num_vertices, store.directed, store.weight_dtype) == (9, False, "uint8")
    assert (store.num_input_edges, store.expected_connected(), store.max_weight) == (4, 5, 4)
    assert open_store(store.path, "another").name == "another"
    assert open_store(str(store.path)).path == store.path


def test_facts_survive_json_to_the_bit(tmp_path):
    for name in ("rounding", "large-weights", "unsigned-weights", "no-vertex"):
        shards = build_shards(ZOO[name], 1)
        info = save_shards(shards, tmp_path / name).info
        assert repr(info) == repr(shards[0].info)


def test_what_is_no_store_is_refused(tmp_path, store):
    with pytest.raises(InputError, match=r"none: no such folder$"):
        open_store(tmp_path / "none")
    with pytest.raises(InputError, match=r"no saved graph: it has no mgraph\.json$"):
        open_store(tmp_path)
    with pytest.raises(InputError, match=r"mgraph\.json cannot be read: Not a directory"):
        open_store(store.path / MANIFEST)
    for wrong in (None, 3, b"x"):
        with pytest.raises(UsageError, match="is not the name of a folder"):
            open_store(wrong)
    assert [is_store(path) for path in (tmp_path, store.path, store.path / MANIFEST)] == [False, True, False]


def test_damaged_manifest_is_refused(store):
    file = store.path / MANIFEST
    whole = file.read_bytes()
    for text in (b"", b"{}", b"[1]", b"\xff", whole[:-9], whole[:100], b"[" * 100_000):
        file.write_bytes(text)
        with pytest.raises(InputError, match=r"mgraph\.json is damaged, or no manifest"):
            open_store(store.path)
    file.write_bytes(whole.replace(b'"num_edges": 4', b'"num_edges": 5'))
    with pytest.raises(InputError, match=r"mgraph\.json is damaged: its checksum is not that of its text"):
        open_store(store.path)


def test_newer_version_other_format_and_other_byte_order_are_refused(store):
    write(store, version=2)
    with pytest.raises(InputError, match="is of version 2 of the format, and this mgraph reads up to 1: use a newer"):
        open_store(store.path)
    write(store, version=1, format="something else")
    with pytest.raises(InputError, match="is of the format 'something else', not 'mgraph-graph'"):
        open_store(store.path)
    write(store, format="mgraph-graph", byte_order="big" if sys.byteorder == "little" else "little")
    with pytest.raises(InputError, match="byte order, and this machine has"):
        open_store(store.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"graph": ...},
        {"graph": {"num_vertices": 3}},
        {"graph": []},
        {"num_positions": 3},
        {"num_positions": "many"},
        {"num_positions": 10**30},
        {"dtypes": {"lengths": "uint32"}},
        {"dtypes": {"lengths": "what"}},
        {"parts": []},
        {"parts": [{}]},
        {"parts": None},
    ],
    ids=str,
)
def test_contradictions_are_refused(store, changes):
    write(store, **changes)
    with pytest.raises(InputError, match=r"mgraph\.json is no manifest of a saved graph: "):
        open_store(store.path)


def test_counts_that_contradict_the_graph_are_refused(store):
    body = json.loads((store.path / MANIFEST).read_bytes())
    for array in ("lengths", "targets", "weights", "users", "positions"):
        parts = json.loads(json.dumps(body["parts"]))
        parts[1]["arrays"][array]["count"] += 1
        write(store, parts=parts)
        with pytest.raises(InputError, match="is no manifest of a saved graph"):
            open_store(store.path)


def test_home_folder_is_expanded(store, monkeypatch):
    monkeypatch.setenv("HOME", str(store.path.parent))
    assert open_store(pathlib.Path("~/store")).path == store.path
