"""Find shortest paths on one rank in one launch, near before far.

The loop is that of delta_stepping.py where the shard has lightest arcs, else that of near_far.py, and so are the
distances: the fixed point is unique. persistent_kernels.cu runs it on the device, where the rounds of a deep graph cost
microseconds. Where even that is too much the CPU is faster: the first search of a graph ends with the bucket of its
round TRIAL_ROUNDS, and its time decides (common/gpu_or_host.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mgraph.algorithms.common.control_block import word_of
from mgraph.algorithms.common.cost_model import sssp_costs
from mgraph.algorithms.common.dtype_ladder import end_of, searched_bytes
from mgraph.algorithms.common.gpu_or_host import try_gpu
from mgraph.algorithms.common.traversal import Trace, Traversal, watched_and_listed
from mgraph.algorithms.derived import DEVICE_RATES, LIGHTEST_ARCS
from mgraph.algorithms.sssp.near_far import default_delta, drop_unsettled
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
from mgraph.backends.base import Allocated, Bound, PersistentBackend
from mgraph.backends.rates_file import require_rates
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.lightest_arcs import SPARSE_DEGREE, class_scale
from mgraph.shard.shard import Shard, cached_on_shard, long_rows
from mgraph.types import unreached_of

# Widths of a bucket by lightest arcs, as in near_far.py: in one launch arcs cost little, rounds much. Narrower
# where pulls settle what is far (rmat28 on one H200: 25 ms with 1.7, 32 with 5; a directed web 1.3 and 0.9). Wider in
# natural order, where no vertex has many more arcs than others (uni24: 7.3 ms with 7, 7.6 with 5).
DELTA_PULLED = 1.7
DELTA_PUSHED = 5.0
DELTA_EVEN = 7.0
# The share of all arcs that a bucket has, about, when it may be widened.
BUCKET_SHARE = 1 / 8
# Rounds of a search that finds out whether the buckets of a graph are too small for the GPU, and of all others.
TRIAL_ROUNDS = 1 << 10
ALL_ROUNDS = int(np.iinfo(np.int64).max)


def sssp_persistent(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find distances in `dtype` from positions `sources`; predecessors are found afterwards.

    Return None where it turns out that the host is faster. With positions `until`, only up to the bucket of the
    farthest.
    """
    assert comm.size == 1, "one rank alone runs in one launch"
    backend = shard.backend
    if not shard.num_owned:
        return Traversal(backend.xp.empty(0, dtype), None)
    search = _prepare_search(shard, dtype, shard.lightest_arcs is not None)
    is_trial = shard.faster_on_host.get("sssp") is None and not until and cutoff in (None, search.end)
    for max_rounds in [TRIAL_ROUNDS] * is_trial + [ALL_ROUNDS]:
        search.on_host[0] = 0
        dist, *_ = search.launch(backend.to_device(search.counters(sources, cutoff, until, max_rounds)))
        backend.synchronize()
        done, num_records, started, _ = search.on_host[: len(REPORT)].tolist()
        if not done:
            raise CommAborted("the search was aborted at a grid barrier")
        records = search.on_host[len(REPORT) :][: num_records * RECORD_WORDS].copy()
        trace.add_persistent(partial(_rounds, started, records))
        if num_records < max_rounds:
            if until:
                drop_unsettled(dist, search.settled)
            return Traversal(dist, None)
        num_settled = total(backend, dist < search.settled)
        _, frontiers, _, ended = records.reshape(-1, RECORD_WORDS).T
        times = np.diff(ended, prepend=started)
        if try_gpu(shard, "sssp", times, frontiers, num_settled, float(search.settled)):
            return None  # from now on another variant applies
        del dist
    raise AssertionError("a search of all rounds is whole")


