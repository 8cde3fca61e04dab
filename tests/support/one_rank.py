"""Run one variant of shortest paths on one rank of a naively built graph."""

from __future__ import annotations

import oracles
from naive_shard import build_shards
from on_ranks import run_on_ranks

from mgraph.algorithms.common.traversal import Trace
from mgraph.api.traversal import state_dtype
from mgraph.backends.cpu import CpuBackend
from mgraph.shard.lightest_arcs import require_lightest_arcs


def distances(search, case, sources, order="degree", backend=None, *, has_lightest=False, **options):
    """Return one rank's distances, and its trace."""
    backend = backend or CpuBackend(1)
    shards = build_shards(case, 1, order, backend)
    if has_lightest:
        require_lightest_arcs(shards[0])
    positions = oracles.positions(case, order)[sources].tolist()
    starts = [p for p in positions if p < shards[0].partition.num_positions]

    def program(shard, comm):
        trace = Trace(backend, comm)
        found = search(shard, comm, starts, trace, state_dtype(shard.info), **options)
        return backend.to_host(found.distances), trace

    return run_on_ranks(program, shards)[0], shards
