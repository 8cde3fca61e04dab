"""Find shortest paths on one rank in one launch, near before far.

The loop is that of delta_stepping.py where the shard has weight-sorted rows, else that of near_far.py, and so are the
distances: the fixed point is unique. persistent_kernels.cu runs it on the device, where the rounds of a deep graph cost
microseconds.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.control_block import word_of
from mgraph.algorithms.common.cost_model import sssp_costs
from mgraph.algorithms.common.dtype_ladder import searched_bytes
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import DEVICE_RATES, WEIGHT_SORTED_ROWS
from mgraph.algorithms.sssp.near_far import default_delta
from mgraph.algorithms.sssp.persistent_kernels import (
    COUNTERS,
    HUB_BYTES,
    KINDS,
    LAUNCH_PARAMETERS,
    MAX_RECORDS,
    PIECE_ARCS,
    RECORD_WORDS,
    REPORT,
    find_distances,
    find_distances_by_weight,
    work_bytes,
    work_lengths,
)
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import PersistentBackend
from mgraph.backends.rates_file import require_rates
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard, long_rows
from mgraph.shard.weight_sorted_rows import SPARSE_DEGREE, class_scale
from mgraph.types import unreached_of

# Widths of a bucket over weight-sorted rows, as in near_far.py: in one launch arcs cost little and rounds much. Wider
# in natural order, where no vertex has many more arcs than others (uni24 on one H200: 7.3 ms with 7, 7.6 with 5; rmat24
# 2.8 and 2.6).
DELTA_PERSISTENT = 5.0
DELTA_EVEN = 7.0


def sssp_persistent(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    delta: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from positions `sources`; predecessors are found afterwards."""
    assert comm.size == 1, "one rank alone runs in one launch"
    run = shard.backend
    n = shard.num_owned
    assert isinstance(run, PersistentBackend), "the caller has checked"
    dist = run.xp.empty(n, dtype)
    if not n:
        return Traversal(dist, None)
    weight_sorted = shard.weight_sorted_rows is not None
    rows = shard.weight_sorted_rows or shard.rows
    delta = delta or default_delta(shard, dtype, DELTA_PERSISTENT if shard.info.order == "degree" else DELTA_EVEN)
    counters = run.to_device(_launch_words(shard, sources, dtype, cutoff, delta))
    words, on_host = run.host_words(len(REPORT) + RECORD_WORDS * MAX_RECORDS)
    on_host[0] = 0
    bits, queues, tags, log = work_lengths(n, len(rows.targets), weight_sorted=weight_sorted)
    (find_distances_by_weight if weight_sorted else find_distances)[run](
        0, n, run.abort_word, rows.indptr, rows.targets, rows.weights, dist,
        run.xp.empty(bits, np.uint32), run.xp.empty(queues, rows.targets.dtype), run.xp.empty(tags, np.uint32),
        counters, run.xp.empty(log, np.int64), words,
    )  # fmt: skip
    run.synchronize()
    done, num_records, started = on_host[: len(REPORT)].tolist()
    if not done:
        raise CommAborted("the search was aborted at a grid barrier")
    records = on_host[len(REPORT) :][: num_records * RECORD_WORDS].copy()
    trace.add_persistent(lambda: _rounds(started, records))
    return Traversal(dist, None)


def _launch_words(
    shard: Shard, sources: list[int], dtype: np.dtype, cutoff: float | int | None, delta: float | int
) -> np.ndarray:
    """Return the kernel's counters, with the launch parameters and the sources in them."""
    states = sorted({int(shard.partition.state(p)) for p in sources})
    hubs = min(shard.num_owned, HUB_BYTES // dtype.itemsize) if shard.info.order == "degree" else 0
    parameters = LAUNCH_PARAMETERS.arranged(
        cutoff=word_of(unreached_of(dtype) if cutoff is None else cutoff, dtype),
        delta=word_of(delta, dtype),
        num_sources=len(states),
        hubs=hubs,
        pulls=not shard.info.directed,
        scale=word_of(class_scale(shard.info), np.dtype(np.float64)),
        long_rows=long_rows(shard, PIECE_ARCS),
    )
    run = shard.backend
    assert isinstance(run, PersistentBackend), "the caller has checked"
    costs = sssp_costs(require_rates(run), shard.num_owned, dtype.itemsize)
    counters = np.zeros(COUNTERS["sources"] + len(states), np.int64)
    counters[: len(parameters) + len(costs)] = (*parameters, *costs)
    counters[COUNTERS["sources"] :] = states
    return counters


def _rounds(started: int, log: np.ndarray) -> list[dict]:
    """Return a record for each round; the last record of a full log adds up all further ones."""
    kinds, frontiers, arcs, ended = log.reshape(-1, RECORD_WORDS).T.tolist()
    times = np.round(np.diff(ended, prepend=started) / 1000, 1).tolist()
    return [
        {"method": KINDS[kind], "frontier": frontier, "arcs": scanned, "microseconds": time, "bytes": 0}
        for kind, frontier, scanned, time in zip(kinds, frontiers, arcs, times, strict=True)
    ]


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of distances, queues and marks, and of predecessors; sums of degrees fit the freed queues."""
    owned = sizes.owned
    arcs = sizes.row_arcs
    vertex = sizes.vertex
    work = work_bytes(owned, arcs, vertex, weight_sorted=arcs >= SPARSE_DEGREE * owned)
    return searched_bytes(sizes, has_peer_buffers=False) * owned + work + (vertex + 9) * owned


VARIANT = Variant(
    "sssp.persistent",
    when="on one GPU, in one launch",
    applies=lambda setting: setting.layout == "rows" and setting.has_persistent_kernels and setting.num_ranks == 1,
    needs=(DEVICE_RATES,),
    wants=(WEIGHT_SORTED_ROWS,),
    bytes=_bytes,
    run=sssp_persistent,
)
