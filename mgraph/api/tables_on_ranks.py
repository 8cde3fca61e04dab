"""Take rows out of the ranks: data frames of pandas and Dask, files, and folders of parts that the ranks write."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io.output_tables import (
    BATCH_ROWS,
    Batch,
    ColumnType,
    EdgeFacts,
    Table,
    Values,
    as_column,
    as_objects,
    joined,
    type_of,
)
from mgraph.io.parts_folder import new_folder, num_bytes_of
from mgraph.io.pyarrow_module import require_pyarrow
from mgraph.io.replace_folder import names_folder
from mgraph.io.write import (
    EDGE_WRITERS,
    TABLE_WRITERS,
    Write,
    require_file,
    require_writable,
    write_table,
    write_to,
)
from mgraph.io.write_arrow import write_parquet
from mgraph.rank_jobs.table_rows import ResultRows, Rows, make_frame, make_rows, write_parts

if TYPE_CHECKING:
    import dask.dataframe
    import pandas

    from mgraph.api.graph import Graph, Stored


class TableOnRanks:
    """Rows that the ranks make, a range at a time.

    The ranges are rising numbers that cut what the ranks count: rows, or the sources of edges.
    """

    def __init__(
        self, stored: Stored, rows: Rows, names: Sequence[str], num_rows: int, cuts: Callable[[], list[int]]
    ) -> None:
        self._stored = stored
        self._rows = rows
        self._names = tuple(names)
        self._num_rows = num_rows
        self._cuts = cuts

    def table(self) -> Table:
        """Return the rows as a table to write: one batch at a time is in this process."""
        return Table(self._kinds(), self._num_rows, self._batches, self._rows.edges, self._rows.missing)

    def first(self, num_rows: int) -> dict[str, np.ndarray]:
        """Return the first rows; strings as arrays of str."""
        return {name: as_objects(values) for name, values in self._range(0, num_rows, self._names).items()}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all columns; strings as arrays of str."""
        return {name: as_objects(values) for name, values in self._all().items()}

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a data frame."""
        frames = _pandas()
        missing = self._rows.missing
        batches = self._all()
        return frames.DataFrame({name: as_column(batches[name], missing.get(name)) for name in self._names})

    def to_dask_dataframe(self) -> dask.dataframe.DataFrame:
        """Return a data frame with a partition for each rank, a copy on its worker."""
        frames = _pandas()
        try:
            import dask.dataframe
        except ImportError:
            raise UsageError("Dask data frames need dask.dataframe: pip install 'dask[dataframe]'") from None
        missing = self._rows.missing
        none = self._range(0, 0, self._names)
        columns = {name: as_column(values, missing.get(name)) for name, values in none.items()}
        parts = self._stored.cluster.run_and_store(make_frame, self._stored.key, self._rows, self._names)
        return dask.dataframe.from_delayed(parts, meta=frames.DataFrame(columns), verify_meta=False)

    def write(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write all rows to a file in the format of its suffix, or to a folder of Parquet parts."""
        if names_folder(path):
            self._write_parts(path, overwrite=overwrite)
        else:
            require_writable(path, self.writers, overwrite=overwrite)
            write_table(path, self.table(), self.writers)

    def write_parquet(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file of any name, or to a folder if one is named by a slash, or exists."""
        if os.fspath(path).endswith("/") or os.path.isdir(path):
            self._write_parts(path, overwrite=overwrite)
        else:
            require_file(path, overwrite=overwrite)
            write_to(path, self.table(), write_parquet)

    @property
    def writers(self) -> dict[str, Write]:
        """The writers of such a table, by suffix."""
        return TABLE_WRITERS

    def _write_parts(self, path: str | os.PathLike, *, overwrite: bool) -> None:
        require_pyarrow("Parquet needs")
        with new_folder(path, overwrite=overwrite) as folder:
            by_rank = self._stored.run(write_parts, self._rows, folder, self._names)
            written = [part for parts in by_rank for part in parts]
            for part, _, num_bytes in written:
                if num_bytes_of(part) != num_bytes:
                    raise InputError(f"{part} was written elsewhere: name a folder that all ranks share")
            if sum(rows for _, rows, _ in written) != self._num_rows:
                raise InputError(f"{path}: not all rows were written")

    def _all(self) -> Batch:
        batches = list(self._batches(self._names)) or [self._range(0, 0, self._names)]
        return {name: joined([batch[name] for batch in batches]) for name in self._names}

    def _kinds(self) -> dict[str, ColumnType]:
        return {name: type_of(values) for name, values in self._range(0, 0, self._names).items()}

    def _batches(self, names: Sequence[str]) -> Iterator[Batch]:
        cuts = self._cuts()
        for lo, hi in itertools.pairwise(cuts):
            yield self._range(lo, hi, names)

    def _range(self, lo: int, hi: int, names: Sequence[str]) -> Batch:
        parts = self._stored.run(make_rows, self._rows, lo, hi, tuple(names))
        found: dict[str, Values] = {name: joined([part[name] for part in parts]) for name in parts[0]}
        return {name: found[name] for name in names}


class EdgesOnRanks(TableOnRanks):
    """Rows that are edges, in all formats of edges."""

    @property
    def writers(self) -> dict[str, Write]:
        return EDGE_WRITERS


def edge_facts(g: Graph, *, numbered: bool = False) -> EdgeFacts:
    """Return what edges of a graph say about it: no number of vertices if these are labels."""
    labels = g.info.labels and not numbered
    return EdgeFacts(None if labels else g.num_vertices, g.info.directed)


def table_of_vertices(stored: Stored, names: Sequence[str], ids: Sequence[str], reached: Sequence[str]) -> TableOnRanks:
    """Return a row for each vertex: the vertex, then columns of a result.

    Those of `ids` are vertices, and those of `reached` may have none.
    """
    info = stored.graph.info
    missing = dict.fromkeys(reached, info.missing_label) if info.labels == "integer" else {}
    columns = (("vertex", ""), *((name, name) for name in names))
    rows = ResultRows(columns, ("vertex", *ids), missing=missing)
    n = info.num_vertices
    return TableOnRanks(stored, rows, ("vertex", *names), n, lambda: cuts_of_rows(n))


def cuts_of_rows(num_rows: int) -> list[int]:
    """Return numbers that cut rows into batches."""
    return [*range(0, num_rows, BATCH_ROWS), num_rows]


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("data frames need pandas: pip install pandas") from None
    return pandas
