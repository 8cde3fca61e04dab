"""Edges as results hold them: columns of ends, perhaps of weights, and a row for each edge where they are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.common.exact_sum import as_float
from mgraph.api.columns import Column
from mgraph.api.graph import Stored
from mgraph.api.results import Result
from mgraph.api.tables_on_ranks import EdgesOnRanks, TableOnRanks, cuts_of_rows, edge_facts
from mgraph.io.output_tables import EDGE_COLUMNS
from mgraph.rank_jobs.table_rows import ResultRows


def ends_of(stored: Stored, num_edges: int) -> tuple[Column, Column]:
    """Return the columns of sources and targets."""
    rows = (num_edges, "edge")
    return Column(stored, "sources", rows=rows), Column(stored, "targets", rows=rows)


def weights_of(stored: Stored, num_edges: int, dtype: np.dtype) -> Column:
    """Return the column of weights; integers are int64, whatever their dtype in the graph."""
    return Column(stored, "weights", dtype if dtype.kind == "f" else np.dtype(np.int64), rows=(num_edges, "edge"))


def total_of(parts: Sequence[dict], dtype: np.dtype) -> int | float:
    """Return the sum of all ranks' weights: exact, or rounded once."""
    total = sum(part["total"] for part in parts)
    return as_float(total) if dtype.kind == "f" else total


def edges_table(result: Result, num_edges: int) -> TableOnRanks:
    """Return the edges of a result as rows, under the names that edges have in files."""
    names = EDGE_COLUMNS[: len(result.columns)]
    columns = tuple(zip(names, (column.name for column in result.columns), strict=True))
    rows = ResultRows(columns, names[:2], edge_facts(result.graph))
    return EdgesOnRanks(result._stored, rows, names, num_edges, lambda: cuts_of_rows(num_edges))
