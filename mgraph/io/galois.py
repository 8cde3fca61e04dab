"""Binary graphs of Galois and of libraries after it: .gr of version 1 and 2, and .sgr.

    u64 version  u64 bytes of a weight  u64 vertices  u64 arcs
    u64 offsets[vertices]  targets[arcs]  padding  weights[arcs]      (little-endian)

Offset u is the end of row u. Targets have 32 bits in version 1, and are padded to a multiple of 8 bytes; 64 bits in
version 2, where some programs pad an odd number of them to an even one. The type of the weights is not in the file.
"""

from __future__ import annotations

import struct

from mgraph.edges import Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.csr_table import CsrTable, check_stored, csr_table
from mgraph.io.input_file import InputFile
from mgraph.io.ranges import ColumnPlace, PlainArrays, num_bytes_of, opened

HEADER = struct.Struct("<QQQQ")
# The first bytes of a file, by version.
MAGICS = struct.pack("<Q", 1), struct.pack("<Q", 2)
WEIGHTS = {4: ("uint32", "int32", "float32"), 8: ("int64", "float64"), 1: ("uint8",), 2: ("uint16",)}


def read_galois(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> CsrTable:
    """Check the header and length of a file and return it as a table.

    `weight` is the dtype of the weights, such as uint32. By default a .sgr is undirected, any other file directed.
    """
    with opened(file) as raw:
        header = raw.read(HEADER.size)
        actual = num_bytes_of(raw)
    if len(header) < HEADER.size or not header.startswith(MAGICS):
        raise InputError(f"{file} does not begin as Galois files do, with version 1 or 2 and {HEADER.size} bytes")
    version, itemsize, n, m = HEADER.unpack(header)
    dtype = _weights_dtype(file, itemsize, weight)
    check_stored(file, None, num_vertices, has=n, weighted=bool(dtype))
    target = 4 * version
    targets = HEADER.size + 8 * n
    end = targets + target * m
    paddings = (m % 2 * target,) if version == 1 else (0, m % 2 * target)
    expected = [end + padding + itemsize * m for padding in paddings]
    # Without weights the padding may be left out.
    if actual not in expected and (itemsize or actual != end):
        raise InputError(f"{file} is {actual} bytes, but {n} vertices and {m} arcs need {expected[0]}: truncated?")
    columns = {
        "offsets": ColumnPlace(HEADER.size, "<u8"),
        "targets": ColumnPlace(targets, f"<u{target}"),
        "weights": ColumnPlace(actual - itemsize * m, dtype),
    }
    directed = not file.name.endswith(".sgr") if directed is None else directed
    table = CsrTable(PlainArrays(file, columns), n, m, directed, bool(dtype), labels, has_first_offset=False)
    return csr_table(table)


def _weights_dtype(file: object, itemsize: int, weight: str | int | bool | None) -> str:
    """Return the dtype of the weights that are to be read, "" for none."""
    if weight is False or (itemsize == 0 and weight is None):
        return ""
    known = WEIGHTS.get(itemsize, ())
    if isinstance(weight, str) and weight in known:
        return weight
    if itemsize == 0:
        raise UsageError(f"{file} has no weights")
    choice = " or ".join(f"weight={name!r}" for name in known)
    raise UsageError(
        f"{file} has {itemsize} bytes with each arc, and does not say of which type: "
        + (f"give {choice}, or weight=False" if known else "only weight=False can be read")
    )
