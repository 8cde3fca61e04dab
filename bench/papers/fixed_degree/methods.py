"""Breadth-first search by `traversal` and `refresh`, on a GPU or on all CPU cores."""

from __future__ import annotations

import itertools

import numpy as np

from mgraph.backends.base import Backend
from mgraph.types import Array
from papers.fixed_degree.kernels import refresh, traversal

UNREACHED = np.iinfo(np.int32).max


def two_kernels(backend: Backend, targets: Array, degree: int, source: int) -> Array:
    """Alternate the two kernels until no vertex is next; every vertex has `degree` targets."""
    xp = backend.xp
    n = len(targets) // degree
    visited = xp.zeros(n, np.uint8)
    marks = xp.zeros(n, np.uint8)
    next = xp.zeros(n, np.uint8)
    next[source] = 1
    levels = xp.full(n, UNREACHED, np.int32)
    is_any_next = xp.zeros(1, np.int64)
    for level in itertools.count():
        is_any_next[:] = 0
        traversal[backend](0, n, targets, degree, next, level, visited, levels, marks)
        refresh[backend](0, n, visited, marks, next, is_any_next)
        if not int(is_any_next[0]):
            return levels
    raise AssertionError
