"""Arguments for the kernels of algorithms/bfs/multi_source_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.bfs.step_kernels import unweighted
from twins.case import Case, Unwritten, queues
from twins.drawing import DrawnRows, some

every = st.sampled_from([1, (1 << 5) - 1, (1 << 40) - 1, -1])


def words(r: DrawnRows, n: int, share: float = 0.5) -> np.ndarray:
    """Return 64-bit words; a share of them is not 0, a few have all bits."""
    words = r.random.integers(-(2**63), 2**63, n) & r.random.integers(-(2**63), 2**63, n)
    words[~some(r.random, n, share)] = 0
    words[some(r.random, n, 0.1)] = -1
    return words


def _rows(r: DrawnRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the local indices of some owned vertices, and the prefix sums of their degrees."""
    states = r.owned()
    return (states - r.base).astype(r.types.vertex), r.offsets(states)


def push_words(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier, offsets = _rows(r)
    # A vertex with a word that was not 0 is not found.
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "frontier": frontier,
        "num_frontier": len(frontier),
        "offsets": offsets,
        "indptr": r.indptr,
        "targets": r.targets,
        "front": words(r, r.num_owned, 0.9),
        "incoming": words(r, r.num_states, 0.2),
        "found": Unwritten(r.num_states, r.types.vertex),
        "counters": np.zeros(1, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))


def merge_words(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    n = draw(st.integers(1, 300))
    args = {
        "lo": 0,
        "hi": n,
        "states": r.random.integers(0, r.num_states, n).astype(r.types.vertex),
        "words": words(r, n),
        "incoming": words(r, r.num_states, 0.3),
    }
    return Case(args)


def pull_words(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    bits = draw(every)
    chosen, offsets = _rows(r)
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "rows": chosen,
        "num_rows": len(chosen),
        "offsets": offsets,
        "indptr": r.indptr,
        "targets": r.targets,
        "fronts": words(r, r.num_states) & bits,
        "seen": words(r, r.num_owned) & bits,
        "all_roots_mask": bits,
        "incoming": np.zeros(r.num_owned, np.int64),
    }
    return Case(args)


def settle_words(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    bits = draw(every)
    level = draw(st.integers(0, 40))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "in_indptr": np.concatenate([[0], np.cumsum(r.random.integers(0, 9, r.num_owned))]).astype(np.int64),
        "level": level,
        "num_owned": r.num_owned,
        "all_roots_mask": bits,
        "incoming": words(r, r.num_owned) & bits,
        "seen": words(r, r.num_owned) & bits,
        "front": Unwritten(r.num_owned, np.int64),
        "planes": words(r, level.bit_length() * r.num_owned),
        "frontier": Unwritten(r.num_owned, r.types.vertex),
        "rows": Unwritten(r.num_owned, r.types.vertex),
        "counters": np.zeros(4, np.int64),
    }
    return Case(args, queues(counters_0=("frontier",), counters_2=("rows",)))


def count_roots(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier, _ = _rows(r)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "front": words(r, r.num_owned, 0.9),
        "counts": r.random.integers(0, 100, 64),
    }
    return Case(args)


def levels_of_root(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    num_planes = draw(st.integers(0, 9))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "seen": words(r, r.num_owned),
        "planes": words(r, num_planes * r.num_owned),
        "num_planes": num_planes,
        "num_owned": r.num_owned,
        "root": draw(st.sampled_from([0, 5, 63])),
        "levels": Unwritten(r.num_owned, np.int32),
    }
    return Case(args)
