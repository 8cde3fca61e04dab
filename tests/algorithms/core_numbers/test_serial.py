"""The serial peeling: numbers, and calls that are interrupted after any vertex."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from naive_shard import build_shards, by_user
from on_ranks import run_on_ranks
from zoo import ZOO, make_case, random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.core_numbers import serial
from mgraph.algorithms.run_variant import compute_core_numbers
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted


def rank_program(shard, comm):
    trace = Trace(shard.backend, comm)
    return serial.find_core_numbers(shard, comm, trace), trace.supersteps


@pytest.mark.parametrize("step_arcs", [1, 7, serial.STEP_ARCS])
def test_peeling_goes_on_where_it_was(step_arcs, monkeypatch):
    monkeypatch.setattr(serial, "STEP_ARCS", step_arcs)
    cases = [random_case(seed, num_vertices=40, directed=seed % 2 == 0) for seed in range(20)]
    for case in [*cases, *ZOO.values()]:
        for order in ("natural", "degree"):
            shards = build_shards(case, 1, order)
            ((cores, steps),) = run_on_ranks(rank_program, shards)
            np.testing.assert_array_equal(by_user(shards, [cores]), oracles.core_numbers(case))
            arcs = len(oracles.arcs_of(case)) * (2 if case.directed else 1)
            assert sum(step["arcs"] for step in steps) == arcs, "each arc is scanned once from each end"
            if step_arcs == 1 and arcs:
                assert len(steps) > 1


@pytest.mark.parametrize(("more_threads", "more_arcs"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_many_threads_peel_by_levels_where_arcs_are_few(more_threads, more_arcs):
    case = make_case("ring", 100, [(v, (v + k) % 100) for v in range(100) for k in range(1, 4 + more_arcs)])
    backend = CpuBackend(serial.MAX_SERIAL_THREADS + more_threads)

    def program(shard, comm):
        return compute_core_numbers(shard, comm, Trace(backend, comm))[0]

    (variant,) = run_on_ranks(program, build_shards(case, 1, "natural", backend))
    backend.close()
    assert variant == f"core_numbers.{'peeling' if more_threads and not more_arcs else 'serial'}"


def test_call_that_is_ended_peels_no_further():
    def program(shard, comm):
        shard.backend.stopped = "the call was ended"
        with pytest.raises(CommAborted, match="the call was ended"):
            serial.find_core_numbers(shard, comm, Trace(shard.backend, comm))

    run_on_ranks(program, build_shards(random_case(1, num_vertices=40), 1, "natural"))
