"""Read tables of edges in tests: all pieces, as rows of plain numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from edge_checks import BACKEND

from mgraph.edges import EdgeTable
from mgraph.io.formats import read_source
from mgraph.types import WEIGHT_DTYPES


def rows_of(table: EdgeTable) -> list[tuple]:
    """Return (source, target) or (source, target, weight) of every edge, ids from 0, sorted."""
    rows = []
    table = pickle.loads(pickle.dumps(table))
    for k in range(table.num_pieces):
        piece = table.piece(k, BACKEND)
        assert len(piece.sources) == len(piece.targets)
        columns = [piece.sources.astype(np.int64) - table.base, piece.targets.astype(np.int64) - table.base]
        assert (piece.weights is not None) == table.has_weights
        if piece.weights is not None:
            assert piece.weights.dtype in WEIGHT_DTYPES
            assert len(piece.weights) == len(piece)
            columns.append(piece.weights)
        if len(piece):
            assert str(piece.where(len(piece) - 1))
        rows += zip(*(column.tolist() for column in columns), strict=True)
    return sorted(rows)


def rows_in(path: Any, **options: Any) -> list[tuple]:
    """Return the rows of a file, as `rows_of`."""
    return rows_of(read_source(path, **options))
