"""Arguments for the kernels of shard/edge_order_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import rows, seeds, widths

# The most bits of a vertex beside a weight.
VERTEX_BITS = {0: 32, 8: 28, 32: 16}


def users_of_arcs(draw: st.DrawFn) -> Case:
    r = draw(rows())
    total = len(r.targets)
    arcs = r.random.integers(0, max(total, 1), draw(st.integers(0, 100)) if total else 0)
    local = np.searchsorted(r.indptr, arcs, side="right") - 1
    users = r.random.permutation(r.num_states).astype(r.types.vertex) if draw(st.booleans()) else None
    args = {"lo": 0, "hi": len(arcs), "arcs": arcs, "rows": local, "base": r.base, "targets": r.targets}
    return Case(args | {"users": users} | {name: Unwritten(len(arcs), np.int64) for name in ("lower", "higher")})


def _edges(draw: st.DrawFn) -> tuple[dict, int, int]:
    random = np.random.default_rng(draw(seeds))
    weight_bits = draw(widths(8, 32, 0))
    vertex_bits = VERTEX_BITS[weight_bits]
    n = draw(st.integers(0, 100))
    ends = {name: random.integers(0, 1 << vertex_bits, n) for name in ("sources", "targets")}
    # Of bytes no more than the patterns of unwritten memory allow: see Unwritten.
    most = 101 if weight_bits == 8 else 1 << weight_bits
    weights = random.integers(0, most, n).astype(f"u{weight_bits // 8}") if weight_bits else None
    return ends | {"weights": weights}, vertex_bits, weight_bits


def pack_edges(draw: st.DrawFn) -> Case:
    edges, vertex_bits, weight_bits = _edges(draw)
    n = len(edges["sources"])
    bits = {"vertex_bits": vertex_bits, "weight_bits": weight_bits}
    return Case({"lo": 0, "hi": n, **edges, **bits, "words": Unwritten(n, np.uint64)})


def unpack_edges(draw: st.DrawFn) -> Case:
    edges, vertex_bits, weight_bits = _edges(draw)
    n = len(edges["sources"])
    words = edges["sources"].astype(np.uint64) << np.uint64(vertex_bits) | edges["targets"].astype(np.uint64)
    out = {name: Unwritten(n, np.int64) for name in ("sources", "targets")}
    out["weights"] = None
    if edges["weights"] is not None:
        words = words << np.uint64(weight_bits) | edges["weights"].astype(np.uint64)
        out["weights"] = Unwritten(n, edges["weights"].dtype)
    return Case({"lo": 0, "hi": n, "words": words, "vertex_bits": vertex_bits, "weight_bits": weight_bits, **out})
