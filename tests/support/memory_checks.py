"""Helpers for tests of edges in memory: what ranks read of a table, and stand-ins for arrays of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from on_ranks import run_on_ranks

from mgraph.backends.cpu import CpuBackend
from mgraph.ingest.read import read_table

BACKEND = CpuBackend(2)


def read_back(tables: Any, num_ranks: int = 1, backend: Any = BACKEND) -> tuple[int, list[tuple]]:
    """Return the number of vertices and all edges in the user's ids, as ranks read a table or each its part."""
    parts = tables if isinstance(tables, list) else [tables] * num_ranks

    def program(table, comm):
        edges, labels = read_table(table, backend, comm)
        chunk = edges.chunk(comm.rank, comm.size, backend)
        part = [] if labels is None else labels.part.tolist()
        return edges.num_vertices, labels is not None, part, _rows(chunk)

    ranks = run_on_ranks(program, parts)
    names = [label for _, _, part, _ in ranks for label in part]
    rows = [row for *_, part in ranks for row in part]
    if ranks[0][1]:
        rows = [(names[u], names[v], *weight) for u, v, *weight in rows]
    return ranks[0][0], sorted(rows)


def _rows(chunk: Any) -> list[tuple]:
    columns = [column for column in (chunk.sources, chunk.targets, chunk.weights) if column is not None]
    return list(zip(*(column.tolist() for column in columns), strict=True))


class OnGpu:
    """A stub of an array on a GPU: it has the CUDA array interface and refuses implicit copies."""

    def __init__(self, values, copies=None):
        self._values = np.asarray(values)
        self.dtype = np.asarray(values).dtype
        self.__cuda_array_interface__ = {"shape": self._values.shape, "typestr": self._values.dtype.str, "version": 3}
        if copies:
            setattr(self, copies, lambda: OnHost(self._values) if copies == "cpu" else self._values)

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")


class OnHost:
    """A stub of a PyTorch tensor on the host."""

    def __init__(self, values):
        self.numpy = lambda: values


class DeviceArray:
    """A stub of a CuPy array: slices stay on the device, and `get` copies to the host."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.dtype = self._values.dtype
        self.ndim = self._values.ndim
        self.copies = []

    def __len__(self):
        return len(self._values)

    def __getitem__(self, part):
        taken = DeviceArray(self._values[part])
        taken.copies = self.copies
        return taken

    def get(self):
        self.copies.append(len(self._values))
        return self._values.copy()


class ArrowStream:
    """A stand-in for a column or a frame of Polars: Arrow reads it by `__arrow_c_stream__` alone."""

    def __init__(self, exported):
        self._exported = exported

    def __arrow_c_stream__(self, requested_schema=None):
        return self._exported.__arrow_c_stream__(requested_schema)
