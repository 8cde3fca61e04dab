"""Arguments for the kernels of validation/strong_components_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import TYPES, bits, rows, some, widths

unweighted = rows(widths(TYPES[0], TYPES[2]))


def visit_rows(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier = r.owned()
    args = {"lo": 0, "hi": len(frontier), "frontier": frontier, "base": r.base, "indptr": r.indptr}
    args |= {"targets": r.targets, "names": r.random.integers(0, 5, r.num_states).astype(r.types.vertex)}
    args |= {"noted": bits(some(r.random, r.num_states))}
    args |= {"counts": r.random.integers(0, 2, r.num_states) if draw(st.booleans()) else None}
    args |= {name: Unwritten(r.num_states, r.types.vertex) for name in ("found", "touched")}
    return Case({**args, "counters": np.zeros(2, np.int64)}, queues(counters_0=("found",), counters_1=("touched",)))


def release_names(draw: st.DrawFn) -> Case:
    """Draw counts of which those of a name never exceed what is pending."""
    r = draw(unweighted)
    touched = r.random.integers(0, r.num_states, draw(st.integers(1, 200))).astype(r.types.vertex)
    counts = r.random.integers(1, 4, len(touched))
    pending = r.random.integers(0, 2, r.num_states)
    np.add.at(pending, touched, counts)
    args = {"lo": 0, "hi": len(touched), "touched": touched, "counts": counts, "pending": pending}
    args |= {"released": Unwritten(len(touched), r.types.vertex), "counters": np.zeros(1, np.int64)}
    return Case(args, queues(counters_0=("released",)))


def enter_states(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    states = r.random.integers(0, r.num_states, draw(st.integers(1, 300))).astype(r.types.vertex)
    args = {"lo": 0, "hi": len(states), "states": states, "base": r.base, "num_owned": r.num_owned}
    args |= {"visited": bits(some(r.random, r.num_states)), "frontier": Unwritten(r.num_owned, r.types.vertex)}
    return Case({**args, "counters": np.zeros(1, np.int64)}, queues(counters_0=("frontier",)))
