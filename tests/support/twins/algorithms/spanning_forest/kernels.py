"""Arguments for the kernels of algorithms/spanning_forest/kernels.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import DrawnRows, bits, rows, seeds, some, vertex_types, widths

from mgraph.algorithms.spanning_forest.kernels import EDGE_MASK, TOP
from mgraph.partition import Partition

LONG = 20  # of rows up to 75 arcs
WEIGHTS = [np.dtype(name) for name in ("uint32", "int32", "int64", "uint8", "float32", "float64")]


def any_weights(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    """Return weights of any dtype with many ties, and with the extremes of the dtype."""
    dtype = draw(widths(*WEIGHTS))
    if dtype.kind == "f":
        palette = [-np.finfo(dtype).max, -1.5, -0.5, 0.0, 0.5, 3.0, np.finfo(dtype).max]
    else:
        palette = [np.iinfo(dtype).min, 0, 1, 2, np.iinfo(dtype).max]
    return r.random.choice(np.array(palette, dtype), len(r.targets))


def _of_rows(draw: st.DrawFn) -> tuple[DrawnRows, dict]:
    r = draw(rows())
    shared = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets, "weights": any_weights(draw, r)}
    return r, shared


def lightest_arcs(draw: st.DrawFn) -> Case:
    r, args = _of_rows(draw)
    out = {"above": Unwritten(r.num_owned, r.types.vertex), "arcs": Unwritten(r.num_owned, np.int64)}
    return Case({**args, "base": r.base, "longest": draw(st.sampled_from([LONG, 100])), **out})


def lightest_arcs_of_hubs(draw: st.DrawFn) -> Case:
    r, args = _of_rows(draw)
    out = {"above": Unwritten(r.num_owned, r.types.vertex), "arcs": Unwritten(r.num_owned, np.int64)}
    runs = draw(st.integers(1, r.num_owned))
    args |= {"hi": runs, "num_rows": args["hi"], "num_runs": runs}
    order = ("lo", "hi", "num_rows", "num_runs", "indptr", "targets", "weights")
    return Case({**{name: args[name] for name in order}, "longest": LONG, **out})


def sort_rows(r: DrawnRows) -> None:
    """Sort every row by the targets' positions."""
    order = positions(r)
    for u in range(r.num_owned):
        row = r.targets[r.indptr[u] : r.indptr[u + 1]]
        row[:] = row[np.argsort(order[row], kind="stable")]


def positions(r: DrawnRows) -> np.ndarray:
    """Return the position of every state."""
    states = np.arange(r.num_states)
    return states if r.multiplier == 1 else Partition(r.num_states, r.multiplier, cyclic=True).position(states)


def find_uppers(draw: st.DrawFn) -> Case:
    r = draw(rows())
    sort_rows(r)
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets}
    shape = {"base": r.base, "stride": r.stride, "multiplier": r.multiplier}
    return Case({**args, **shape, **{name: Unwritten(r.num_owned, np.int64) for name in ("uppers", "lengths")}})


