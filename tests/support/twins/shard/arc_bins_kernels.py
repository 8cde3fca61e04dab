"""Arguments for the kernels of shard/arc_bins_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import rows, seeds

from mgraph.shard.arc_bins_kernels import NO_END, STRIPE

SEGMENT_BITS = 4
BIN_BITS = 5


def _arcs(draw: st.DrawFn) -> tuple[dict, np.ndarray]:
    """Return the arguments of in-rows in tiles, and how many arcs each tile has."""
    r = draw(rows())
    if draw(st.booleans()):
        r = r.lengthened(5000)  # more than a block reads at once
    num_segments = -(-r.num_states >> SEGMENT_BITS)
    num_bins = -(-r.num_owned >> BIN_BITS)
    args = {
        "lo": 0,
        "hi": len(r.targets),
        "indptr": r.indptr,
        "num_rows": r.num_owned,
        "targets": r.targets,
        "segment_bits": SEGMENT_BITS,
        "bin_bits": BIN_BITS,
        "num_segments": num_segments,
    }
    row_of = np.repeat(np.arange(r.num_owned), np.diff(r.indptr))
    tiles = (row_of >> BIN_BITS) * num_segments + (r.targets.astype(np.int64) >> SEGMENT_BITS)
    return args, np.bincount(tiles, minlength=num_bins * num_segments)


def count_tile_arcs(draw: st.DrawFn) -> Case:
    args, counts = _arcs(draw)
    return Case({**args, "counts": np.zeros_like(counts)}, cut=draw(st.none() | st.integers(0, args["hi"])))


def place_in_tiles(draw: st.DrawFn) -> Case:
    args, counts = _arcs(draw)
    stripes = -(-counts // STRIPE)
    num_slots = STRIPE * int(stripes.sum())
    tile_of = np.repeat(np.arange(len(stripes)), STRIPE * stripes)

    def sorted_in_tiles(result: Arrays) -> Arrays:
        order = np.lexsort([result["starts"], result["ends"], tile_of])
        return result | {name: result[name][order] for name in ("starts", "ends")}

    args |= {"first_stripes": np.cumsum(stripes) - stripes, "placed": np.zeros_like(counts)}
    args |= {"starts": np.zeros(num_slots, np.uint16), "ends": np.full(num_slots, NO_END, np.uint16)}
    return Case(args, sorted_in_tiles, cut=draw(st.none() | st.integers(0, args["hi"])))


def list_stripes(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    counts = random.choice([0, 1, 2, 700], draw(st.integers(1, 60)))
    listed = np.append(0, np.cumsum(counts))
    num_stripes = int(listed[-1])
    order = random.permutation(len(counts))
    firsts = np.empty_like(counts)
    firsts[order] = np.cumsum(counts[order]) - counts[order]
    args = {"lo": 0, "hi": num_stripes, "listed": listed, "num_tiles": len(counts), "first_stripes": firsts}
    return Case({**args, "stripes": Unwritten(num_stripes, np.uint32)})
