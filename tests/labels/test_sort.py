"""Labels that differ late, only in length or not at all are in order, and take time in proportion to their bytes."""

from __future__ import annotations

import random
import time

import pytest
from on_ranks import run_on_ranks

from mgraph.backends.cpu import CpuBackend
from mgraph.labels import sort
from mgraph.labels.reader import LabelReader
from mgraph.labels.strings import Strings

BACKEND = CpuBackend(2)
LABELS = {
    "each a prefix of the next": ["a" * k for k in range(1, 1500)],
    "differ after a growing prefix": ["a" * k + "b" for k in range(1500)],
    "differ in zero bytes at the end": ["a" + "\0" * k for k in range(1500)],
    "zero bytes alone": ["\0" * k for k in range(1, 1500)],
    "64 KiB, differ at the end": ["p" * 65_500 + str(k) for k in range(60)],
    "longer than a sample of them": ["p" * 300 + f"{k:08}" for k in range(5000)],
    "all equal": ["x"] * 5000,
}


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch):
    """Sort few labels in several buckets, with gaps where ranks have had the same."""
    monkeypatch.setattr(sort, "BUCKET_LABELS", 256)


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("kind", LABELS)
def test_hard_labels_are_sorted(kind, num_ranks):
    given = 2 * LABELS[kind]
    random.Random(1).shuffle(given)
    pieces = [given[k::5] for k in range(5)]

    def program(_, comm):
        labels = LabelReader(BACKEND, comm)
        codes = {k: labels.add(Strings.of(pieces[k])) for k in range(comm.rank, 5, comm.size)}
        table, id_of_code = labels.finish()
        return table.part.tolist(), {k: id_of_code[found].tolist() for k, found in codes.items()}

    began = time.monotonic()
    ranks = run_on_ranks(program, [None] * num_ranks)
    seconds = time.monotonic() - began
    in_order = sorted(set(given))  # of ASCII: the order of bytes
    assert [label for part, _ in ranks for label in part] == in_order
    place = {label: i for i, label in enumerate(in_order)}
    for _, ids in ranks:
        assert ids == {k: [place[label] for label in pieces[k]] for k in ids}
    # 0.1 s on an idle machine, with compilation some seconds; comparing all labels with each other would take minutes.
    assert seconds < 30
