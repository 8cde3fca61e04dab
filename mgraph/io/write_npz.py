"""Write NumPy archives, uncompressed, a column after another."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

import numpy as np

from mgraph.errors import InputError
from mgraph.io.output_tables import Table

# The columns of a table of edges, by their names in our archives.
EDGE_ARRAYS = {"source": "sources", "target": "targets", "weight": "weights"}


def write_npz(file: BinaryIO, table: Table) -> None:
    """Write an array for each column, each in its own pass over the table: no whole array is in memory.

    Edges are written as the arrays sources, targets and weights, with num_vertices if it is known, and directed.
    """
    if table.strings:
        raise InputError(
            f"a .npz file holds numbers, and {table.strings[0]} is strings: write .csv, .parquet or .arrow instead"
        )
    rows = table.counted_rows()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, kind in table.columns.items():
            assert kind is not None, "strings were refused"
            key = name if table.edges is None else EDGE_ARRAYS[name]
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                header = {"descr": kind.str, "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(member, header)
                for batch in table.batches((name,)):
                    member.write(np.ascontiguousarray(batch[name], kind).data)
        if table.edges is not None:
            facts = {"num_vertices": table.edges.num_vertices, "directed": np.bool_(table.edges.directed)}
            for key, fact in facts.items():
                if fact is not None:
                    with archive.open(f"{key}.npy", "w") as member:
                        np.lib.format.write_array(member, np.asarray(fact))
