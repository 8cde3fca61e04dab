"""Labels of the vertices in a store: by id, in parts of equal ranges, so that any number of ranks reads its range."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.labels.spread import spread_over
from mgraph.labels.strings import Strings
from mgraph.labels.table import LabelKind, LabelTable, stride_of
from mgraph.store.files import Stored, extents_of, host_backend, read_array, unchanged
from mgraph.store.manifest import StoredGraph
from mgraph.store.vertex_tables import require_memory

INTEGERS = "labels"
STRING_LENGTHS = "label_lengths"
STRING_BYTES = "label_bytes"
LABELS = (INTEGERS, STRING_LENGTHS, STRING_BYTES)


def arrays_of_labels(labels: LabelTable) -> Stored:
    """Return the arrays of a rank's labels: integers, or lengths and bytes of strings."""
    part = labels.part
    if not isinstance(part, Strings):
        return {INTEGERS: (part, part.dtype, unchanged)}
    offsets = part.offsets
    return {
        STRING_LENGTHS: (np.diff(offsets), np.dtype(np.uint32), unchanged),
        STRING_BYTES: (part.data[offsets[0] : offsets[-1]], np.dtype(np.uint8), unchanged),
    }


def load_labels(store: StoredGraph, backend: Backend, comm: Communicator) -> LabelTable | None:
    """Return this rank's part of the labels, None if the graph has none; every rank calls it."""
    if store.missing_label is None:
        return None
    n = store.info.num_vertices
    stride = stride_of(n, comm.size)
    own = range(min(comm.rank * stride, n), min((comm.rank + 1) * stride, n))
    # Labels are in host memory, whatever the backend.
    host = host_backend(backend, comm)
    require_memory(store, _bytes_of(store, comm.size), host, comm)
    part: np.ndarray | Strings
    if INTEGERS in store.dtypes:
        kind: LabelKind = "integer"
        part = read_array(store, INTEGERS, extents_of(store, INTEGERS, own.start, own.stop), host)
    else:
        kind = "string"
        part = _load_strings(store, own, host, comm)
    return LabelTable(n, kind, part, store.missing_label, spread_over(backend))


def _bytes_of(store: StoredGraph, num_ranks: int) -> int:
    """Return the bytes of a rank's labels, strings of mean length."""
    sizes = [store.count(name) * store.dtypes[name].itemsize for name in LABELS if name in store.dtypes]
    # Strings have an offset in addition to each length.
    offsets = 8 * store.info.num_vertices if STRING_LENGTHS in store.dtypes else 0
    return (sum(sizes) + offsets) // num_ranks


def _load_strings(store: StoredGraph, own: range, host: Backend, comm: Communicator) -> Strings:
    """Read the lengths of this rank's strings; their bytes follow those of the ranks before."""
    lengths = read_array(store, STRING_LENGTHS, extents_of(store, STRING_LENGTHS, own.start, own.stop), host)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    num_bytes = comm.allgather(offsets[-1:].copy(), np.empty(comm.size, np.int64))
    first = int(num_bytes[: comm.rank].sum())
    extents = extents_of(store, STRING_BYTES, first, first + int(offsets[-1]))
    return Strings(offsets, read_array(store, STRING_BYTES, extents, host))
