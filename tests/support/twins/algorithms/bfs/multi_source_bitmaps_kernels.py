"""Arguments for the kernels of algorithms/bfs/multi_source_bitmaps_kernels.py."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.bfs.multi_source_kernels import words
from twins.algorithms.bfs.step_kernels import unweighted
from twins.case import Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, bits, rows, some, widths

from mgraph.algorithms.bfs.multi_source_bitmaps_kernels import BLOCK_ROW, STATE, WORDS


def _rows(draw: st.DrawFn) -> DrawnRows:
    """Return rows of the only rank, with a vertex for each state."""
    r = draw(rows(widths(TYPES[0], TYPES[2]), ranks=st.just((1, 0))))
    targets = r.targets % r.types.vertex.type(r.num_owned)
    return dataclasses.replace(r, num_states=r.num_owned, targets=targets)


def _bitmap(r: DrawnRows, share: float) -> np.ndarray:
    """Return a bitmap of the vertices, of whole 64-bit words, as bytes."""
    flags = np.zeros(-(-r.num_owned // 64) * 64, bool)
    flags[: r.num_owned] = some(r.random, r.num_owned, share)
    return bits(flags).view(np.uint8)


def _settled(r: DrawnRows, draw: st.DrawFn) -> dict:
    """Return the arrays that a level settles; the plane that it begins is 0."""
    words_of_plane = WORDS * r.num_owned
    level = draw(st.integers(0, 40))
    planes = words(r, level.bit_length() * words_of_plane)
    if level and level & (level - 1) == 0:
        planes[-words_of_plane:] = 0
    return {
        "level": level,
        "num_owned": r.num_owned,
        "seen": words(r, words_of_plane),
        "next_front": words(r, words_of_plane, 0.5),
        "next_marks": np.concatenate([np.zeros_like(_bitmap(r, 0)), _bitmap(r, 1)]),
        "planes": planes,
        "state": np.concatenate([words(r, WORDS, 0.8), np.zeros(STATE.total - WORDS, np.int64)]),
    }


def _pulled(draw: st.DrawFn, num_long: int) -> tuple[DrawnRows, dict]:
    r = _rows(draw)
    for _ in range(num_long):
        r = r.lengthened(BLOCK_ROW)
    settled = _settled(r, draw)
    settled["state"][STATE["tests_front"]] = draw(st.integers(0, 1))
    return r, {
        "indptr": r.indptr,
        "targets": r.targets,
        # Where all bits are alike, rows end early.
        "front": words(r, WORDS * r.num_owned, draw(st.sampled_from([0.1, 1.0]))),
        "marks": np.concatenate([_bitmap(r, 0.7), _bitmap(r, 0.8)]),
        **settled,
    }


def pull_bitmaps(draw: st.DrawFn) -> Case:
    r, args = _pulled(draw, draw(st.integers(0, 1)))
    return Case({"lo": 0, "hi": -(-r.num_owned // 8), **args})


def pull_bitmaps_long(draw: st.DrawFn) -> Case:
    r, args = _pulled(draw, draw(st.integers(1, 4)))
    long = np.flatnonzero(np.diff(r.indptr) >= BLOCK_ROW).astype(r.types.vertex)
    return Case({"lo": 0, "hi": len(long), "rows": r.random.permutation(long), **args})


def settle_bitmaps(draw: st.DrawFn) -> Case:
    r = _rows(draw)
    lengths = r.random.choice([0, 1, 7, BLOCK_ROW - 1, BLOCK_ROW], r.num_owned)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Case({"lo": 0, "hi": -(-r.num_owned // 32), "indptr": indptr, **_settled(r, draw)})


def list_front(draw: st.DrawFn) -> Case:
    r = _rows(draw)
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "marks": np.concatenate([_bitmap(r, 0.5), _bitmap(r, 0.5)]),
        "frontier": Unwritten(r.num_owned, r.types.vertex),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("frontier",)))


def _frontier(r: DrawnRows) -> np.ndarray:
    """Return all vertices, as a frontier lists them on one rank."""
    return (r.owned() - r.types.vertex.type(r.base)).astype(r.types.vertex)


def push_front(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    r = r.lengthened(BLOCK_ROW) if draw(st.booleans()) else r
    frontier = _frontier(r)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "indptr": r.indptr,
        "targets": r.targets,
        "front": words(r, WORDS * r.num_owned, 0.9),
        "next_front": words(r, WORDS * r.num_states, 0.2),
    }
    return Case(args)


def count_front(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    frontier = _frontier(r)
    args = {
        "lo": 0,
        "hi": len(frontier),
        "frontier": frontier,
        "front": words(r, WORDS * r.num_owned, 0.9),
        "counts": r.random.integers(0, 100, 64 * WORDS),
    }
    return Case(args)


def assemble_levels(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    num_planes = draw(st.integers(0, 9))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "seen": words(r, WORDS * r.num_owned),
        "planes": words(r, num_planes * WORDS * r.num_owned),
        "num_planes": num_planes,
        "num_owned": r.num_owned,
        "root": draw(st.sampled_from([0, 63, 64, 64 * WORDS - 1])),
        "levels": Unwritten(r.num_owned, np.int32),
    }
    return Case(args)
