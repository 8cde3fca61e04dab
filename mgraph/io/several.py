"""Several files as one table: its pieces are those of all files."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, EdgeTable, Labels, are_strings
from mgraph.errors import InputError
from mgraph.io.samples import LABEL_PLACES, LabelSample, sample_of_labels

# Number of files from which labels are sampled.
SAMPLED_TABLES = 8


@dataclass(frozen=True)
class SeveralTables:
    """Tables that agree in columns, direction and number of vertices; made by `as_one_table`."""

    tables: tuple[EdgeTable, ...]
    name: str
    labels: Labels

    @property
    def directed(self) -> bool:
        return self.tables[0].directed

    @property
    def has_weights(self) -> bool:
        return self.tables[0].has_weights

    @property
    def is_text(self) -> bool:
        return are_strings(self.tables[0])

    @property
    def num_vertices(self) -> int | None:
        return self.tables[0].num_vertices

    @property
    def base(self) -> int:
        return self.tables[0].base

    @functools.cached_property
    def _ends(self) -> list[int]:
        """The first piece after those of each table."""
        return list(itertools.accumulate(table.num_pieces for table in self.tables))

    @property
    def num_pieces(self) -> int:
        return self._ends[-1]

    @functools.cached_property
    def max_edges(self) -> int:
        return sum(table.max_edges for table in self.tables)

    @property
    def text_bytes(self) -> int | None:
        """The bytes of all ids of both ends, as some files suggest it; None if these are numbers, or not known."""
        sample = self.label_sample()
        return None if sample is None else sample.text_bytes(self.max_edges)

    def label_sample(self, most: int = LABEL_PLACES) -> LabelSample | None:
        """Return the ids in at most about `most` places of some files; None if these are numbers, or not known."""
        some = self.tables[:: -(-len(self.tables) // SAMPLED_TABLES)]
        found = [sample_of_labels(table, -(-most // len(some))) for table in some]
        known = [sample for sample in found if sample is not None]
        return LabelSample.merged(known) if len(known) == len(found) else None

    @property
    def declared_edges(self) -> int | None:
        """The number of edges if each file declares its own."""
        declared = [getattr(table, "declared_edges", None) for table in self.tables]
        known = [count for count in declared if count is not None]
        return sum(known) if len(known) == len(declared) else None

    @property
    def expected_vertices(self) -> int | None:
        """The number of vertices as a single file suggests it; samples of several do not tell their union."""
        return getattr(self.tables[0], "expected_vertices", None) if len(self.tables) == 1 else None

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        which = bisect.bisect_right(self._ends, k)
        return self.tables[which].piece(k - (self._ends[which] - self.tables[which].num_pieces), backend)

    def release(self) -> None:
        for table in self.tables:
            table.release()


def as_one_table(tables: Sequence[EdgeTable], files: Sequence[object], name: str | None) -> EdgeTable:
    """Return tables of several files as one, perhaps of a name of its own; refuse a file that is unlike the first."""
    if len(tables) == 1 and name in (None, tables[0].name):
        return tables[0]
    facts: dict[str, Callable[[Any], Any]] = {
        "columns": lambda table: getattr(table, "columns", None),
        "weights": lambda table: table.has_weights,
        "direction": lambda table: table.directed,
        "number of vertices": lambda table: table.num_vertices,
    }
    for what, fact in facts.items():
        first = fact(tables[0])
        for table, file in zip(tables, files, strict=True):
            if fact(table) != first:
                raise InputError(
                    f"{file} differs from {files[0]} in its {what} ({_said(fact(table))}, not {_said(first)})"
                )
    return SeveralTables(tuple(tables), name or tables[0].name, tables[0].labels)


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none declared" if value is None else str(value)