class _Search:
    """The prepared launch of searches of a shard.

    `launch` takes the counters, and returns distances and work arrays that are dead once the search has ended; the
    kernel's report is `on_host`.
    """

    def __init__(self, shard: Shard, dtype: np.dtype) -> None:
        backend = shard.backend
        assert isinstance(backend, PersistentBackend), "the variant applies to no other"
        num = shard.num_owned
        info = shard.info
        has_hubs = info.order == "degree"
        rows = shard.rows
        lightest = shard.lightest_arcs
        of_hubs = DELTA_PUSHED if info.directed else DELTA_PULLED
        width = default_delta(shard, dtype, of_hubs if has_hubs else DELTA_EVEN)
        parameters = LAUNCH_PARAMETERS.arranged(
            cutoff=word_of(unreached_of(dtype), dtype),
            delta=word_of(width, dtype),
            num_sources=0,
            target=0,
            num_targets=0,
            max_rounds=0,
            hubs=min(num, HUB_BYTES // dtype.itemsize) if has_hubs else 0,
            pulls=not info.directed,
            scale=word_of(class_scale(info), np.dtype(np.float64)),
            long_rows=long_rows(shard, PIECE_ARCS),
        )
        # With hubs the cost of a push decides about buckets of some share of all arcs: those of the first rows, which
        # are in host memory before others.
        pushed_host_share = min(rows.host_share / BUCKET_SHARE, 1.0) if has_hubs else rows.host_share
        costs = sssp_costs(require_rates(backend), num, dtype.itemsize, pushed_host_share)
        self._dtype = dtype
        self.end = end_of(info, dtype)
        self._shared = np.zeros(COUNTERS["sources"], np.int64)
        self._shared[: len(parameters) + len(costs)] = (*parameters, *costs)
        host_words, self.on_host = backend.host_words(len(REPORT) + RECORD_WORDS * MAX_RECORDS)
        vertex = rows.targets.dtype
        words, queues, log = work_lengths(num, len(rows.targets), has_far_queue=lightest is None)
        kernel, lightest_args = (
            (find_distances, ())
            if lightest is None
            else (find_distances_by_weight, (lightest.targets, lightest.weights))
        )
        self.launch = backend.prepared(
            kernel, 0, num, backend.abort_word, rows.indptr, rows.targets, rows.weights, *lightest_args,
            Allocated(num, dtype), Allocated(words, np.dtype(np.uint32)), Allocated(queues, vertex),
            Bound(np.dtype(np.int64)), Allocated(log, np.dtype(np.int64)), host_words,
        )  # fmt: skip

    def counters(
        self, sources: list[int], cutoff: float | int | None, until: Sequence[int], max_rounds: int
    ) -> np.ndarray:
        """Return the counters of one search, with the launch parameters, the sources and the targets in them."""
        starts = np.array(sorted(set(sources)), np.int64)
        target, targets = watched_and_listed(until)
        counters = np.concatenate([self._shared, starts, np.array(targets, np.int64)])
        if cutoff is not None:
            counters[LAUNCH_PARAMETERS.index("cutoff")] = word_of(cutoff, self._dtype)
        counters[LAUNCH_PARAMETERS.index("num_sources")] = len(starts)
        counters[LAUNCH_PARAMETERS.index("target")] = target
        counters[LAUNCH_PARAMETERS.index("num_targets")] = len(targets)
        counters[LAUNCH_PARAMETERS.index("max_rounds")] = max_rounds
        return counters

    @property
    def settled(self) -> float | int:
        """The bound below which the search has settled all distances."""
        at = REPORT.index("settled")
        settled: float | int = self.on_host[at : at + 1].view(self._dtype)[0].item()
        return settled


@cached_on_shard
def _prepare_search(shard: Shard, dtype: np.dtype, has_lightest: bool) -> _Search:
    """Return the prepared search.

    `has_lightest` is part of the key: lightest arcs may be added later.
    """
    return _Search(shard, dtype)


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
    work = work_bytes(owned, arcs, vertex, has_far_queue=arcs < SPARSE_DEGREE * owned)
    return searched_bytes(sizes, has_peer_buffers=False) * owned + work + (vertex + 9) * owned


VARIANT = Variant(
    "sssp.persistent",
    when="on one GPU, in one launch",
    applies=lambda conditions: conditions.has_rows and conditions.has_persistent_kernels and conditions.num_ranks == 1,
    needs=(DEVICE_RATES,),
    wants=(LIGHTEST_ARCS,),
    bytes=_bytes,
    loop=sssp_persistent,
    takes_until=True,
)
