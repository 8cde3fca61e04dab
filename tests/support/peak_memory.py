"""Measure the peak memory of a build or a validation: NumPy reports every array to tracemalloc.

The resident set of a process would not do: Linux counts it by CPU and adds up only roughly, to within dozens of
megabytes on a machine of many cores, and pages of a heap are used again.
"""

from __future__ import annotations

import tracemalloc

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat
from mgraph.ingest import build as builder
from mgraph.ingest import compact


def peak_of_build(monkeypatch, scale: int, num_chunks: int | None, weights: str | None, layout: str = "rows") -> tuple:
    """Build an RMAT graph; return its shard, the plan, and the most that was held at a time."""
    plans = []
    for module, name in ((builder, "plan_build"), (compact, "plan_compact")):
        plan = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, plan=plan: plans.append(plan(*args)) or plans[-1])
    backend = CpuBackend(1)
    (comm,) = open_threads(1)
    # A small build first, which compiles the kernels.
    builder.build(Rmat(6, weights=weights), backend, comm, layout=layout)
    tracemalloc.start(1)
    try:
        shard = builder.build(Rmat(scale, weights=weights), backend, comm, num_chunks=num_chunks, layout=layout)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return shard, plans[-1], peak


def check_peak_of_validation(found, wanted, num_ranks):
    """Check that validating a result allocates about `wanted` bytes on each rank."""
    mg.validate(found)  # which compiles the kernels
    peaks = []
    # Of all ranks, and of other threads that allocate meanwhile: the smallest peak is without those.
    for _ in range(3):
        tracemalloc.start(1)
        assert found._violations() == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Ranks may reach their peaks at different times.
    assert (0.9 if num_ranks == 1 else 0.5) * wanted <= min(peaks) / num_ranks <= 1.1 * wanted
