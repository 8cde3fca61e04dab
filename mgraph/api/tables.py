"""Take rows out of the ranks: data frames of pandas and Dask, files, and folders of parts that the ranks write."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io.parts_folder import new_folder, num_bytes_of
from mgraph.io.replace_folder import names_folder
from mgraph.io.tables import BATCH_ROWS, Batch, EdgeFacts, Kind, Table, Values, as_objects, joined, kind_of
from mgraph.io.write import EDGE_WRITERS, TABLE_WRITERS, Write, write_table, write_to
from mgraph.io.write_arrow import require_pyarrow, write_parquet
from mgraph.rank_jobs.tables import Rows, make_frame, make_rows, write_parts

if TYPE_CHECKING:
    import dask.dataframe
    import pandas

    from mgraph.api.graph import Graph
    from mgraph.api.results import Stored


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
        return Table(self._kinds(), self._num_rows, self._batches, self._rows.edges)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all columns; strings as arrays of str."""
        batches = list(self._batches(self._names)) or [self._range(0, 0, self._names)]
        return {name: as_objects(joined([batch[name] for batch in batches])) for name in self._names}

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a data frame."""
        return _pandas().DataFrame(self.to_arrays())

    def to_dask_dataframe(self) -> dask.dataframe.DataFrame:
        """Return a data frame with a partition for each rank, a copy on its worker."""
        frames = _pandas()
        try:
            import dask.dataframe
        except ImportError:
            raise UsageError("Dask data frames need dask.dataframe: pip install 'dask[dataframe]'") from None
        columns = {name: np.empty(0, object if kind is None else kind) for name, kind in self._kinds().items()}
        parts = self._stored.graph.cluster.run_and_store(make_frame, self._stored.key, self._rows, self._names)
        return dask.dataframe.from_delayed(parts, meta=frames.DataFrame(columns), verify_meta=False)

    def write(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write all rows to a file in the format of its suffix, or to a folder of Parquet parts."""
        if names_folder(path):
            self._write_parts(path, overwrite=overwrite)
        else:
            write_table(path, self.table(), self.writers)

    def write_parquet(self, path: str | os.PathLike, *, overwrite: bool = False) -> None:
        """Write all rows to a Parquet file of any name, or to a folder if one is named by a slash, or exists."""
        if os.fspath(path).endswith("/") or os.path.isdir(path):
            self._write_parts(path, overwrite=overwrite)
        else:
            write_to(path, self.table(), write_parquet)

    @property
    def writers(self) -> dict[str, Write]:
        """The writers of such a table, by suffix."""
        return TABLE_WRITERS

    def _write_parts(self, path: str | os.PathLike, *, overwrite: bool) -> None:
        require_pyarrow("Parquet")
        with new_folder(path, overwrite=overwrite) as folder:
            by_rank = self._stored.run(write_parts, self._rows, folder, self._names)
            written = [part for parts in by_rank for part in parts]
            for part, _, num_bytes in written:
                if num_bytes_of(part) != num_bytes:
                    raise InputError(f"{part} was written elsewhere: name a folder that all ranks share")
            if sum(rows for _, rows, _ in written) != self._num_rows:
                raise InputError(f"{path}: not all rows were written")

    def _kinds(self) -> dict[str, Kind]:
        return {name: kind_of(values) for name, values in self._range(0, 0, self._names).items()}

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
    labels = getattr(g.info, "labels", "") and not numbered
    return EdgeFacts(None if labels else g.num_vertices, g.info.directed)


def cuts_of_rows(num_rows: int) -> list[int]:
    """Return numbers that cut rows into batches."""
    return [*range(0, num_rows, BATCH_ROWS), num_rows]


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("data frames need pandas: pip install pandas") from None
    return pandas
