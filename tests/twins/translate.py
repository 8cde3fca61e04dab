"""Arguments for the kernels of translate.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import DrawnRows, rows, some, types_found

from mgraph.types import none_of


def _range(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return a range of user ids; the last positions are of vertices without arcs."""
    n = draw(st.integers(1, r.num_owned))
    num_positions = draw(st.integers(0, r.num_owned))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex) if draw(st.booleans()) else None
    first = 0 if table is not None else draw(st.integers(0, r.num_owned - n))
    shape = {"first": first, "num_positions": num_positions, "stride": r.stride, "multiplier": r.multiplier}
    return {"lo": 0, "hi": n, "positions": table, **shape}


def find_positions(draw: st.DrawFn) -> Case:
    r = draw(rows())
    n, first = draw(st.integers(1, r.num_owned)), draw(st.integers(0, 9))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex)
    words = r.random.integers(max(first - 3, 0), first + n + 3, draw(st.integers(1, 40)))
    return Case({"lo": 0, "hi": len(words), "positions": table, "first": first, "num_users": n, "words": words})


def translate_distances(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    args = _range(draw, r)
    out = r.types.dist if r.types.dist.kind == "f" else np.dtype(np.int64)
    return Case({**args, "values": r.distances(), "out": Unwritten(args["hi"], out)})


def translate_tree(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    args = _range(draw, r)
    parents = r.random.integers(0, r.num_owned, r.num_states).astype(r.types.vertex)
    parents[some(r.random, r.num_states, 0.3)] = none_of(r.types.vertex)
    users = r.random.permutation(r.num_states).astype(np.uint32) if draw(st.booleans()) else None
    args |= {"values": None, "parents": parents, "users": users, "out_distances": None}
    if draw(st.booleans()):
        out = r.types.dist if r.types.dist.kind == "f" else np.dtype(np.int64)
        args |= {"values": r.distances(), "out_distances": Unwritten(args["hi"], out)}
    return Case({**args, "out_parents": Unwritten(args["hi"], np.int64)})
