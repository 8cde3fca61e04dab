"""Write graphs as binary files of other projects: GAP's .sg and .wsg, Graph500's edge lists."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from mgraph.errors import InputError
from mgraph.io.gap import HEADER
from mgraph.io.graph500 import PACKED, WIDE
from mgraph.io.numbered import exact_weights, highest_id, require_edge_facts
from mgraph.io.output_tables import Table

NEIGHBOR = np.dtype("<i4")
WEIGHTED_NEIGHBOR = np.dtype([("target", "<i4"), ("weight", "<i4")])
FLOAT32 = np.dtype("<f4")
INT32 = np.dtype("<i4")
# Ids of 48 bits with a sign.
MAX_PACKED_IDS = 1 << 47


def write_gap(file: BinaryIO, arcs: Table) -> None:
    """Write .sg or .wsg from arcs sorted by source; an undirected edge is there in both directions."""
    facts, rows = require_edge_facts(arcs, ".sg")
    n = int(facts.num_vertices or 0)
    if n > np.iinfo(np.int32).max:
        raise InputError(f"{n} vertices are more than .sg and .wsg files number, 2^31 - 1: write .parquet or .npz")
    neighbor = WEIGHTED_NEIGHBOR if "weight" in arcs.columns else NEIGHBOR
    file.write(HEADER.pack(facts.directed, rows, n))
    begin = file.tell()
    degrees = np.zeros(n, np.int64)
    in_degrees = np.zeros(n, np.int64)
    file.seek(begin + 8 * (n + 1))
    for sources, neighbors in _neighbors(arcs, neighbor):
        degrees += np.bincount(sources, minlength=n)
        if facts.directed:
            in_degrees += np.bincount(neighbors["target"] if neighbor.names else neighbors, minlength=n)
        file.write(neighbors.data)
    end = file.tell()
    file.seek(begin)
    file.write(_offsets(degrees).data)
    if facts.directed:
        file.seek(end)
        file.write(_offsets(in_degrees).data)
        _write_in_rows(file, arcs, neighbor, _offsets(in_degrees)[:-1].astype(np.int64), rows)


def _offsets(degrees: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(degrees)]).astype("<i8")


def _neighbors(arcs: Table, neighbor: np.dtype) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the sources of a batch of arcs, and its targets as they are stored."""
    for batch in arcs.all_batches():
        if not neighbor.names:
            yield batch["source"], batch["target"].astype(neighbor)
            continue
        stored = np.empty(len(batch["target"]), neighbor)
        stored["target"] = batch["target"]
        stored["weight"] = exact_weights(batch["weight"], INT32, ".wsg")
        yield batch["source"], stored


def _write_in_rows(file: BinaryIO, arcs: Table, neighbor: np.dtype, cursors: np.ndarray, rows: int) -> None:
    """Write every arc into the row of its target, sources in rising order; the file's pages are mapped."""
    file.flush()
    begin = file.tell()
    file.truncate(begin + rows * neighbor.itemsize)
    if rows == 0:
        return
    mapped = np.memmap(file, neighbor, "r+", begin, (rows,))  # type: ignore[call-overload]
    for sources, neighbors in _neighbors(arcs, neighbor):
        targets = neighbors["target"] if neighbor.names else neighbors
        order = np.argsort(targets, kind="stable")
        sorted_targets = targets[order]
        starts = np.flatnonzero(np.concatenate([[True], sorted_targets[1:] != sorted_targets[:-1]]))
        lengths = np.diff(np.append(starts, len(order)))
        within = np.arange(len(order)) - np.repeat(starts, lengths)
        reverse = neighbors[order]
        if neighbor.names:
            reverse["target"] = sources[order]
        else:
            reverse = sources[order].astype(neighbor)
        mapped[cursors[sorted_targets] + within] = reverse
        cursors[sorted_targets[starts]] += lengths
    mapped.flush()
    file.seek(0, os.SEEK_END)


def write_graph500(file: BinaryIO, table: Table) -> None:
    """Write ends of 48 bits, 12 bytes an edge."""
    for batch in table.batches(_ends(table)):
        if highest_id(batch, "Graph500") >= MAX_PACKED_IDS:
            raise InputError("a vertex is beyond the 47 bits of a packed edge: write graph500-wide")
        edges = np.empty(len(batch["source"]), PACKED)
        for end in ("source", "target"):
            ids = batch[end].astype(np.int64)
            edges[end] = ids & 0xFFFFFFFF
            edges[f"{end}_high"] = ids >> 32
        file.write(edges.data)


def write_graph500_wide(file: BinaryIO, table: Table) -> None:
    """Write ends of 64 bits, 16 bytes an edge."""
    for batch in table.batches(_ends(table)):
        highest_id(batch, "Graph500")
        edges = np.empty(len(batch["source"]), WIDE)
        edges["source"] = batch["source"]
        edges["target"] = batch["target"]
        file.write(edges.data)


def write_graph500_weights(file: BinaryIO, table: Table) -> None:
    """Write the weights of the edges as float32; refuse those that it would change."""
    for batch in table.batches(("weight",)):
        file.write(exact_weights(batch["weight"], FLOAT32, "Graph500").data)


def _ends(table: Table) -> tuple[str, str]:
    if table.strings:
        require_edge_facts(table, "Graph500")
    return "source", "target"
