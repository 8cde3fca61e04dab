"""Arguments for the kernels of shard/rows_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import rows, seeds, vertex_types, weight_types


def look_up(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    n = draw(st.integers(1, 50))
    m = draw(st.integers(1, 300))
    ids = random.integers(0, n, m).astype(dtype)
    table = random.permutation(n).astype(draw(vertex_types))
    return Case({"lo": 0, "hi": m, "ids": ids, "table": table, "out": Unwritten(m, table.dtype)})


def _arcs(draw: st.DrawFn) -> tuple[np.random.Generator, int, int, dict]:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    weight = draw(weight_types)
    n = draw(st.integers(1, 20))
    m = draw(st.integers(1, 300))
    arcs = {
        "rows": random.integers(0, n, m).astype(dtype),
        "targets": random.integers(0, 9, m).astype(dtype),
        "weights": None if weight is None else random.integers(0, 9, m).astype(weight),
    }
    return random, n, m, arcs


def _starts(keys: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(keys.astype(np.int64), minlength=n))[:-1]]).astype(np.int64)


def _outputs(arcs: dict, m: int, *names: str) -> dict:
    return {f"out_{name}": None if arcs[name] is None else Unwritten(m, arcs[name].dtype) for name in names}


def _sort_slots(keys: np.ndarray, result: Arrays) -> Arrays:
    """Sort the contents of each bucket: their order depends on the schedule of threads."""
    columns = [name for name in result if name.startswith("out_")]
    order = np.lexsort([*(result[name] for name in columns), np.sort(keys)])
    return {**result, **{name: result[name][order] for name in columns}}


def bucket_arcs(draw: st.DrawFn) -> Case:
    random, _, m, arcs = _arcs(draw)
    owners = random.integers(0, 3, m).astype(arcs["rows"].dtype)
    args = {"lo": 0, "hi": m, "owners": owners, **arcs, "cursors": _starts(owners, 3)}
    args |= _outputs(arcs, m, "rows", "targets", "weights")
    return Case(args, lambda result: _sort_slots(owners, result))


def place_arcs(draw: st.DrawFn) -> Case:
    _, n, m, arcs = _arcs(draw)
    args = {"lo": 0, "hi": m, **arcs, "cursors": _starts(arcs["rows"], n), **_outputs(arcs, m, "targets", "weights")}
    return Case(args, lambda result: _sort_slots(arcs["rows"], result))


def pack_keys(draw: st.DrawFn) -> Case:
    r = draw(rows())
    first = draw(st.integers(0, r.num_owned - 1))
    args = {
        "lo": first,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "shift": 20,
        "first_row": first,
        "keys": Unwritten(int(r.indptr[-1] - r.indptr[first]), np.int64),
    }
    return Case(args)


def lightest_of_runs(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    lengths = random.integers(1, 5, draw(st.integers(1, 200)))
    m = int(lengths.sum())
    weights = random.integers(0, 100, m).astype(draw(weight_types.filter(lambda dtype: dtype is not None)))
    args = {
        "lo": 0,
        "hi": len(lengths),
        "starts": np.concatenate([[0], np.cumsum(lengths)]),
        "order": random.permutation(m),
        "weights": weights,
        "out_weights": Unwritten(len(lengths), weights.dtype),
    }
    return Case(args)


def unpack_rows(draw: st.DrawFn) -> Case:
    r = draw(rows())
    num_arcs = int(r.indptr[-1])
    begin = draw(st.integers(0, num_arcs))
    args = {
        "lo": begin,
        "hi": num_arcs,
        "indptr": r.indptr,
        "num_rows": r.num_owned,
        "first": r.first,
        "multiplier": r.multiplier,
        "begin": begin,
        "positions": Unwritten(num_arcs - begin, r.types.vertex),
    }
    return Case(args)


def first_targets(draw: st.DrawFn) -> Case:
    r = draw(rows())
    rows_given = {"indptr": r.indptr, "targets": r.targets, "num_rows": r.num_owned, "base": r.base}
    found = {
        "first_neighbors": Unwritten(r.num_owned, r.types.vertex),
        "num_degree_at_most_one": np.full(1, r.num_owned),
    }
    return Case({"lo": 0, "hi": r.num_owned, **rows_given, **found})