def _edges(r: DrawnRows) -> dict[str, Any]:
    """Return bounds of the edges of every row: a part of its arcs, at its end."""
    lengths = (r.random.random(r.num_owned) * (np.diff(r.indptr) + 1)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return {"offsets": offsets, "num_rows": r.num_owned, "uppers": r.indptr[1:] - lengths}


def find_arcs(draw: st.DrawFn) -> Case:
    r = draw(rows())
    edges = _edges(r)
    total = int(edges["offsets"][-1])
    chosen = r.random.integers(0, max(total, 1), draw(st.integers(0, 100)) if total else 0)
    out = {"rows": Unwritten(len(chosen), np.int64), "arcs": Unwritten(len(chosen), np.int64)}
    return Case({"lo": 0, "hi": len(chosen), "chosen": chosen, **edges, **out})


def sort_list(result: Arrays, place: int, prefix: str = "") -> Arrays:
    """Sort a work list, as its order may differ, and drop entries beyond its capacity."""
    ends, keys, edges = (f"{prefix}{name}" for name in ("ends", "keys", "edges"))
    count = int(result["counters"][place])
    if count > len(result[keys]):
        return {"counters": result["counters"], "written": result[f"written {keys}"]}
    pairs = result[ends].reshape(-1, 2)[:count]
    columns = [result[keys][:count], pairs[:, 0], pairs[:, 1]]
    if edges in result:
        columns.append(result[edges][:count])
    order = np.lexsort(columns)
    pairs[:] = pairs[order]
    for column in (result[keys][:count], *([result[edges][:count]] if edges in result else [])):
        column[:] = column[order]
    return result


def mark_tree(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 500))
    dtype = draw(vertex_types)
    random = np.random.default_rng(draw(seeds))
    labels = random.integers(0, 3, n).astype(dtype)
    args = {"lo": 0, "hi": -(-n // 32), "num_states": n, "labels": labels, "tree": draw(st.integers(0, 3))}
    return Case({**args, "bits": Unwritten(-(-n // 32), np.uint32)})


def list_edges(draw: st.DrawFn) -> Case:
    r = draw(rows())
    edges = _edges(r)
    weights = any_weights(draw, r)
    total = int(edges["offsets"][-1])
    wide = draw(st.booleans()) or weights.itemsize == 8
    if draw(st.booleans()):
        # Hundreds of rows without edges among the edges of a warp.
        edges["offsets"] = np.concatenate([[0], np.repeat(edges["offsets"][1:], 40)])
        edges["uppers"] = np.repeat(edges["uppers"], 40)
        edges["num_rows"] = 40 * r.num_owned
    num_labels = max(r.num_states, r.base + edges["num_rows"])
    labels = r.random.integers(0, draw(st.sampled_from([2, 50])), num_labels).astype(r.types.vertex)
    room = draw(st.sampled_from([total, total // 2]))
    lo = draw(st.integers(0, total))
    middle = int(r.random.integers(-3, 3)) if wide else int(r.random.integers(-3, 3)) << 32
    least, most = draw(st.sampled_from([(np.iinfo(np.int64).min, TOP), (middle, TOP), (-TOP, middle)]))
    giant = draw(st.integers(0, 2))
    num_rows = edges.pop("num_rows")
    args = {"lo": lo, "hi": total, **edges, "targets": r.targets, "weights": weights, "labels": labels, "base": r.base}
    args |= {"inside": bits(labels == giant) if draw(st.booleans()) else None}
    args |= {"bounds": np.array([least, most, room, num_rows, giant]), "counters": np.zeros(1, np.int64)}
    args |= {"ends": Unwritten(2 * room, r.types.vertex), "keys": Unwritten(room, np.int64)}
    return Case(args | {"edges": Unwritten(room, np.int64) if wide else None}, lambda result: sort_list(result, 0))


def _work(draw: st.DrawFn) -> tuple[np.random.Generator, int, dict]:
    """Return a work list of edges between some trees, with few weights; names of edges are distinct."""
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    num_trees = draw(st.integers(2, 60))
    m = draw(st.integers(0, 300))
    ends = random.integers(0, num_trees, (m, 2))
    ends[ends[:, 0] == ends[:, 1], 1] = (ends[ends[:, 0] == ends[:, 1], 0] + 1) % num_trees
    weights = random.integers(-2, 3, m)
    edges = random.permutation(1000)[:m]
    wide = draw(st.booleans())
    keys = weights if wide else weights << 32 | edges
    work = {"ends": ends.astype(dtype).ravel(), "keys": keys, "edges": edges if wide else None}
    return random, num_trees, {"lo": 0, "hi": m, **work}


def sample_edges(draw: st.DrawFn) -> Case:
    r = draw(rows())
    edges = _edges(r)
    weights = any_weights(draw, r)
    step = draw(st.sampled_from([1, 7]))
    count = -(-int(edges["offsets"][-1]) // step)
    labels = r.random.integers(0, draw(st.sampled_from([2, 50])), r.num_states).astype(r.types.vertex)
    args = {"lo": 0, "hi": count, "step": step, "packed": int(draw(st.booleans()) and weights.itemsize < 8), **edges}
    args |= {"targets": r.targets, "weights": weights, "labels": labels, "base": r.base}
    return Case(args | {"keys": Unwritten(count, np.int64)})


def find_lightest(draw: st.DrawFn) -> Case:
    _, num_trees, args = _work(draw)
    del args["edges"]
    return Case({**args, "best": np.full(num_trees, TOP)})


def _least(work: dict, names: np.ndarray, num_trees: int) -> np.ndarray:
    best = np.full(num_trees, TOP)
    for side in (0, 1):
        np.minimum.at(best, work["ends"][side::2].astype(np.int64), names)
    return best


def find_first(draw: st.DrawFn) -> Case:
    random, num_trees, args = _work(draw)
    args["edges"] = random.permutation(1000)[: args["hi"]]
    return Case({**args, "best": _least(args, args["keys"], num_trees), "first": np.full(num_trees, TOP)})


def hook(draw: st.DrawFn) -> Case:
    random, num_trees, args = _work(draw)
    names = random.permutation(1000)[: args["hi"]]
    above = np.arange(num_trees, dtype=args["ends"].dtype)
    work = {name: args[name] for name in ("lo", "hi", "ends")}
    return Case({**work, "names": names, "best": _least(args, names, num_trees), "above": above})


def _hooked(draw: st.DrawFn, cycles: bool) -> tuple[np.random.Generator, np.ndarray]:
    """Return the parents of trees; if requested, some pairs are children of each other."""
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    above = np.array([random.integers(0, tree + 1) for tree in range(draw(st.integers(1, 300)))])
    names = random.permutation(len(above))
    renamed = np.empty_like(above)
    renamed[names] = names[above]
    if cycles:
        for root in np.flatnonzero((renamed == np.arange(len(renamed))) & some(random, len(renamed), 0.7)):
            below = np.flatnonzero((renamed == root) & (np.arange(len(renamed)) != root))
            renamed[root] = below[0] if len(below) else root
    return random, renamed.astype(dtype)


def remove_cycles(draw: st.DrawFn) -> Case:
    _, above = _hooked(draw, cycles=True)
    return Case({"lo": 0, "hi": len(above), "above": above})


def take_edges(draw: st.DrawFn) -> Case:
    random, above = _hooked(draw, cycles=False)
    base = draw(st.integers(0, len(above) - 1))
    own = above[base:]
    is_root = above == np.arange(len(above))
    best = random.integers(-5, 5, len(own)) << 32 | random.permutation(len(own))
    best[some(random, len(own), 0.2)] = TOP
    numbers = np.concatenate([[0], np.cumsum(is_root)]).astype(above.dtype)
    args = {"lo": 0, "hi": len(own), "above": own, "best": best, "numbers": numbers[base:], "base": base}
    return Case(args | {"mask": draw(st.sampled_from([EDGE_MASK, -1])), "forest": Unwritten(len(own), np.int64)})


def join(draw: st.DrawFn) -> Case:
    # No way is as long as one launch follows it: how far a longer one gets depends on the order of threads.
    _, above = _hooked(draw, cycles=False)
    counters = np.zeros(2, np.int64)
    return Case(
        {"lo": 0, "hi": len(above), "above": above, "is_root": Unwritten(len(above), above.dtype), "counters": counters}
    )


def renumber(draw: st.DrawFn) -> Case:
    _, above = _hooked(draw, cycles=False)
    n = len(above)
    numbers = np.concatenate([[0], np.cumsum(above == np.arange(n))]).astype(above.dtype)
    args = {"lo": 0, "hi": n, "num_trees": n, "above": above, "numbers": numbers, "counters": np.zeros(3, np.int64)}
    return Case(args | {"labels": Unwritten(n, above.dtype)})


def contract(draw: st.DrawFn) -> Case:
    random, num_trees, args = _work(draw)
    labels = random.integers(0, draw(st.sampled_from([1, 3, 40])), num_trees).astype(args["ends"].dtype)
    m = args["hi"]
    dtype = labels.dtype
    args |= {"labels": labels, "counters": np.zeros(2, np.int64)}
    args |= {"new_ends": Unwritten(2 * m, dtype), "new_keys": Unwritten(m, np.int64)}
    args["new_edges"] = None if args["edges"] is None else Unwritten(m, np.int64)
    return Case(args, lambda result: sort_list(result, 1, "new_"))
