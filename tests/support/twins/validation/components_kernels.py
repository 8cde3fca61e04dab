"""Arguments for the kernels of validation/components_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import TYPES, DrawnRows, rows, vertex_types, widths
from twins.sweeps import SEGMENT_BITS, units

unweighted = rows(widths(TYPES[0], TYPES[2]))


def _arcs(r: DrawnRows) -> dict:
    return {"lo": 0, "hi": r.num_owned, "first": r.base, "indptr": r.indptr, "targets": r.targets}


def mark_torn(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    labels = r.random.integers(0, draw(st.sampled_from([1, 2, 50])), r.num_states).astype(r.types.vertex)
    # With one label and one exception, few rows have a mismatch.
    labels[0] = 0 if labels.any() else 7
    return Case({**_arcs(r), "labels": labels, "is_mismatch": np.zeros(r.num_owned, np.uint8)})


def hook_roots(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    roots = r.random.integers(0, draw(st.integers(1, r.num_states)), r.num_states).astype(r.types.vertex)
    lower = np.arange(r.num_states).astype(r.types.vertex)
    return Case({**_arcs(r), "roots": roots, "lower": lower, "counters": np.zeros(1, np.int64)})


def mark_torn_edges(draw: st.DrawFn) -> Case:
    random, half, args = units(draw, num_segments=3)
    labels = random.integers(0, draw(st.sampled_from([1, 2, 50])), 2 * half).astype(draw(vertex_types))
    labels[0] = 0 if labels.any() else 7
    args |= {"segment_bits": SEGMENT_BITS, "both_ways": draw(st.integers(0, 1))}
    return Case({**args, "labels": labels, "is_mismatch": np.zeros(2 * half, np.uint8)})


def hook_roots_of_edges(draw: st.DrawFn) -> Case:
    random, half, args = units(draw, num_segments=3)
    dtype = draw(vertex_types)
    roots = random.integers(0, draw(st.integers(1, 2 * half)), 2 * half).astype(dtype)
    args |= {"segment_bits": SEGMENT_BITS, "roots": roots, "lower": np.arange(2 * half).astype(dtype)}
    return Case({**args, "counters": np.zeros(1, np.int64)})
