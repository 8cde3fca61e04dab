"""Which rank reads which partition, and what a partition may be."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from memory_checks import read_back

from mgraph.errors import InputError
from mgraph.io.partitions import PartitionTable, deal
from mgraph.io.parts import received


@pytest.mark.parametrize(
    ("holders", "workers", "expected"),
    [
        ([["a"], ["b"], ["a"], ["b"]], ["a", "b"], [[0, 2], [1, 3]]),
        ([["a"], ["a"], ["a"]], ["b", "a"], [[], [0, 1, 2]]),
        ([["a"], ["c"], ["c"], ["c"]], ["a", "b"], [[0, 2], [1, 3]]),
        ([["a", "b"], ["a", "b"], ["a"]], ["a", "b"], [[0, 2], [1]]),
        ([[], []], ["a", "b"], [[0], [1]]),
        ([], ["a", "b"], [[], []]),
    ],
)
def test_ranks_read_what_their_workers_hold(holders, workers, expected):
    assert deal(holders, workers) == expected


def table_of(*partitions, names=("u", "v", "w")):
    return PartitionTable("dask", names, 0, max(len(partitions), 1), dict(enumerate(partitions)))


FRAME = pandas.DataFrame({"u": [0, 1], "v": [1, 2], "w": [2, 3]})


@pytest.mark.parametrize("holders", [[["a"], ["a"], ["a"]], [["a"], ["b"], ["c"]], [[], ["b"], []]])
def test_parts_of_ranks_are_the_edges_of_all_partitions(holders):
    kinds = FRAME, FRAME.to_numpy(), list(FRAME.to_numpy().T)
    table = table_of(*kinds)
    expected = read_back(table)
    assert expected == (3, sorted([(0, 1, 2), (1, 2, 3)] * 3))
    placed = PartitionTable("dask", table.names, 0, 3, table.partitions, {}, dict(enumerate(holders)))
    assert read_back([received(part) for part in placed.in_parts(["a", "b", "d"])]) == expected


def test_table_without_partitions_has_no_edges():
    assert read_back(table_of()) == (0, [])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[0], [1, 2], [1, 1]], "there are 1 dask: partition 1, u and 2 dask: partition 1, v"),
        ([["a"], ["b"], [1]], "dask: partition 1, row 0: some ids are strings, and others integers"),
        (FRAME.assign(w=[1, np.nan]), r"dask: partition 1, w\[1\] = nan is not a finite number"),
        (FRAME[["v", "u", "w"]], "dask: partition 1 has the columns v, u, w, not u, v, w"),
        (np.zeros(3), r"a partition is an array of shape \(3,\)"),
    ],
)
def test_wrong_partition_is_named(wrong, message):
    with pytest.raises(InputError, match=message):
        read_back(table_of(FRAME, wrong))


def test_released_partitions_are_dropped():
    table = table_of(FRAME)
    table.release()
    assert not table.partitions
