"""The edges of a graph, back out of the ranks that store it."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored
from mgraph.api.tables_on_ranks import EdgesOnRanks, TableOnRanks, cuts_of_rows, edge_facts
from mgraph.errors import refuse_pickle
from mgraph.formatting import counted
from mgraph.io.output_tables import EDGE_COLUMNS, Table
from mgraph.rank_jobs.table_rows import GraphEdges, ResultRows, number_vertices, sort_vertices

if TYPE_CHECKING:
    import dask.dataframe
    import pandas


class Edges:
    """Hold the edges of a graph: the columns source, target and, if it has weights, weight.

    They are sorted by source, then target, the same for any number of ranks. An undirected edge is there once, its
    smaller end the source. There are no self-loops or parallel edges: the build dropped them.

    The ranks make them from their rows, a range of sources at a time: in memory are a batch of about 4 million edges
    (those of n / 65,536 vertices at least) and 16 bytes for each vertex.
    """

    __reduce__ = refuse_pickle("take them with to_numpy(), or write them with write(path)")

    def __init__(self, g: Graph) -> None:
        g._require_open()
        g._require_rows("edges")
        self._graph = g

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return EDGE_COLUMNS if self._graph.info.weight_dtype else EDGE_COLUMNS[:2]

    def __len__(self) -> int:
        return self._graph.num_edges

    def to_numpy(self) -> tuple[np.ndarray, ...]:
        """Return the columns, as `mg.from_edges` takes them.

        >>> mg.from_edges([1, 0], [2, 1], [5, 7]).edges.to_numpy()
        (array([0, 1]), array([1, 2]), array([7, 5], dtype=uint8))
        """
        return tuple(self._table.to_arrays().values())

    def to_pandas(self) -> pandas.DataFrame:
        """Return all edges as a data frame."""
        return self._table.to_pandas()

    def to_dask_dataframe(self) -> dask.dataframe.DataFrame:
        """Return all edges as a Dask data frame, one partition for each rank, a copy on its worker."""
        return self._table.to_dask_dataframe()

    def write(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write all edges to a file, or a folder of Parquet parts, as `Result.write` does.

        Files may also end in .txt, .el, .wel, .mtx, .gr or .csr.
        """
        self._table.write(path, overwrite=overwrite)

    def _as_table(self) -> Table:
        """Return the edges as a table to write, in batches."""
        return self._table.table()

    def _numbered(self, *, both: bool = False) -> Table:
        """Return the edges as a table to write, between vertices 0..n-1 and not their labels.

        With `both`, undirected edges are there in both directions.
        """
        return _table(self._graph, self.columns, both=both, numbered=True).table()

    @cached_property
    def _table(self) -> TableOnRanks:
        return _table(self._graph, self.columns, both=False, numbered=False)

    def __repr__(self) -> str:
        g = self._graph
        what = "closed" if g.closed else counted(len(self), "arc" if g.info.directed else "edge")
        return f"<Edges of {g.name}: {what}>"


def numbered_vertices(g: Graph) -> TableOnRanks:
    """Return a row for each vertex: its number, 0..n-1, and its label."""
    g._require_open()
    stored = Stored(g)
    g._run(number_vertices, [stored], stored.key)
    rows = ResultRows((("vertex", "vertex"), ("label", "")), ("label",))
    n = g.num_vertices
    return TableOnRanks(stored, rows, ("vertex", "label"), n, lambda: cuts_of_rows(n))


def labels_column(g: Graph) -> Column:
    """Return the names of all vertices, in order of their ids."""
    g._require_open()
    stored = Stored(g)
    g._run(number_vertices, [stored], stored.key)
    return Column(stored, "vertex", rows=(g.num_vertices, "vertex"))


def _table(g: Graph, columns: tuple[str, ...], *, both: bool, numbered: bool) -> TableOnRanks:
    """Sort the vertices on the ranks; return the table of edges that they make."""
    g._require_open()
    stored = Stored(g)
    cuts = g._run(sort_vertices, [stored], stored.key)[0]
    info = g.info
    rows = GraphEdges(g._key, edge_facts(g, numbered=numbered), both, numbered)
    return EdgesOnRanks(stored, rows, columns, info.num_arcs if both else info.num_edges, lambda: cuts)
