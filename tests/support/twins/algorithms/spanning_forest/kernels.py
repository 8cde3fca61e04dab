"""Arguments for the kernels of algorithms/spanning_forest/kernels.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import DrawnRows, rows, seeds, some, vertex_types, widths

from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.algorithms.spanning_forest.local_edges import order_keys
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
    keys = order_keys(np, args["weights"])
    none_is = np.iinfo(np.int64 if args["weights"].itemsize == 8 else np.int32).min
    lowest = draw(st.sampled_from([int(keys.min(initial=0)), int(none_is)]))
    bounds = {"base": r.base, "longest": draw(st.sampled_from([LONG, 100])), "lowest": lowest}
    out = {"above": Unwritten(r.num_owned, r.types.vertex), "arcs": Unwritten(r.num_owned, np.int64)}
    return Case({**args, **bounds, **out})


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


def _labels(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    """Return the tree of every state, of few or many trees."""
    return r.random.integers(0, draw(st.sampled_from([2, 50])), r.num_states).astype(r.types.vertex)


def list_light(draw: st.DrawFn) -> Case:
    r = draw(rows())
    sort_rows(r)
    total = len(r.targets)
    weights = any_weights(draw, r)
    wide = draw(st.booleans()) or weights.itemsize == 8
    room = draw(st.sampled_from([total, total // 4]))
    keys = order_keys(np, weights)
    heaviest = int(r.random.choice(keys)) if total and draw(st.booleans()) else TOP
    last = int(r.random.integers(0, r.num_states)) if draw(st.booleans()) else TOP
    shape = r.num_owned, r.base, r.stride, r.multiplier
    args = {"lo": draw(st.integers(0, total)), "hi": total, "indptr": r.indptr, "targets": r.targets}
    args |= {"weights": weights, "labels": _labels(draw, r)}
    args |= {"bounds": np.array([heaviest, last, room, *shape, 32]), "counters": np.zeros(1, np.int64)}
    args |= {"ends": Unwritten(2 * room, r.types.vertex), "keys": Unwritten(room, np.int64)}
    return Case(args | {"edges": Unwritten(room, np.int64) if wide else None}, lambda result: sort_list(result, 0))


def list_rows(draw: st.DrawFn) -> Case:
    r = draw(rows())
    out = {name: Unwritten(r.num_owned, np.int64) for name in ("rows", "lengths")}

    def sort_rows(result: Arrays) -> Arrays:
        count = int(result["counters"][0])
        order = np.argsort(result["rows"][:count])
        for column in (result["rows"], result["lengths"]):
            column[:count] = column[order]
        return result

    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "labels": _labels(draw, r), "base": r.base}
    return Case(args | {"counters": np.zeros(2, np.int64)} | out, sort_rows)


def _listed(room: int) -> Callable[[Arrays], Arrays]:
    """Return what sorts a list of arcs, as their order may differ, and drops them where they do not fit."""

    def sort_arcs(result: Arrays) -> Arrays:
        count = int(result["counters"][0])
        if count <= room:
            result["arcs"][:count].sort()
            return result
        return {name: result[name] for name in ("counters", "written arcs", "best") if name in result}

    return sort_arcs


def list_outside(draw: st.DrawFn) -> Case:
    r = draw(rows())
    labels = _labels(draw, r)
    weights = any_weights(draw, r)
    outside = np.flatnonzero(labels[r.base : r.base + r.num_owned] != labels[0])
    offsets = np.concatenate([[0], np.cumsum(np.diff(r.indptr)[outside])])
    total = int(offsets[-1])
    room = draw(st.sampled_from([total, total // 4]))
    shape = len(outside), r.base, r.stride, r.multiplier
    args = {"lo": draw(st.integers(0, total)), "hi": total, "offsets": offsets, "rows": outside, "indptr": r.indptr}
    args |= {"targets": r.targets, "weights": weights, "labels": labels}
    args |= {"bounds": np.array([room, *shape, 32]), "counters": np.zeros(1, np.int64)}
    has_best = weights.itemsize <= 4 and draw(st.booleans())
    out = {"arcs": Unwritten(room, np.int64), "best": np.full(len(outside), TOP) if has_best else None}
    return Case(args | out, _listed(room))


def append_best(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    n = draw(st.integers(0, 300))
    best = np.where(random.random(n) < 0.5, TOP, random.integers(-(2**40), 2**40, n))
    room = draw(st.sampled_from([n, n // 4]))
    args = {"lo": 0, "hi": n, "best": best, "mask": 2**32 - 1, "capacity": room, "counters": np.zeros(1, np.int64)}
    return Case(args | {"arcs": Unwritten(room, np.int64)}, _listed(room))


def _chosen(draw: st.DrawFn, r: DrawnRows) -> np.ndarray:
    """Return some arcs."""
    return r.random.integers(0, max(len(r.targets), 1), draw(st.integers(0, 100)) if len(r.targets) else 0)


def find_ends(draw: st.DrawFn) -> Case:
    r = draw(rows())
    arcs = _chosen(draw, r)
    args = {"lo": 0, "hi": len(arcs), "arcs": arcs, "indptr": r.indptr, "num_rows": r.num_owned, "targets": r.targets}
    args |= {"base": r.base, "stride": r.stride, "multiplier": r.multiplier}
    higher = Unwritten(len(arcs), np.int64) if draw(st.booleans()) else None
    return Case(args | {"lower": Unwritten(len(arcs), np.int64), "higher": higher})


def list_arcs(draw: st.DrawFn) -> Case:
    r = draw(rows())
    arcs = _chosen(draw, r)
    weights = any_weights(draw, r)
    wide = draw(st.booleans()) or weights.itemsize == 8
    args = {"lo": 0, "hi": len(arcs), "arcs": arcs, "indptr": r.indptr, "num_rows": r.num_owned, "targets": r.targets}
    args |= {"weights": weights, "labels": _labels(draw, r), "base": r.base, "shift": 32}
    args |= {"ends": Unwritten(2 * len(arcs), r.types.vertex), "keys": Unwritten(len(arcs), np.int64)}
    return Case(args | {"edges": Unwritten(len(arcs), np.int64) if wide else None})


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
    step = draw(st.sampled_from([1, 7]))
    count = -(-len(r.targets) // step)
    args = {"lo": 0, "hi": count, "step": step, "indptr": r.indptr, "num_rows": r.num_owned, "targets": r.targets}
    args |= {"weights": any_weights(draw, r), "labels": _labels(draw, r)}
    args |= {"base": r.base, "stride": r.stride, "multiplier": r.multiplier}
    return Case(args | {"keys": Unwritten(count, np.int64), "positions": Unwritten(count, np.int64)})


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
    return Case(args | {"mask": draw(st.sampled_from([2**32 - 1, -1])), "forest": Unwritten(len(own), np.int64)})


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
