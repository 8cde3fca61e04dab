"""How a search through windows begins and ends, on ranks whose kernels reach each other's memory.

It finds its sources itself, and times begin when it has. What drove it: links between GPUs that sleep wake one after
the other in a verb of NCCL, which takes 500 us then, and ranks leave it up to 150 us apart, for which the first meeting
of a search waits (four H200). Woken all at once they take 100 us, and ranks leave a meeting in a kernel within a few us
of each other, where what a host does in 30 us takes one that has waited 90.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mgraph.algorithms.common.control_block import Orders
from mgraph.algorithms.common.traversal import TRACE_ROWS, Trace
from mgraph.backends.base import GIVEN_WINDOWS, FusingBackend
from mgraph.backends.kernel import Kernel
from mgraph.backends.shared_names import ControlLayout
from mgraph.comm.base import Communicator
from mgraph.comm.peers import require_done, wait_for_ranks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import Array

# backends/device/ranks.cuh: four are found a meeting, and one reduction over NCCL finds more of them sooner.
FEW_SOURCES = 64


class SearchPeers:
    """What searches of a shard from so many sources have in common: all but which they are, and the windows.

    Parameters
    ----------
    kernel, methods
        What searches, and what the numbers mean by which its trace names a superstep.
    layout
        Its control block. `found`, which says whether the sources are positions already, is one of a search's own
        parameters; the report begins with `done` and `num_rows`.
    shared
        The orders that all searches of the shard have in common, by name, but for this rank's range of user ids and the
        rows of the trace.
    args
        What it takes between the positions of user ids and the orders.
    """

    def __init__(
        self,
        shard: Shard,
        num_sources: int,
        kernel: Kernel,
        methods: Sequence[str],
        layout: ControlLayout,
        shared: Mapping[str, int],
        args: Sequence[Any],
    ) -> None:
        run, (lo, hi) = shard.backend, shard.user_range
        assert isinstance(run, FusingBackend), "who calls has asked"
        self._shard, self._methods, self._few = shard, methods, num_sources <= FEW_SOURCES
        self._found_at, self._record_words = layout.own.index("found"), len(layout.record)
        shared = {**shared, "first_user": lo, "num_users": hi - lo, "trace_rows": TRACE_ROWS}
        self._orders = Orders(run, layout, shared, dict.fromkeys(layout.report, 0), TRACE_ROWS, num_sources)
        self._launch = run.prepared(
            kernel, 0, shard.partition.stride, *GIVEN_WINDOWS, shard.position_of_user, *args, self._orders.words
        )

    def __call__(
        self, comm: Communicator, own: Mapping[str, int], users: Sequence[int], trace: Trace
    ) -> tuple[list[Array], list[int], list[int]]:
        """Search from these user ids.

        Return what the kernel found; how many rows its trace has, and what it reports; the positions of the users. The
        phase at hand begins when these are known.
        """
        orders, windows, found_at = self._orders, comm.windows, self._found_at
        assert windows is not None, "who calls has opened them"
        if self._few:
            orders.give(users, found=0, **own)
        else:
            orders.give(positions_of(self._shard, comm, users), found=1, **own)
            comm.barrier()
            trace.begin_phase()
        answers = self._launch(*windows.given)
        try:
            if self._few:
                comm.wait(until=lambda: orders.on_host[found_at])
                trace.begin_phase()
        finally:
            wait_for_ranks(comm, orders.run)
        done, num_rows, *told = orders.report()
        require_done(comm, done)
        trace.end_phase()
        rows = np.frombuffer(orders.rows(num_rows), np.int64).reshape(-1, self._record_words)
        comm.bytes_sent += int(rows[:, -1].sum())
        trace.fused(partial(_steps_of, self._methods, rows), "windows")
        return answers, [num_rows, *told], orders.on_host[orders.sources_at :][: len(users)].tolist()


def _steps_of(methods: Sequence[str], rows: np.ndarray) -> list[dict]:
    """Return what the rows of the trace of a search through windows say of its supersteps."""
    return [
        {"method": methods[m], "frontier": frontier, "arcs": arcs, "microseconds": ns / 1000, "bytes": sent}
        for m, frontier, arcs, ns, sent in rows.tolist()
    ]
