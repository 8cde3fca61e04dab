"""Graphs that the GAP Benchmark Suite serializes: .sg, and .wsg with integer weights.

    bool directed  i64 arcs  i64 vertices  i64 offsets[vertices + 1]  neighbors[arcs]      (little-endian, unaligned)

A neighbor is an i32 target, in .wsg followed by an i32 weight. A directed graph's arcs are there twice: the offsets and
neighbors of the in-rows follow, and are not read. Undirected edges are in both rows.
"""

from __future__ import annotations

import struct

from mgraph.edges import Labels
from mgraph.errors import InputError
from mgraph.io.csr_table import CsrTable, check_stored, csr_table
from mgraph.io.input_file import InputFile
from mgraph.io.ranges import ColumnPlace, PlainArrays, num_bytes_of, opened

HEADER = struct.Struct("<Bqq")
TARGET_BYTES = 4
WEIGHTED_BYTES = 8


def read_gap(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> CsrTable:
    """Check the header and length of a file and return it as a table.

    The length tells whether there are weights.
    """
    with opened(file) as raw:
        header = raw.read(HEADER.size)
        actual = num_bytes_of(raw)
    if len(header) < HEADER.size or header[0] > 1:
        raise InputError(f"{file} does not begin as .sg and .wsg files do, with 0 or 1 and two counts of 64 bits")
    is_directed, m, n = HEADER.unpack(header)
    if n < 0 or m < 0:
        raise InputError(f"{file} declares {n} vertices and {m} arcs: damaged?")
    lists = 2 if is_directed else 1
    expected = {size: HEADER.size + lists * (8 * (n + 1) + size * m) for size in (TARGET_BYTES, WEIGHTED_BYTES)}
    named = WEIGHTED_BYTES if file.name.endswith(".wsg") else TARGET_BYTES
    found = named if actual == expected[named] else next((k for k, size in expected.items() if size == actual), None)
    if found is None:
        raise InputError(
            f"{file} is {actual} bytes, but {n} vertices and {m} arcs need {expected[TARGET_BYTES]}, or "
            f"{expected[WEIGHTED_BYTES]} with weights: truncated, or not of 32-bit vertices?"
        )
    weighted = check_stored(file, weight, num_vertices, has=n, weighted=found == WEIGHTED_BYTES)
    targets = HEADER.size + 8 * (n + 1)
    columns = {
        "offsets": ColumnPlace(HEADER.size, "<i8"),
        "targets": ColumnPlace(targets, "<i4", found),
        "weights": ColumnPlace(targets + TARGET_BYTES, "<i4", found),
    }
    directed = bool(is_directed) if directed is None else directed
    return csr_table(CsrTable(PlainArrays(file, columns), n, m, directed, weighted, labels))
