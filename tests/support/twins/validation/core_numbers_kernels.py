"""Arguments for the kernels of validation/core_numbers_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, rows, vertex_types, widths

unweighted = rows(widths(TYPES[0], TYPES[2]))


def _numbers(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    return r.random.integers(0, 4, r.num_states).astype(np.promote_types(r.types.vertex, draw(vertex_types)))


def count_at_least(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_owned, "base": r.base, "indptr": r.indptr, "targets": r.targets}
    return Case({**args, "numbers": _numbers(draw, r), "counts": r.random.integers(0, 3, r.num_owned)})


def lose_equals(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier = r.owned()
    args = {"lo": 0, "hi": len(frontier), "frontier": frontier, "base": r.base, "indptr": r.indptr}
    args |= {"targets": r.targets, "numbers": _numbers(draw, r)}
    args |= {"losses": r.random.integers(0, 2, r.num_states).astype(r.types.vertex)}
    args |= {"touched": Unwritten(r.num_states, r.types.vertex), "counters": np.zeros(1, np.int64)}
    return Case(args, queues(counters_0=("touched",)))


def release(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    n = draw(st.integers(1, 300))
    args = {"lo": 0, "hi": n, "states": (r.random.integers(0, r.num_owned, n) + r.base).astype(r.types.vertex)}
    args |= {"counts": r.random.integers(1, 4, n).astype(r.types.vertex), "base": r.base}
    args |= {"excess": r.random.integers(-2, 6, r.num_owned)}
    args |= {"released": Unwritten(r.num_owned, r.types.vertex), "counters": np.zeros(1, np.int64)}
    return Case(args, queues(counters_0=("released",)))
