"""What is known of a table of edges before it is read, as an edge source without edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.edges import EdgeSizes, EdgeTable, is_table
from mgraph.io.samples import sample_of_labels
from mgraph.planning.labels import PlannedLabels
from mgraph.types import vertex_dtype

# Edges for each vertex of a table without a sample of its labels: half as many as in Graph500.
EDGES_PER_VERTEX = 8


@dataclass(frozen=True)
class PlannedTable:
    """The expected sizes of a table."""

    name: str
    num_vertices: int
    directed: bool
    weight_dtype: np.dtype | None
    num_input_edges: int
    pieces: int
    labels: PlannedLabels | None

    def kept_bytes(self, num_ranks: int) -> int:
        """Return the bytes of the edges that each rank keeps between reading and the end of the build."""
        weight = 0 if self.weight_dtype is None else self.weight_dtype.itemsize
        return (2 * vertex_dtype(self.num_vertices).itemsize + weight) * self.num_input_edges // num_ranks


def as_planned(source: EdgeSizes | EdgeTable) -> EdgeSizes:
    """Return the source, or the expected sizes of a table; weights of floats or integers count as four bytes."""
    if not is_table(source):
        return source
    edges = source.max_edges
    num_vertices = source.num_vertices
    expected = getattr(source, "expected_vertices", None)
    # Ids beyond that have large gaps, and are labels.
    has_gaps = expected is not None and expected > 4 * edges
    sample = sample_of_labels(source)
    known = getattr(source, "distinct", None) or (edges // EDGES_PER_VERTEX, 2 * edges)
    found, most = known if sample is None else sample.distinct(edges)
    labels = _planned_labels(source, has_gaps, most)
    if num_vertices is None:
        num_vertices = found if expected is None or has_gaps else max(expected, 0)
    weights = np.dtype(np.float32) if source.has_weights else None
    return PlannedTable(source.name, num_vertices, source.directed, weights, edges, source.num_pieces, labels)


def _planned_labels(table: EdgeTable, has_gaps: bool, most: int) -> PlannedLabels | None:
    """Return what is known of at most this many labels, None if ids are not mapped as far as that is known."""
    ends = max(2 * table.max_edges, 1)
    text = getattr(table, "text_bytes", None)
    if text is not None:
        # A label has at least one byte.
        return PlannedLabels(max(min(most, text), 1), text / ends, is_text=True)
    if table.labels is True or (has_gaps and table.labels == "auto" and table.num_vertices is None):
        return PlannedLabels(ends, 8, is_text=False)
    return None
