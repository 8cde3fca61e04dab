"""Write edges as text of other projects' formats: Matrix Market, DIMACS and PACE, METIS."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from mgraph.errors import InputError
from mgraph.io.numbered import require_edge_facts, whole_weights
from mgraph.io.output_tables import Batch, Table
from mgraph.io.write_text import write_lines

FIELDS = {"f": "real", "i": "integer", "u": "integer"}


def write_mtx(file: BinaryIO, table: Table) -> None:
    """Write a Matrix Market file; of undirected edges the end with the larger number comes first."""
    facts, rows = require_edge_facts(table, ".mtx")
    kind = table.columns.get("weight")
    field = "pattern" if kind is None else FIELDS[kind.kind]
    symmetry = "general" if facts.directed else "symmetric"
    n = facts.num_vertices
    file.write(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{n} {n} {rows}\n".encode())

    def one_based(batch: Batch) -> Batch:
        source, target = (batch[end].astype(np.int64) + 1 for end in ("source", "target"))
        ends = (source, target) if facts.directed else (np.maximum(source, target), np.minimum(source, target))
        return dict(zip(batch, (*ends, *list(batch.values())[2:]), strict=True))

    write_lines(file, table, " ", one_based)


def write_gr(file: BinaryIO, table: Table) -> None:
    """Write a DIMACS file of shortest paths, or without weights a PACE file.

    DIMACS lists arcs: an undirected edge is written in both directions. PACE lists undirected edges.
    """
    facts, rows = require_edge_facts(table, ".gr")
    if "weight" not in table.columns:
        if facts.directed:
            raise InputError("a .gr file of directed edges has a weight for each: give weights, or write .mtx or .csv")
        file.write(f"p tw {facts.num_vertices} {rows}\n".encode())
        return write_lines(file, table, " ", partial(_arcs, both=False))
    arcs = rows if facts.directed else 2 * rows
    file.write(f"p sp {facts.num_vertices} {arcs}\n".encode())
    return write_lines(file, table, " ", partial(_arcs, both=not facts.directed), prefix="a ")


def _arcs(batch: Batch, both: bool) -> Batch:
    """Return the arcs of a batch, numbered from 1, each edge followed by its reverse if there are both."""
    ends = [batch[end].astype(np.int64) + 1 for end in ("source", "target")]
    weights = [whole_weights(batch["weight"], ".gr")] if "weight" in batch else []
    if both:
        ends = [np.stack(pair, axis=1).ravel() for pair in (ends, ends[::-1])]
        weights = [np.repeat(values, 2) for values in weights]
    return dict(zip(batch, (*ends, *weights), strict=True))


def write_metis(file: BinaryIO, arcs: Table) -> None:
    """Write a METIS file from the arcs of an undirected graph, sorted by source, both directions of each edge."""
    facts, rows = require_edge_facts(arcs, ".graph")
    if facts.directed:
        raise InputError(
            "a METIS file is undirected, and the graph is directed: write .mtx or .sg, or read it undirected"
        )
    weighted = "weight" in arcs.columns
    file.write(f"{facts.num_vertices} {rows // 2}{' 001' if weighted else ''}\n".encode())
    first = 0
    for batch in arcs.all_batches():
        source = batch["source"]
        if len(source) == 0:
            continue
        last = int(source[-1]) + 1
        counts = np.bincount(source - first, minlength=last - first)
        columns = [batch["target"].astype(np.int64) + 1]
        if weighted:
            columns.append(positive(whole_weights(batch["weight"], ".graph")))
        file.write(_adjacency_lines(np.stack(columns, axis=1), counts))
        first = last
    file.write(b"\n" * (int(facts.num_vertices or 0) - first))


def positive(weights: np.ndarray) -> np.ndarray:
    """Refuse weights that METIS does not accept."""
    if (weights < 1).any():
        raise InputError(f"weight {int(weights.min())} is below 1, the least of a METIS file: write .mtx, .gr or .csv")
    return weights


def _adjacency_lines(entries: np.ndarray, counts: np.ndarray) -> Any:
    """Return the line of every vertex: its entries, separated by blanks."""
    ends = np.concatenate([[0], np.cumsum(counts)]) * entries.shape[1]
    try:
        import pyarrow
        import pyarrow.compute as compute
    except ImportError:
        words = list(map(str, entries.ravel().tolist()))
        rows = (words[lo:hi] for lo, hi in itertools.pairwise(ends.tolist()))
        return "".join(f"{' '.join(row)}\n" for row in rows).encode()
    words = compute.cast(pyarrow.array(entries.ravel()), pyarrow.string())
    rows = compute.binary_join(pyarrow.ListArray.from_arrays(ends.astype(np.int32), words), " ")
    lines = compute.binary_join_element_wise(rows, "\n", "")
    _, offsets, text = lines.buffers()
    return text.slice(0, int(np.frombuffer(offsets, np.int32)[len(lines)]))
