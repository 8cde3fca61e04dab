"""Labels are found by ids, and ids by labels, over the ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import RANKS, run_on_ranks
from tiers import examples

from mgraph.labels.strings import Strings
from mgraph.labels.table import LabelTable, stride_of, take_strings

KINDS = {
    "string": sorted(
        {f"v{k * k % 97}" for k in range(60)} | {"a", "aa", "aaaaaaaa", "aaaaaaaaa", "é", "a\0"}, key=str.encode
    ),
    "integer": [-(2**62), -7, 0, 3, 10**9, 2**62],
    "unsigned": [0, 5, 2**63, 2**64 - 2],
}


def part_of(kind, rank, size):
    labels = KINDS[kind]
    stride = stride_of(len(labels), size)
    own = labels[rank * stride : (rank + 1) * stride]
    if kind == "string":
        return LabelTable(len(labels), "string", Strings.of(own))
    missing = {"integer": np.iinfo(np.int64).min, "unsigned": 2**64 - 1}[kind]
    return LabelTable(len(labels), "integer", np.array(own, np.uint64 if kind == "unsigned" else np.int64), missing)


def on_ranks(kind, num_ranks, ask):
    return run_on_ranks(lambda _, comm: ask(part_of(kind, comm.rank, comm.size), comm), [None] * num_ranks)


@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_label_has_its_id(kind, num_ranks):
    labels = KINDS[kind]
    for found in on_ranks(kind, num_ranks, lambda table, comm: table.ids_of(comm, labels[::-1])):
        assert found == list(range(len(labels)))[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_labels_have_no_id(kind):
    unknown = ["", "b", "v", "aaaaaaaaaa", "a\0\0"] if kind == "string" else [1, -1, 2**70, -(2**70), 2**64 - 1]
    for num_ranks in RANKS:
        assert on_ranks(kind, num_ranks, lambda table, comm: table.ids_of(comm, unknown)) == [[-1] * 5] * num_ranks
        assert on_ranks(kind, num_ranks, lambda table, comm: table.ids_of(comm, [])) == [[]] * num_ranks


@given(st.sampled_from(list(KINDS)), st.sampled_from(RANKS), st.data())
@examples(60)
def test_each_rank_gets_the_labels_of_its_ids(kind, num_ranks, data):
    labels = KINDS[kind]
    some_ids = st.lists(st.integers(-1, len(labels) - 1), max_size=30)
    asked = [data.draw(some_ids) for _ in range(num_ranks)]
    missing = "" if kind == "string" else part_of(kind, 0, 1).missing
    found = on_ranks(kind, num_ranks, lambda table, comm: table.labels_of(comm, np.array(asked[comm.rank], np.int64)))
    assert [part.tolist() for part in found] == [[missing if i < 0 else labels[i] for i in ids] for ids in asked]


def test_strings_are_taken_from_a_part_of_an_array():
    part = Strings.of(["zero", "one", "two", "three"])[1:]
    assert take_strings(part, np.array([2, -1, 0, 0])).tolist() == ["three", "", "one", "one"]
