"""Arguments for the kernels of algorithms/strong_components/kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, bits, rows, seeds, some, vertex_types, widths

from mgraph.algorithms.strong_components.coloring import _numbering
from mgraph.types import none_of

# Without weights: only the width of a vertex varies.
unweighted = rows(widths(TYPES[0], TYPES[2]))


def _drawn_numbering(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    return _numbering(r.types.vertex, draw(st.integers(0, r.num_states - 1)))


def _priorities(states: np.ndarray, numbering: np.ndarray) -> np.ndarray:
    pivot, factor, _, mask = numbering.tolist()
    return np.array([(state - pivot) * factor & mask for state in states.tolist()])


def _named(random: np.random.Generator, n: int, numbering: np.ndarray) -> np.ndarray:
    """Return for every state a state of at most its priority; ways to the last one are long."""
    order = np.argsort(_priorities(np.arange(n), numbering))
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    lower = np.where(some(random, n), np.maximum(place - 1, 0), random.integers(0, place + 1))
    return order[np.where(some(random, n, 0.8), lower, place)]


def _regions(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    return r.random.integers(0, draw(st.integers(1, 4)), r.num_states).astype(r.types.vertex)


def paint(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_states // 32, "live": bits(some(r.random, r.num_states))}
    args |= {"numbering": _drawn_numbering(draw, r), "colors": Unwritten(r.num_states, r.types.vertex)}
    return Case(args)


def push_colors(draw: st.DrawFn) -> Case:
    """Draw a frontier of the smallest colors, so that the order of threads has no effect."""
    r = draw(unweighted)
    frontier = r.owned()
    colors = r.random.integers(5, 9, r.num_states).astype(r.types.vertex)
    colors[frontier] = 1
    regions = _regions(draw, r)
    offsets = r.offsets(frontier)
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "frontier": frontier,
        "num_frontier": len(frontier),
        "offsets": offsets,
        "begins": r.indptr[frontier.astype(np.int64) - r.base],
        "targets": r.targets,
        "live": bits(some(r.random, r.num_states, 0.8)),
        "regions": regions,
        "colors": colors,
        "marked": bits(np.zeros(r.num_states, bool)),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(1, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def follow_colors(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    numbering = _drawn_numbering(draw, r)
    listed = r.owned(0.7)
    colors = _priorities(_named(r.random, r.num_states, numbering), numbering).astype(r.types.vertex)
    args = {"lo": 0, "hi": len(listed), "listed": listed, "numbering": numbering, "colors": colors}
    args |= {"marked": bits(some(r.random, r.num_states, 0.1)), "found": Unwritten(r.num_states, r.types.vertex)}
    return Case({**args, "counters": np.zeros(1, np.int64)}, queues(counters_0=("found",)))


def merge_colors(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    n = draw(st.integers(1, 300))
    args = {
        "lo": 0,
        "hi": n,
        "states": r.random.integers(0, r.num_states, n).astype(r.types.vertex),
        "values": r.random.integers(0, 6, n).astype(r.types.vertex),
        "base": r.base,
        "num_owned": r.num_owned,
        "colors": r.random.integers(0, 6, r.num_states).astype(r.types.vertex),
        "marked": bits(np.zeros(r.num_states, bool)),
        "found": Unwritten(r.num_owned, r.types.vertex),
        "counters": np.zeros(1, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def list_lowered(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    listed = r.owned()
    before, colors = (r.random.integers(0, 2, n).astype(r.types.vertex) for n in (r.num_owned, r.num_states))
    args = {"lo": 0, "hi": len(listed), "listed": listed, "before": before, "base": r.base, "colors": colors}
    args |= {"found": Unwritten(len(listed), r.types.vertex), "counters": np.zeros(1, np.int64)}
    return Case(args, queues(counters_0=("found",)))


def settle_colors(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    numbering = _drawn_numbering(draw, r)
    listed = r.owned()
    few = _priorities(r.random.integers(0, r.num_states, 3), numbering)
    regions, colors = (r.random.choice(few, r.num_states).astype(r.types.vertex) for _ in range(2))
    args = {"lo": 0, "hi": len(listed), "listed": listed, "base": r.base, "numbering": numbering}
    args |= {"regions": regions, "colors": colors, "roots": r.no_vertices(r.num_owned)}
    args |= {name: Unwritten(len(listed), r.types.vertex) for name in ("left", "settled")}
    return Case({**args, "counters": np.zeros(2, np.int64)}, queues(counters_0=("left",), counters_1=("settled",)))


def trim(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    listed = r.owned()
    args = {"lo": 0, "hi": len(listed), "listed": listed, "base": r.base, "indptr": r.indptr, "targets": r.targets}
    args |= {"live": bits(some(r.random, r.num_states, draw(st.sampled_from((0.02, 0.5, 1.0)))))}
    args |= {"regions": _regions(draw, r)}
    args |= {name: Unwritten(len(listed), r.types.vertex) for name in ("left", "trimmed")}
    return Case({**args, "counters": np.zeros(3, np.int64)}, queues(counters_0=("left",), counters_1=("trimmed",)))


def lower_labels(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    ids = np.promote_types(r.types.vertex, draw(vertex_types))
    users = r.random.permutation(r.num_owned).astype(ids) if draw(st.booleans()) else None
    roots = r.random.integers(0, r.num_states, r.num_owned).astype(r.types.vertex)
    args = {"lo": 0, "hi": r.num_owned, "roots": roots, "users": users, "base": r.base}
    return Case({**args, "smallest": np.full(r.num_states, none_of(ids), ids)})


def label_isolated(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 300))
    labels = np.random.default_rng(draw(seeds)).integers(-1, 3, n)
    return Case({"lo": 0, "hi": n, "first": draw(st.integers(0, 100)), "labels": labels})
