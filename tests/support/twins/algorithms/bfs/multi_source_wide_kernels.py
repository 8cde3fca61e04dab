"""Arguments for the kernels of algorithms/bfs/multi_source_wide_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.bfs.multi_source_kernels import words
from twins.algorithms.bfs.step_kernels import unweighted
from twins.case import Arrays, Case, Unwritten
from twins.drawing import DrawnRows

from mgraph.algorithms.bfs.multi_source_wide_kernels import BLOCK_ROW, WORDS

ROOTS = 64 * WORDS


def _rows(draw: st.DrawFn) -> DrawnRows:
    """Return rows, one of them perhaps as long as those that a block gathers."""
    r = draw(unweighted)
    return r.lengthened(BLOCK_ROW) if draw(st.booleans()) else r


def push_wide(draw: st.DrawFn) -> Case:
    r = _rows(draw)
    frontier = (r.owned() - r.types.vertex.type(r.base)).astype(r.types.vertex)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "indptr": r.indptr,
        "targets": r.targets,
        "front": words(r, WORDS * r.num_owned, 0.9),
        "incoming": words(r, WORDS * r.num_states, 0.2),
    }
    return Case(args)


def pull_wide(draw: st.DrawFn) -> Case:
    r = _rows(draw)
    chosen = (r.owned() - r.types.vertex.type(r.base)).astype(r.types.vertex)
    # Where all bits are alike, rows end early.
    front = words(r, WORDS * r.num_states, draw(st.sampled_from([0.1, 1.0])))
    args = {
        "lo": 0,
        "hi": len(chosen),
        "rows": chosen,
        "indptr": r.indptr,
        "targets": r.targets,
        "front": front,
        "seen": words(r, WORDS * r.num_owned),
        "alive": words(r, WORDS, 0.8),
        "incoming": np.zeros(WORDS * r.num_owned, np.int64),
    }
    # A twin that scans whole rows finds no more: of a row that ends early all wanted bits are found.
    return Case(args)


pull_wide_long = pull_wide


def _sorted_lists(result: Arrays) -> Arrays:
    """Sort the queues; the long rows are at the end of the same array as the short ones."""
    num_front, _, num_short, num_long, _ = result["counters"].tolist()
    result["frontier"][:num_front].sort()
    result["rows"][:num_short].sort()
    rows = result["rows"]
    rows[len(rows) - num_long :].sort()
    return result


def settle_wide(draw: st.DrawFn) -> Case:
    r = _rows(draw)
    n = r.num_owned
    level = draw(st.integers(0, 40))
    lengths = r.random.choice([0, 1, 7, BLOCK_ROW - 1, BLOCK_ROW], n)
    args = {
        "lo": 0,
        "hi": n,
        "indptr": r.indptr,
        "in_indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "level": level,
        "num_owned": n,
        "incoming": words(r, WORDS * n),
        "seen": words(r, WORDS * n),
        "front": Unwritten(WORDS * n, np.int64),
        "planes": words(r, level.bit_length() * WORDS * n),
        "frontier": Unwritten(n, r.types.vertex),
        "rows": Unwritten(n, r.types.vertex),
        "alive": np.concatenate([words(r, WORDS, 0.7), np.zeros(WORDS, np.int64)]),
        "counters": np.zeros(5, np.int64),
    }
    return Case(args, _sorted_lists)


def count_wide(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier = (r.owned() - r.types.vertex.type(r.base)).astype(r.types.vertex)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "front": words(r, WORDS * r.num_owned, 0.9),
        "counts": r.random.integers(0, 100, ROOTS),
    }
    return Case(args)


def levels_wide(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    num_planes = draw(st.integers(0, 9))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "seen": words(r, WORDS * r.num_owned),
        "planes": words(r, num_planes * WORDS * r.num_owned),
        "num_planes": num_planes,
        "num_owned": r.num_owned,
        "root": draw(st.sampled_from([0, 63, 64, ROOTS - 1])),
        "levels": Unwritten(r.num_owned, np.int32),
    }
    return Case(args)
