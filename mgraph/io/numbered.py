"""What formats of numbered vertices require of a table: integer ids, a number of vertices, weights that they hold."""

from __future__ import annotations

import numpy as np

from mgraph.errors import InputError
from mgraph.io.output_tables import EdgeFacts, Table

OTHERS = "write .csv, .parquet or .arrow instead"


def require_edge_facts(table: Table, what: str) -> tuple[EdgeFacts, int]:
    """Return the facts of a table of edges, with a number of vertices, and its number of rows.

    They are found by a pass over the table if it does not say them. Refuse ids that are strings or negative.
    """
    assert table.edges is not None, "these formats hold edges"
    if table.strings:
        raise InputError(
            f"a {what} file numbers vertices, and these are strings: write .csv, .parquet or .arrow instead, or number "
            "them (mgraph convert --vertices FILE)"
        )
    if table.edges.num_vertices is not None:
        return table.edges, table.counted_rows()
    if table.edges.highest is not None and table.num_rows is not None and table.columns["source"] != np.int64:
        # Known from a survey, and not negative by its type.
        return EdgeFacts(table.edges.highest + 1, table.edges.directed), table.num_rows
    rows = 0
    highest = -1
    for batch in table.batches(("source", "target")):
        rows += len(batch["source"])
        highest = max(highest, highest_id(batch, what))
    return EdgeFacts(highest + 1, table.edges.directed), rows


def highest_id(batch: dict, what: str) -> int:
    """Return the largest id of a batch, -1 if there is none; refuse a negative one."""
    ids = [batch[end] for end in ("source", "target") if len(batch[end])]
    if not ids:
        return -1
    if (lowest := min(int(part.min()) for part in ids)) < 0:
        raise InputError(f"a {what} file numbers vertices from 0 on, and there is a vertex {lowest}: {OTHERS}")
    return max(int(part.max()) for part in ids)


def whole_weights(weights: np.ndarray, what: str) -> np.ndarray:
    """Return weights as integers; refuse those that are not whole."""
    if weights.dtype.kind != "f":
        return weights
    odd = ~((np.trunc(weights) == weights) & (np.abs(weights) < 2.0**63))
    if odd.any():
        raise InputError(f"weight {weights[np.argmax(odd)]} is no integer, which {what} files hold: {OTHERS}")
    return weights.astype(np.int64)


def exact_weights(weights: np.ndarray, dtype: np.dtype, what: str) -> np.ndarray:
    """Return weights in the dtype of a format; refuse those that it would change."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = weights.astype(dtype)
    lost = cast.astype(np.float64) != weights
    if weights.dtype == np.int64 and dtype.kind == "f":
        # Beyond 2^53 the comparison in float64 rounds too; there every float32 is a multiple of 2^30.
        lost |= (np.abs(cast) >= 2.0**53) & (weights % 2**30 != 0)
    if lost.any():
        raise InputError(f"weight {weights[np.argmax(lost)]} is no {dtype.name}, which {what} files hold: {OTHERS}")
    return cast
