"""Launch and end of a persistent multi-GPU search, on ranks that access each other's memory.

The kernel translates its sources itself, and times begin when it has. Reason: links between GPUs that sleep wake one
after the other in an NCCL call, which then takes 500 us, and ranks leave it up to 150 us apart, for which the first
barrier of a search waits (four H200). Woken all at once they take 100 us, and ranks leave a barrier in a kernel within
a few us of each other; work of 30 us on the host takes 90 us on one that has waited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mgraph.algorithms.common.control_block import ControlBlock
from mgraph.algorithms.common.traversal import TRACE_RECORDS, Trace, watched_and_listed
from mgraph.backends.base import BOUND_PEER_BUFFERS, PersistentBackend
from mgraph.backends.kernel import Kernel
from mgraph.backends.shared_names import ControlLayout
from mgraph.comm.base import Communicator
from mgraph.comm.peer_memory import require_done, wait_for_ranks
from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import Array

# backends/device/ranks.cuh: a barrier translates four sources; more are translated sooner by one NCCL reduction.
MAX_SHARED_SOURCES = 64


def target_states(partition: Partition, until: Sequence[int]) -> tuple[int, Sequence[int]]:
    """Return the state that a search watches first, -1 for none, and those of all targets where they are several."""
    return watched_and_listed([int(partition.state(position)) for position in until])


class MultiGpuSearch:
    """The prepared launch for multi-GPU searches of a shard with given numbers of sources and of listed targets.

    Parameters
    ----------
    kernel, methods
        The search kernel, and the names of the methods that its trace has by number.
    layout
        Its control block. `found`, which says whether the sources are positions already, is one of a search's own
        parameters; the report begins with `done` and `num_records`.
    shared
        The launch parameters that all these searches share, by name, `num_sources` and `num_targets` among them, but
        for this rank's range of user ids and the capacity of the trace.
    args
        The kernel's arguments between the positions of user ids and the control block.
    """

    def __init__(
        self,
        shard: Shard,
        kernel: Kernel,
        methods: Sequence[str],
        layout: ControlLayout,
        shared: Mapping[str, int],
        args: Sequence[Any],
    ) -> None:
        backend = shard.backend
        (lo, hi) = shard.user_range
        assert isinstance(backend, PersistentBackend), "the caller checks this"
        self._shard = shard
        self._methods = methods
        self._few = shared["num_sources"] <= MAX_SHARED_SOURCES
        num_listed = shared["num_sources"] + shared["num_targets"]
        self._found_at = layout.own.index("found")
        self._record_words = len(layout.record)
        shared = {**shared, "first_user": lo, "num_users": hi - lo, "trace_records": TRACE_RECORDS}
        report = dict.fromkeys(layout.report, 0)
        self._control = ControlBlock(backend, layout, shared, report, TRACE_RECORDS, num_listed)
        self._launch = backend.prepared(
            kernel, 0, shard.partition.stride, *BOUND_PEER_BUFFERS, shard.position_of_user, *args, self._control.words
        )

    def __call__(
        self,
        comm: Communicator,
        own: Mapping[str, int],
        users: Sequence[int],
        targets: Sequence[int],
        trace: Trace,
    ) -> tuple[list[Array], list[int], list[int]]:
        """Search from these user ids to the states that are listed as targets.

        Return the kernel's results; the number of trace records and the rest of its report; the positions of the users.
        The current phase begins when these are known.
        """
        control = self._control
        peer_buffers = comm.peer_buffers
        found_at = self._found_at
        assert peer_buffers is not None, "the caller opens them"
        if self._few:
            control.give([*users, *targets], found=0, **own)
        else:
            control.give([*positions_of(self._shard, comm, users), *targets], found=1, **own)
            comm.barrier()
            trace.begin_phase()
        results = self._launch(*peer_buffers.bound)
        try:
            if self._few:
                comm.wait(until=lambda: control.on_host[found_at])
                trace.begin_phase()
        finally:
            wait_for_ranks(comm, control.backend)
        done, num_records, *reported = control.report()
        require_done(comm, done)
        trace.end_phase()
        records = np.frombuffer(control.records(num_records), np.int64).reshape(-1, self._record_words)
        comm.bytes_sent += int(records[:, -1].sum())
        trace.add_persistent(partial(_steps_of, self._methods, records))
        return results, [num_records, *reported], control.on_host[control.sources_at :][: len(users)].tolist()


def _steps_of(methods: Sequence[str], records: np.ndarray) -> list[dict]:
    """Return the trace records as dictionaries."""
    return [
        {"method": methods[m], "frontier": frontier, "arcs": arcs, "microseconds": ns / 1000, "bytes": sent}
        for m, frontier, arcs, ns, sent in records.tolist()
    ]
