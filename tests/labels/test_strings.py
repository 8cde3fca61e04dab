"""Strings are slices of one array of bytes."""

from __future__ import annotations

import numpy as np

from mgraph.labels.strings import Strings


def test_slices_are_views_that_compact_to_their_bytes():
    whole = Strings.of(["", "ab", "é", "c"])
    part = whole[1:3]
    assert (len(part), part.lengths.tolist(), part.tolist()) == (2, [2, 2], ["ab", "é"])
    assert part.data is whole.data
    assert part.compact().offsets.tolist() == [0, 2, 4]
    assert bytes(part.compact().data) == "abé".encode()
    assert part.nbytes == part.offsets.nbytes + part.data.nbytes
    assert (len(whole[3:1]), len(whole[9:])) == (0, 0)


def test_no_strings_are_strings():
    assert Strings.of([]).tolist() == []
    assert Strings.of_lengths(np.empty(0, np.int64), np.empty(0, np.uint8)).tolist() == []
