"""Labels are stored by id, and each of any number of ranks reads those of its range."""

from __future__ import annotations

import numpy as np
import pytest
from builds import BACKEND
from on_ranks import RANKS, run_on_ranks
from stores import build_shards, load_shards, save_shards
from zoo import ZOO, random_case

from mgraph.labels.strings import Strings
from mgraph.labels.table import LabelTable
from mgraph.store import files, manifest
from mgraph.store.labels import load_labels


def texts_of(n: int) -> list[bytes]:
    return sorted(f"label {k}{'ä' * (k % 7)}".encode() for k in range(n))


def strings_of(texts: list[bytes]) -> Strings:
    """Return strings with a first offset that is not 0."""
    offsets = np.cumsum([3, *map(len, texts)]).astype(np.int64)
    return Strings(offsets, np.frombuffer(b"xyz" + b"".join(texts) + b"end", np.uint8))


def listed(strings: Strings) -> list[bytes]:
    return [strings.data[lo:hi].tobytes() for lo, hi in zip(strings.offsets, strings.offsets[1:], strict=False)]


def labelled(case, num_ranks, order, make):
    """Return shards of a case, with the part of the labels that make(lo, hi) gives for a range of ids."""
    shards = build_shards(case, num_ranks, order)
    stride = -(-case.num_vertices // num_ranks)
    for rank, shard in enumerate(shards):
        lo, hi = (min(r * stride, case.num_vertices) for r in (rank, rank + 1))
        part = make(lo, hi)
        shard.labels = LabelTable(case.num_vertices, "string" if isinstance(part, Strings) else "integer", part, -9)
    return shards


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("kind", ["int64", "uint64", "string"])
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [random_case(1, num_vertices=250), ZOO["isolated"], ZOO["no-vertex"]], ids=str)
def test_labels_are_read_back_on_any_number_of_ranks(case, order, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "CHUNK_BYTES", 64)
    monkeypatch.setattr(files, "PIECE_CHUNKS", 2)
    n = case.num_vertices
    texts = texts_of(n)
    numbers = np.arange(n).astype(kind) ** 5 if kind != "string" else None
    wanted = "string" if kind == "string" else "integer"
    make = (lambda lo, hi: strings_of(texts[lo:hi])) if numbers is None else (lambda lo, hi: numbers[lo:hi])
    for p in RANKS:
        store = save_shards(labelled(case, p, order, make), tmp_path / f"on {p}")
        assert store.missing_label == -9
        for q in RANKS:
            tables = [shard.labels for shard in load_shards(store, q)]
            assert {(table.num_vertices, table.kind, table.missing) for table in tables} == {(n, wanted, -9)}
            found = [table.part for table in tables]
            if numbers is None:
                assert [text for part in found for text in listed(part)] == texts
            else:
                assert {part.dtype for part in found} == {numbers.dtype}
                np.testing.assert_array_equal(np.concatenate(found), numbers)
            assert [len(part) for part in found] == [len(range(n)[r * -(-n // q) :][: -(-n // q)]) for r in range(q)]


def test_graph_without_labels_has_none(tmp_path):
    store = save_shards(build_shards(ZOO["path"], 2), tmp_path / "store")
    assert store.missing_label is None
    assert run_on_ranks(lambda _, comm: load_labels(store, BACKEND, comm), [None] * 2) == [None, None]
