"""Lazy collections of Dask: their columns and dtypes are checked before anything is computed."""

from __future__ import annotations

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest

from mgraph.errors import InputError, UsageError
from mgraph.io.columns import NO_COLUMNS, Columns
from mgraph.io.lazy import lazy_edges
from mgraph.io.memory import IdOptions

FRAME = dask.dataframe.from_pandas(pandas.DataFrame({"u": [0, 1, 2], "v": [1, 2, 0], "cost": [0.5] * 3}), npartitions=2)
IDS = dask.array.arange(4, chunks=2)


def test_only_the_columns_of_the_edges_are_computed():
    lazy = lazy_edges(FRAME, None, None, Columns("v", "u", "cost"), IdOptions())
    assert lazy.names == ("v", "u", "cost")
    parts = dask.compute(*lazy.partitions, scheduler="sync")
    assert [list(part.columns) for part in parts] == [["v", "u", "cost"]] * 2
    assert lazy_edges(FRAME, None, None, Columns(weight=False), IdOptions()).names == ("u", "v")


@pytest.mark.parametrize(
    ("args", "columns", "error", "message"),
    [
        ((FRAME, IDS, None), NO_COLUMNS, UsageError, "targets and weights are for columns"),
        ((FRAME, None, None), NO_COLUMNS, UsageError, r"the table has 3 columns \(u, v, cost\)"),
        ((FRAME, None, None), Columns("u", "cost", False), InputError, "cost are float64, not integers"),
        ((IDS, IDS, None), Columns("u"), UsageError, "source=, target= and weight= name the columns of a frame"),
        ((IDS, None, None), NO_COLUMNS, InputError, "edges have 1 dimensions, not 2"),
        ((IDS, np.arange(4), None), NO_COLUMNS, InputError, "targets: ndarray is no frame, array or series of Dask"),
        ((IDS, IDS * 0.5, None), NO_COLUMNS, InputError, "targets are float64, not integers"),
        ((IDS, IDS, IDS * 1j), NO_COLUMNS, InputError, "weights are complex128"),
        ((IDS, dask.array.arange(7, chunks=2), None), NO_COLUMNS, InputError, "sources, targets have 2, 4 partitions"),
        ((dask.array.ones((4, 3), dtype=int), None, None), NO_COLUMNS, InputError, "edges have 3 columns"),
        ((dask.array.ones((4, 2)), None, None), NO_COLUMNS, InputError, "sources are float64"),
        ((dask.bag.from_sequence([1]), None, None), NO_COLUMNS, InputError, "edges: Bag is no frame, array or series"),
        ((dask.delayed(1), None, None), NO_COLUMNS, InputError, "edges: Delayed.* is no frame, array or series"),
        ((5, None, None), NO_COLUMNS, InputError, "edges: int is no frame, array or series of Dask: mg.from_edges"),
    ],
)
def test_wrong_collection_is_refused(args, columns, error, message):
    with pytest.raises(error, match=message):
        lazy_edges(*args, columns, IdOptions())
